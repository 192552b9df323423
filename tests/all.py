# SPDX-License-Identifier: BSD-3-Clause
"""
`./dev test [PATTERN]`: runs the suites one after another, on the build in NJ_BUILD, and prints the
numbers of passed and failed tests.

A pattern chooses tests by a part of their name (`tcp`, `downloads`, `frames`), or a suite by its
name: unit, fuzz, script, sim, tidy, guard, package, nic.quick, e2e, mutants, explorers. `threads`
is a part of unit; with the build for ThreadSanitizer a pattern chooses of `threads` and e2e only.
`portable` is unit, fuzz, script and sim, which have the same tests on each release of Debian.

`--whole` runs each test once, on the builds of WHOLE; `--whole all` also runs the mutants and
explorers whose sources have not changed since all of them ran, and writes tests/mutants/verified.

`--targets PATTERN`, `--targets --whole`: runs no test. It prints the files that ninja has to build
for these tests.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time

from tests import builds
from tests.builds import PLAIN, RELEASE, REPO, SANITIZED, THREADS
from tests.mutants import verified

BUILD = os.environ.get("NJ_BUILD", PLAIN)
IS_SANITIZED = os.environ.get("NJ_SANITIZED") == "1"
PYTHON = (sys.executable, "-m")  # for modules of the packages, in the root folder
# 1000 have 5 % of each fault
SIM_SEEDS = int(os.environ.get("NJ_SIM_SEEDS", "200" if IS_SANITIZED else "1250"))
TCPSIM_SEEDS = 8 * SIM_SEEDS  # they take a tenth of the time
HTTP1_SIM_SEEDS = SIM_SEEDS * 8 // 25  # 400 of the plain build
ALL_MUTANTS = False  # set by main()
EXPLORED = ("lib/base/futex_park.c", "lib/base/interleaving_points.h", "lib/sched", "lib/strategy",
             "perf/reference", "tests/explore", "tests/relaxed")
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed", re.M)


def run(*command, show=True, env=None):
    """Runs a command and shows its output immediately. Returns (exit status, output)."""
    process = subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.STDOUT, errors="replace", env=env)
    text = ""
    for line in process.stdout:
        text += line
        if show and not SUMMARY.match(line):
            print(line, end="", flush=True)
    return process.wait(), text


def summary_of(status, text):
    """The (passed, failed) of the last line that a suite prints."""
    counts = SUMMARY.findall(text)
    passed, failed = map(int, counts[-1]) if counts else (0, 0)
    return passed, failed or int(status != 0)


def introspected(what):
    """A JSON file of meson about the build folder."""
    with open(os.path.join(REPO, BUILD, "meson-info", f"intro-{what}.json")) as f:
        return json.load(f)


def targets_named(*names):
    """The files of these targets of meson, if this build has them."""
    return [file for target in introspected("targets") if target["name"] in names
            for file in target["filename"]]


def script_runs(pattern):
    """Lists of arguments for nj-script."""
    folders = {(): "tests/script", ("--ipv6",): "tests/script",
               ("--foreign",): "tests/script/foreign"}
    chosen = () if pattern in "script" else ("--pattern", pattern)
    runs = [(*chosen, *how, folder) for how, folder in folders.items()
            if not chosen or any(pattern in name for name in os.listdir(os.path.join(REPO, folder))
                                 if name.endswith(".pkt"))]
    if pattern in "script_broken":
        runs.append(("--must-fail", "tests/script/broken"))
    return runs


def script_targets(pattern):
    programs = ("nj-script", "nightjar-packetdrill") if script_runs(pattern) else ()
    table = ("check_so", "nightjar-packetdrill") if pattern in "script_so" else ()
    return targets_named(*programs, *table)


def script(pattern):
    """The packet scripts whose file names have the pattern, and the shared object they use."""
    folder = os.path.join(BUILD, "tests", "script")
    if not script_targets(pattern):
        return 0, 0
    results = [(0, 0)] + [summary_of(*run(os.path.join(folder, "nj-script"), *arguments))
                          for arguments in script_runs(pattern)]
    passed, failed = (sum(column) for column in zip(*results))
    if pattern in "script_so":
        check = (os.path.join(folder, "check_so"),
                 os.path.join(folder, "libnightjar-packetdrill.so"))
        wrappers = [()]
        if not IS_SANITIZED:  # a sanitizer must be loaded first
            wrappers.append(("env", f"LD_PRELOAD={os.path.join(REPO, check[1])}"))
        for wrapper in wrappers:
            status, _ = run(*wrapper, *check)
            passed, failed = passed + int(status == 0), failed + int(status != 0)
    return passed, failed


def meson_tests(suite, pattern):
    """The suite's tests that the pattern chooses."""
    return [test for test in introspected("tests") if f"nightjar:{suite}" in test["suite"]
            and (pattern in test["name"] or pattern == suite)]


def meson_targets(suite, pattern):
    return targets_of([test["name"] for test in meson_tests(suite, pattern)])


def targets_of(names):
    """The files of the programs of these tests of meson."""
    ids = {target for test in introspected("tests") if test["name"] in names
           for target in test["depends"]}
    return [file for target in introspected("targets") if target["id"] in ids
            for file in target["filename"]]


def meson(suite, pattern):
    return meson_named(suite, [test["name"] for test in meson_tests(suite, pattern)])


def meson_named(suite, names):
    if not names:
        return 0, 0
    # Each process of Criterion reads the system's certificates (libgit2). ASan's interceptor of
    # strstr() would measure the length of that file at each call.
    env = os.environ | {"ASAN_OPTIONS": os.environ["ASAN_OPTIONS"] + ":intercept_strstr=0"}
    status, _ = run("meson", "test", "-C", BUILD, "--no-rebuild", "--print-errorlogs", "--suite",
                    suite, *names, env=env)
    with open(os.path.join(REPO, BUILD, "meson-logs", "testlog.json")) as log:
        results = [json.loads(line)["result"] for line in log]
    passed = sum(result == "OK" for result in results)
    return passed, len(results) - passed or int(status != 0)


def sim_targets(pattern):
    return targets_named("nj-sim", "nj-tcpsim") if pattern in "sim" else []


def sim(pattern):
    """The simulators. The table of throughput is not checked again under sanitizers."""
    folder = os.path.join(BUILD, "tests", "sim")
    if not sim_targets(pattern):
        return 0, 0
    runs = [("nj-sim", "--seeds", str(SIM_SEEDS)), ("nj-tcpsim", "--seeds", str(TCPSIM_SEEDS)),
            ("nj-sim", "--tls", "--seeds", str(SIM_SEEDS // 5)),
            ("nj-sim", "--http1", "--seeds", str(HTTP1_SIM_SEEDS))]
    if not IS_SANITIZED:
        runs.append(("nj-tcpsim", "--golden-check", "tests/sim/golden.txt"))
    with concurrent.futures.ThreadPoolExecutor(len(runs)) as pool:
        failed = sum(pool.map(
            lambda words: run(os.path.join(folder, words[0]), *words[1:])[0] != 0, runs))
    return len(runs) - failed, failed


def unittests(*modules):
    passed = failed = 0
    for module in modules:
        status, text = run(*PYTHON, module, show=False)
        count = int((re.findall(r"^Ran (\d+) test", text, re.M) or ["0"])[-1])
        if status:
            print(text)
        passed, failed = passed + (count if status == 0 else 0), failed + int(status != 0)
    return passed, failed


def library_targets(pattern, *names):
    """The libraries, if the pattern chooses one of these tests."""
    chosen = not IS_SANITIZED and any(pattern in name for name in names)
    built = targets_named("nightjar", "libnightjar.a", "nightjar-static.pc", "nightjarConfig.cmake")
    return [file for file in built if chosen and file.startswith(f"{REPO}/{BUILD}/lib/")]


def tidy(pattern):
    """The code conventions, which do not depend on the build."""
    if pattern not in "tidy" or IS_SANITIZED:
        return 0, 0
    names = ("tidy", "rfc", "ewyk", "held", "house", "names", "page", "pages", "repeated")
    runs = [summary_of(*run(*PYTHON, "tests.tidy.tidy")),
            unittests(*(f"tests.tidy.test_{name}" for name in names))]
    passed, failed = (sum(column) for column in zip(*runs))
    return passed, failed


def guard(pattern):
    """
    Instructions per request of the release build, and all benchmarks without a measurement.
    Sanitizers would add instructions.
    """
    if pattern not in "guard" or IS_SANITIZED:
        return 0, 0
    runs = [unittests("tests.guard.test_guard", "tests.guard.test_benches")]
    if os.path.exists(os.path.join(REPO, RELEASE, "perf", "tools", "exchange", "nj-exchange")):
        runs.append(summary_of(*run("env", f"NJ_BUILD={RELEASE}", *PYTHON, "perf.bench.guard")))
    passed, failed = (sum(column) for column in zip(*runs))
    return passed, failed


PACKAGE = ("package_abi", "package_convert", "package_ctl", "package_debian", "package_examples",
           "package_gdb", "package_hardening", "package_headers", "package_openapi",
           "package_options", "package_pkg_config", "package_presets",
           "package_reference", "package_service", "package_static_library", "package_top",
           "package_version", "package_without_server")


def package_targets(pattern):
    """The libraries, and for seven of the tests programs, which have the tables of options."""
    libraries = library_targets(pattern, *PACKAGE)
    names = ("nightjar", "nightjar-ctl", "nj-option-docs", "nightjar-load", "nightjar-examples")
    tests = ("convert", "ctl", "debian", "options", "service", "top", "version")
    programs = targets_named(*names) if any(pattern in f"package_{name}" for name in tests) else []
    programs += targets_named("nightjar-test-parked") if pattern in "package_gdb" else []
    return libraries + [file for file in programs if libraries and file not in libraries]


def package(pattern):
    """The installed files: the binaries of the release build, headers and libraries."""
    if IS_SANITIZED:
        return 0, 0
    return unittests(*(f"tests.package.test_{name.removeprefix('package_')}" for name in PACKAGE
                       if pattern in name))


def nic(pattern):
    """
    Two drivers of PCI NICs, in an emulated guest, with the release build because emulation is slow.
    Missing packages are a failure only if the pattern chooses this suite.
    """
    if pattern not in "nic.quick" or IS_SANITIZED or os.geteuid() != 0:
        return 0, 0
    optional = [] if pattern else ["--optional"]
    runs = [unittests("tests.nic.test_nic"),
            summary_of(*run("env", f"NJ_BUILD={RELEASE}", *PYTHON, "tests.nic.run", "--quick",
                            *optional))]
    passed, failed = (sum(column) for column in zip(*runs))
    return passed, failed


def e2e_targets(pattern):
    """All servers, load generators, other programs and modules, whichever tests are chosen."""
    done = subprocess.run([*PYTHON, "tests.e2e.run", "--list", pattern], cwd=REPO,
                          capture_output=True, text=True, check=True)
    folders = tuple(os.path.join(REPO, folder, "") for folder in ("app", "perf", "tests/e2e"))
    return [file for target in introspected("targets") if done.stdout
            and target["type"] in ("executable", "shared module") and target["build_by_default"]
            and target["defined_in"].startswith(folders) for file in target["filename"]]


def e2e(pattern):
    return summary_of(*run(*PYTHON, "tests.e2e.run", *([pattern] if pattern else [])))


def changed_explorers(pattern):
    """Names of the explorers' tests, if their sources changed since all of them passed."""
    names = [test["name"] for test in meson_tests("explorers", pattern or "explorers")]
    return names if ALL_MUTANTS or pattern or any(map(verified.is_changed, EXPLORED)) else []


def explorers(pattern):
    return meson_named("explorers", changed_explorers(pattern))


def explorer_targets(pattern):
    return targets_of(changed_explorers(pattern))


def mutants(pattern):
    """Mutants whose source or whose test changed since all of them died."""
    if IS_SANITIZED or pattern not in "mutants":
        return 0, 0
    some = [] if ALL_MUTANTS or pattern else ["--changed"]
    status, text = run(*PYTHON, "tests.mutants.mutants", *some, BUILD)
    counts = re.findall(r"^(\d+) of (\d+) mutants killed", text, re.M)
    killed, n = map(int, counts[-1]) if counts else (0, 1)
    return killed, n - killed or int(status != 0)


Suite = collections.namedtuple("Suite", "run targets")  # functions
SUITES = {  # {name: (function, or the name of a suite of meson, function of its targets)}
    "threads": "threads",
    "unit": "unit",
    "plain unit": "plain",
    "explorers": (explorers, explorer_targets),
    "mutants": (mutants, lambda pattern: []),  # build what they need
    "fuzz corpora": "fuzz",
    "packet scripts": (script, script_targets),
    "simulator": (sim, sim_targets),
    "tidy": (tidy, lambda pattern: library_targets(pattern, "tidy")),
    "guard": (guard, lambda pattern: []),
    "package": (package, package_targets),
    "nic": (nic, lambda pattern: []),
    "end to end": (e2e, e2e_targets),
}
# What a whole run tests on which build. Code that is the same with sanitizers runs only there.
WHOLE = {
    THREADS: ("threads",),
    PLAIN: ("plain unit", "explorers", "mutants", "packet scripts", "simulator", "tidy", "guard",
            "package", "nic"),
    SANITIZED: ("unit", "fuzz corpora", "packet scripts", "simulator"),
}
PORTABLE = ("unit", "fuzz corpora", "packet scripts", "simulator")


def suite_of(name, pattern):
    if isinstance(SUITES[name], str):
        suite = SUITES[name]
        return Suite(lambda: meson(suite, pattern or suite),
                     lambda: meson_targets(suite, pattern or suite))
    run_it, targets = SUITES[name]
    return Suite(lambda: run_it(pattern), lambda: targets(pattern))


def suites_of(pattern):
    """{name of a suite: Suite}. ../dev builds the release for guard and nic."""
    if pattern == "portable":
        return {name: suite_of(name, "") for name in PORTABLE}
    names = [name for name in SUITES if name not in ("threads", "plain unit")]
    if pattern == "threads":
        names = ["threads"]
    elif BUILD == THREADS:
        names = ["threads", "end to end"]
    return {name: suite_of(name, pattern) for name in names}


def suites_of_whole_run():
    return {name: suite_of(name, "") for name in WHOLE[BUILD]}


def run_suites(suites):
    """
    Runs suites. Returns a list of (name, passed, failed, seconds) for those that have tests. In a
    whole run each is also a line of the file NJ_STAGES.
    """
    rows = []
    for name, suite in suites.items():
        began = time.monotonic()
        passed, failed = suite.run()
        if passed + failed:
            rows.append((name, passed, failed, time.monotonic() - began))
            if "NJ_STAGES" in os.environ:
                append_stage(f"{BUILD}: {name}", *rows[-1][1:])
    return rows


def print_rows(rows):
    for name, passed, failed, seconds in rows:
        print(f"  {name:<28} {passed:5} passed {failed:5} failed {seconds:7.1f} s")


def append_stage(name, passed, failed, seconds):
    """Of ../dev's whole run: its builds are in this file, too."""
    with open(os.environ["NJ_STAGES"], "a", encoding="utf-8") as f:
        print(name, passed, failed, f"{seconds:.1f}", sep="\t", file=f)


def read_stages():
    with open(os.environ["NJ_STAGES"], encoding="utf-8") as f:
        return [(name, int(passed), int(failed), float(seconds)) for name, passed, failed, seconds
                in (line.rstrip("\n").split("\t") for line in f)]


def whole(all_mutants):
    """Runs the stages, each with its build, and prints a table of their times."""
    head = verified.head()
    for build in WHOLE:
        print(f"\n{build}:", flush=True)
        n_before = len(read_stages())
        status = subprocess.run([*PYTHON, "tests.all", "--stage", *all_mutants], cwd=REPO,
                                env=builds.environment(build), check=False).returncode
        if status and not any(failed for _, _, failed, _ in read_stages()[n_before:]):
            append_stage(f"{build}: ended early, with {status}", 0, 1, 0)
    began = time.monotonic()
    append_stage("end to end", *summary_of(*run(*PYTHON, "tests.e2e.run", "--whole")),
                 time.monotonic() - began)
    rows = read_stages()
    passed, failed = (sum(row[i] for row in rows) for i in (1, 2))
    if all_mutants and not failed:
        verified.write(head)
    print("\nstages:")
    print_rows(rows)
    print(f"{sum(row[3] for row in rows):.1f} s in all")
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


def main():
    parser = argparse.ArgumentParser(prog="all.py")
    parser.add_argument("--targets", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--stage", action="store_true", help="a part of --whole, on NJ_BUILD")
    parser.add_argument("pattern", nargs="?", default="")
    args = parser.parse_args()
    global ALL_MUTANTS
    ALL_MUTANTS = (args.whole or args.stage) and args.pattern == "all"
    for name, value in builds.OPTIONS.items():
        os.environ.setdefault(name, value)
    if args.whole and not args.targets:
        return whole([args.pattern] if args.pattern else [])
    suites = suites_of_whole_run() if args.whole or args.stage else suites_of(args.pattern)
    if args.targets:
        files = {file for suite in suites.values() for file in suite.targets()}
        if args.whole and BUILD != THREADS:
            files |= set(e2e_targets("e2e"))
        print(*sorted(os.path.relpath(f, os.path.join(REPO, BUILD)) for f in files), sep="\n")
        return 0
    first = time.monotonic()
    rows = run_suites(suites)
    passed, failed = (sum(row[i] for row in rows) for i in (1, 2))
    if args.stage:
        return int(failed > 0)
    print(f"\n{BUILD}:")
    print_rows(rows)
    print(f"tested in {time.monotonic() - first:.1f} s")
    if not passed + failed:
        what = "has this name and runs under sanitizers" if IS_SANITIZED else \
            "has this in its name"
        print(f"{args.pattern!r}: no test {what}")
        return 1
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
