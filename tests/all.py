# SPDX-License-Identifier: BSD-3-Clause
"""
`./dev test [PATTERN]`: runs the suites one after another, on the build in NJ_BUILD, and prints the
numbers of passed and failed tests.

A pattern chooses tests by a part of their name (`tcp`, `downloads`, `frames`), or a suite by its
name: unit, fuzz, script, sim, tidy, guard, package, nic.quick, e2e. `threads` is a part of unit;
with the build for ThreadSanitizer a pattern chooses of `threads` and e2e only.
`portable` is unit, fuzz, script and sim, which have the same tests on each release of Debian.

`--targets PATTERN` runs no test. It prints the files that ninja has to build for these tests.
"""
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("NJ_BUILD", "build")
RELEASE = "build-release"
PYTHON = (sys.executable, "-m")  # for modules of the packages, in the root folder
SIM_SEEDS = int(os.environ.get("NJ_SIM_SEEDS", "1250"))  # 1000 have 5 % of each fault
TCPSIM_SEEDS = 8 * SIM_SEEDS  # they take a tenth of the time
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed", re.M)


def run(*command, show=True):
    """Runs a command and shows its output immediately. Returns (exit status, output)."""
    process = subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.STDOUT, errors="replace")
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
        if os.environ.get("NJ_SANITIZED") != "1":  # a sanitizer must be loaded first
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
    ids = {target for test in meson_tests(suite, pattern) for target in test["depends"]}
    return [file for target in introspected("targets") if target["id"] in ids
            for file in target["filename"]]


# Options of sanitizers, unless the environment has them. The quarantine for freed blocks is part of
# a server's memory: 64 MiB are enough to detect uses after free.
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=1:quarantine_size_mb=64",
              "UBSAN_OPTIONS": "halt_on_error=1",
              "LSAN_OPTIONS": f"suppressions={REPO}/tests/lsan.supp:print_suppressions=0"}


def meson(suite, pattern):
    names = [test["name"] for test in meson_tests(suite, pattern)]
    if not names:
        return 0, 0
    status, _ = run("meson", "test", "-C", BUILD, "--no-rebuild", "--print-errorlogs", "--suite",
                    suite, *names)
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
            ("nj-sim", "--tls", "--seeds", str(SIM_SEEDS // 5))]
    if not os.environ.get("NJ_SANITIZED"):
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
    chosen = not os.environ.get("NJ_SANITIZED") and any(pattern in name for name in names)
    return [file for file in targets_named("nightjar") if chosen and "/libnightjar" in file]


def tidy(pattern):
    """The code conventions, which do not depend on the build."""
    if pattern not in "tidy" or os.environ.get("NJ_SANITIZED"):
        return 0, 0
    runs = [summary_of(*run(*PYTHON, "tests.tidy.tidy")),
            unittests(*(f"tests.tidy.test_{name}" for name in ("tidy", "rfc", "ewyk", "page")))]
    passed, failed = (sum(column) for column in zip(*runs))
    return passed, failed


def guard(pattern):
    """Instructions per request of the release build. Sanitizers would add instructions."""
    if pattern not in "guard" or os.environ.get("NJ_SANITIZED"):
        return 0, 0
    runs = [unittests("tests.guard.test_guard")]
    if os.path.exists(os.path.join(REPO, RELEASE, "perf", "tools", "exchange", "nj-exchange")):
        runs.append(summary_of(*run("env", f"NJ_BUILD={RELEASE}", *PYTHON, "perf.bench.guard")))
    passed, failed = (sum(column) for column in zip(*runs))
    return passed, failed


PACKAGE = ("package_abi", "package_debian", "package_examples", "package_hardening",
           "package_headers", "package_options", "package_pkg_config", "package_reference",
           "package_service")


def package_targets(pattern):
    """The libraries, and for three of the tests the programs with the tables of options."""
    libraries = library_targets(pattern, *PACKAGE)
    programs = targets_named("nightjar", "nj-option-docs", "nightjar-load") if any(
        pattern in f"package_{name}" for name in ("debian", "options", "service")) else []
    return libraries + [file for file in programs if libraries and file not in libraries]


def package(pattern):
    """The installed files: the binaries of the release build, headers and libraries."""
    if os.environ.get("NJ_SANITIZED"):
        return 0, 0
    return unittests(*(f"tests.package.test_{name.removeprefix('package_')}" for name in PACKAGE
                       if pattern in name))


def nic(pattern):
    """
    Two drivers of PCI NICs, in an emulated guest, with the release build because emulation is slow.
    Missing packages are a failure only if the pattern chooses this suite.
    """
    if pattern not in "nic.quick" or os.environ.get("NJ_SANITIZED") or os.geteuid() != 0:
        return 0, 0
    optional = [] if pattern else ["--optional"]
    runs = [unittests("tests.nic.test_nic"),
            summary_of(*run("env", f"NJ_BUILD={RELEASE}", *PYTHON, "tests.nic.run", "--quick",
                            *optional))]
    passed, failed = (sum(column) for column in zip(*runs))
    return passed, failed


def e2e_targets(pattern):
    """All servers, load generators and other programs, whichever tests are chosen."""
    done = subprocess.run([*PYTHON, "tests.e2e.run", "--list", pattern], cwd=REPO,
                          capture_output=True, text=True, check=True)
    folders = tuple(os.path.join(REPO, folder, "") for folder in ("app", "perf", "tests/e2e"))
    return [file for target in introspected("targets") if done.stdout
            and target["type"] == "executable" and target["build_by_default"]
            and target["defined_in"].startswith(folders) for file in target["filename"]]


def e2e(pattern):
    return summary_of(*run(*PYTHON, "tests.e2e.run", *([pattern] if pattern else [])))


Suite = collections.namedtuple("Suite", "run targets")  # functions


def suites_of(pattern):
    """{name of a suite: Suite}. ../dev builds the release for guard and nic."""
    def meson_suite(name):
        words = name if pattern == "portable" else pattern
        return Suite(lambda: meson(name, words), lambda: meson_targets(name, words))

    def other(run_it, targets=lambda words: []):
        name = run_it.__name__
        words = name if pattern == "portable" else pattern
        return Suite(lambda: run_it(words), lambda: targets(words))
    if pattern == "threads":
        return {"threads": meson_suite("threads")}
    if BUILD == "build-tsan":
        return {"threads": meson_suite("threads"), "end to end": other(e2e, e2e_targets)}
    portable = {
        "unit": meson_suite("unit"),
        "fuzz corpora": meson_suite("fuzz"),
        "packet scripts": other(script, script_targets),
        "simulator": other(sim, sim_targets),
    }
    return portable if pattern == "portable" else portable | {
        "tidy": other(tidy, lambda words: library_targets(words, "tidy")),
        "guard": other(guard),
        "package": other(package, package_targets),
        "nic": other(nic),
        "end to end": other(e2e, e2e_targets),
    }


def main():
    if sys.argv[1:2] == ["--targets"]:
        files = {file for suite in suites_of(sys.argv[2]).values() for file in suite.targets()}
        print(*sorted(os.path.relpath(f, os.path.join(REPO, BUILD)) for f in files), sep="\n")
        return 0
    for name, value in SANITIZERS.items():
        os.environ.setdefault(name, value)
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    lines, total, first = [], [0, 0], time.monotonic()
    for name, suite in suites_of(pattern).items():
        began = time.monotonic()
        passed, failed = suite.run()
        total = [total[0] + passed, total[1] + failed]
        if passed + failed:
            lines.append(f"  {name:<14} {passed:5} passed {failed:5} failed "
                         f"{time.monotonic() - began:7.1f} s")
    print(f"\n{BUILD}:", *lines, f"tested in {time.monotonic() - first:.1f} s", sep="\n")
    if not sum(total):
        what = "has this name and runs under sanitizers" if os.environ.get("NJ_SANITIZED") else \
            "has this in its name"
        print(f"{pattern!r}: no test {what}")
        return 1
    print(f"{total[0]} passed, {total[1]} failed")
    return int(total[1] > 0)


if __name__ == "__main__":
    sys.exit(main())
