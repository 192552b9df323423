#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
`./dev test [PATTERN]`: every suite in turn, on the build in NJ_BUILD, and one line at the end.

A pattern chooses tests by part of their name (`tcp`, `downloads`, `gibberish`), or a whole suite by
the suite's name: unit, fuzz, script, sim, tidy, guard, package, nic.quick, e2e; or threads, which
is part of unit; or portable, which is unit, fuzz, script and sim: as many tests on every release of
Debian.
"""
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
SIM_SEEDS = int(os.environ.get("NJ_SIM_SEEDS", "1250"))  # 1000 of them 5 % of each fault
TCPSIM_SEEDS = 8 * SIM_SEEDS  # they take a tenth of the time
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed", re.M)


def run(*command, show=True):
    """Runs it, shows its output as it comes, and returns (exit status, output)."""
    process = subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.STDOUT, errors="replace")
    text = ""
    for line in process.stdout:
        text += line
        if show and not SUMMARY.match(line):
            print(line, end="", flush=True)
    return process.wait(), text


def summary_of(status, text):
    """The (passed, failed) that a suite of ours prints last."""
    counts = SUMMARY.findall(text)
    passed, failed = map(int, counts[-1]) if counts else (0, 0)
    return passed, failed or int(status != 0)


def script(pattern):
    """The packet scripts whose file the pattern chooses, and the table they go through."""
    folder = os.path.join(BUILD, "tests", "script")
    if not os.path.exists(os.path.join(REPO, folder, "nj-script")):
        return 0, 0
    runner = [os.path.join(folder, "nj-script")]
    chosen = [] if pattern in "script" else ["--pattern", pattern]
    runs = [(*chosen, "tests/script"), (*chosen, "--ipv6", "tests/script"),
            (*chosen, "--foreign", "tests/script/foreign")]
    if pattern in "script_broken":
        runs.append(("--must-fail", "tests/script/broken"))
    results = [summary_of(*run(*runner, *arguments)) for arguments in runs]
    passed, failed = (sum(column) for column in zip(*results))
    if pattern in "script_so":
        check = (os.path.join(folder, "check_so"),
                 os.path.join(folder, "libnightjar-packetdrill.so"))
        hows = [()]
        if os.environ.get("NJ_SANITIZED") != "1":  # a sanitizer wants to be loaded first
            hows.append(("env", f"LD_PRELOAD={os.path.join(REPO, check[1])}"))
        for how in hows:
            status, _ = run(*how, *check)
            passed, failed = passed + int(status == 0), failed + int(status != 0)
    return passed, failed


def meson_tests(suite, pattern):
    """Names of the suite's tests that the pattern chooses."""
    listed = subprocess.run(["meson", "test", "-C", BUILD, "--list", "--suite", suite], cwd=REPO,
                            capture_output=True, text=True).stdout
    names = [line.split("/ ")[-1].strip() for line in listed.split("\n") if "/ " in line]
    return [n for n in names if pattern in n or pattern == suite]


# What sanitizers are told, unless somebody told them. Freed blocks that they keep aside count as a
# server's memory: 64 MiB of them are enough to see stale pointers.
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=1:quarantine_size_mb=64",
              "UBSAN_OPTIONS": "halt_on_error=1",
              "LSAN_OPTIONS": f"suppressions={REPO}/tests/lsan.supp:print_suppressions=0"}


def meson(suite, pattern):
    names = meson_tests(suite, pattern)
    if not names:
        return 0, 0
    status, _ = run("meson", "test", "-C", BUILD, "--no-rebuild", "--print-errorlogs", "--suite",
                    suite, *names)
    with open(os.path.join(REPO, BUILD, "meson-logs", "testlog.json")) as log:
        results = [json.loads(line)["result"] for line in log]
    passed = sum(result == "OK" for result in results)
    return passed, len(results) - passed or int(status != 0)


def sim(pattern):
    """The simulators; the table of throughput is the same under sanitizers, so only without."""
    folder = os.path.join(BUILD, "tests", "sim")
    if pattern not in "sim" or not os.path.exists(os.path.join(REPO, folder, "nj-sim")):
        return 0, 0
    runs = [("nj-sim", "--seeds", str(SIM_SEEDS)), ("nj-tcpsim", "--seeds", str(TCPSIM_SEEDS))]
    if not os.environ.get("NJ_SANITIZED"):
        runs.append(("nj-tcpsim", "--golden-check", "tests/sim/golden.txt"))
    with concurrent.futures.ThreadPoolExecutor(len(runs)) as side_by_side:
        failed = sum(side_by_side.map(
            lambda words: run(os.path.join(folder, words[0]), *words[1:])[0] != 0, runs))
    return len(runs) - failed, failed


def unittests(*paths):
    passed = failed = 0
    for path in paths:
        status, text = run(sys.executable, path, show=False)
        count = int((re.findall(r"^Ran (\d+) test", text, re.M) or ["0"])[-1])
        if status:
            print(text)
        passed, failed = passed + (count if status == 0 else 0), failed + int(status != 0)
    return passed, failed


def tidy(pattern):
    """The house rules, which are the same in every build."""
    if pattern not in "tidy" or os.environ.get("NJ_SANITIZED"):
        return 0, 0
    runs = [summary_of(*run(sys.executable, "tests/tidy/tidy.py")),
            unittests(*(f"tests/tidy/test_{name}.py" for name in ("tidy", "rfc", "ewyk", "page")))]
    passed, failed = (sum(column) for column in zip(*runs))
    return passed, failed


def guard(pattern):
    """Instructions per request, of the release build: sanitizers have other reasons to count."""
    if pattern not in "guard" or os.environ.get("NJ_SANITIZED"):
        return 0, 0
    runs = [unittests("tests/guard/test_guard.py")]
    if os.path.exists(os.path.join(REPO, RELEASE, "perf", "exchange", "nj-exchange")):
        runs.append(summary_of(*run("env", f"NJ_BUILD={RELEASE}", sys.executable, "perf/guard.py")))
    passed, failed = (sum(column) for column in zip(*runs))
    return passed, failed


def package(pattern):
    """What is installed: the release build's binaries, and what users compile and link with."""
    paths = {"package_hardening": "hardening", "package_pkg_config": "pkg_config"}
    if os.environ.get("NJ_SANITIZED"):
        return 0, 0
    return unittests(*(f"tests/package/test_{name}.py" for key, name in paths.items()
                       if pattern in key))


def nic(pattern):
    """
    Two drivers of PCI NICs, in a guest. It is emulated, so only the release build is quick. Where
    its packages are not to be had, it is no failure unless it was asked for.
    """
    if pattern not in "nic.quick" or os.environ.get("NJ_SANITIZED") or os.geteuid() != 0:
        return 0, 0
    optional = [] if pattern else ["--optional"]
    runs = [unittests("tests/nic/test_nic.py"),
            summary_of(*run("env", f"NJ_BUILD={RELEASE}", sys.executable, "tests/nic/run.py",
                            "--quick", *optional))]
    passed, failed = (sum(column) for column in zip(*runs))
    return passed, failed


def e2e(pattern):
    return summary_of(*run(sys.executable, "tests/e2e/run.py", *([pattern] if pattern else [])))


def main():
    for name, value in SANITIZERS.items():
        os.environ.setdefault(name, value)
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""

    def chosen(whole_suite):
        return whole_suite if pattern == "portable" else pattern
    portable = {
        "unit": lambda: meson("unit", chosen("unit")),
        "fuzz corpora": lambda: meson("fuzz", chosen("fuzz")),
        "packet scripts": lambda: script(chosen("script")),
        "simulator": lambda: sim(chosen("sim")),
    }
    others = {
        "tidy": lambda: tidy(pattern),
        "guard": lambda: guard(pattern),
        "package": lambda: package(pattern),
        "nic": lambda: nic(pattern),
        "end to end": lambda: e2e(pattern),
    }
    suites = {"threads": {"threads": lambda: meson("threads", pattern)},
              "portable": portable}.get(pattern, portable | others)
    lines, total = [], [0, 0]
    for name, suite in suites.items():
        began = time.monotonic()
        passed, failed = suite()
        total = [total[0] + passed, total[1] + failed]
        if passed + failed:
            lines.append(f"  {name:<14} {passed:5} passed {failed:5} failed "
                         f"{time.monotonic() - began:7.1f} s")
    print(f"\n{BUILD}:", *lines, sep="\n")
    if not sum(total):
        what = "has this name and runs under sanitizers" if os.environ.get("NJ_SANITIZED") else \
            "has this in its name"
        print(f"{pattern!r}: no test {what}")
        return 1
    print(f"{total[0]} passed, {total[1]} failed")
    return int(total[1] > 0)


if __name__ == "__main__":
    sys.exit(main())
