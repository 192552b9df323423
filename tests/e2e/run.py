# SPDX-License-Identifier: BSD-3-Clause
"""
    run.py [PATTERN]         the tests whose name contains the pattern, on the build in NJ_BUILD;
                             all of them with the pattern `e2e`
    run.py --whole           each test once, on the build that it is for
    run.py --list [PATTERN]  prints names and runs no test
    run.py --child RESULTS NAME...
                             these tests in this process, with a line of JSON for each in RESULTS

Each class of tests runs in a process of its own, WIDTH of them at a time. Attributes of a class, or
of its module in capital letters, say how:

    plain_build = "memory"   a whole run takes the plain build, for one of REASONS. Other tests run
                             with sanitizers.
    without_sanitizers = True  the tests cannot run with sanitizers
    alone = True             no other test runs beside, because it would change what is measured

A whole run repeats a failed test at the end, alone. A test that passes then is unstable: it counts
as passed, and both outputs are kept. More than UNSTABLE_MAX are a failure. Faults of the server are
never repeated away (is_fault()).
"""
import argparse
import collections
import contextlib
import json
import math
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from tests import builds
from tests.netlab import limits, world
from tests.netlab.ended import ended, ended_by_parent, exit_with

HERE = os.path.dirname(os.path.abspath(__file__))
RUNS = os.path.join(HERE, "flaky.jsonl")  # flaky.py describes it
WIDTH = 4
TEST_SECONDS = 600  # before time_limit()
REASONS = ("rights", "memory", "speed", "start", "upgrade", "crash", "system calls")
UNSTABLE_MAX = 3

Job = collections.namedtuple("Job", "name tests build alone")  # `tests`: their names

# Crashes, reports of sanitizers and leaks, in the message of an exception or the servers' output.
FAULT = re.compile(
    r"Sanitizer|runtime error: |assertion failed| crashed: |the server (died|is dead)|leak: in use"
    r"|killed by SIG(SEGV|ABRT|BUS|ILL|FPE|SYS|TRAP)"
    r"|(!=|ended (with|at .*:)|status( was)?) (-(4|5|6|7|8|11|31)|99)\b")
# Wrong bytes, in the message of an assertion: it compares bytes or checksums.
WRONG_BYTES = re.compile(r"wrong (body|bytes)|\bb['\"]|\b[0-9a-f]{64}\b")


def is_fault(error, said=""):
    """
    Is the server at fault, and not the time that something took? `error`: the exception of a test;
    `said`: what the servers wrote.
    """
    message = str(error)
    return bool(FAULT.search(message) or FAULT.search(said) or
                isinstance(error, AssertionError) and WRONG_BYTES.search(message))


def name_of(test):
    """The name of the test without the package; for the set-up of a class the name of the class."""
    name = test.id()
    set_up = re.fullmatch(r"\w+ \((.*)\)", name)
    return (set_up[1] if set_up else name).removeprefix(f"{__package__}.")


def attribute(test, name):
    module = sys.modules[type(test).__module__]
    return getattr(test, name, getattr(module, name.upper(), None))


def build_for(test):
    """The build on which a whole run tests."""
    reason = attribute(test, "plain_build")
    if reason and reason not in REASONS:
        raise ValueError(f"{name_of(test)}: plain_build is none of {', '.join(REASONS)}")
    plain = reason or attribute(test, "without_sanitizers")
    return builds.PLAIN if plain else builds.SANITIZED


def flat(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flat(item)
        else:
            yield item


def all_tests():
    tests = list(flat(unittest.defaultTestLoader.discover(HERE, "test_*.py", world.REPO)))
    for test in tests:
        if isinstance(test, unittest.loader._FailedTest):
            raise SystemExit(f"FAIL {test._testMethodName}: {test._exception}\n0 passed, 1 failed")
    return tests


def jobs_of(tests, build=None):
    """A job for each class; for the build of a whole run if `build` is None."""
    found = collections.defaultdict(list)
    for test in tests:
        found[name_of(test).rpartition(".")[0]].append(test)
    return [Job(name, [name_of(test) for test in tests], build or build_for(tests[0]),
                bool(attribute(tests[0], "alone"))) for name, tests in found.items()]


# --- a process with tests ---------------------------------------------------------------------

class Lines(unittest.TestResult):
    """Prints a line per test, below it the error of a failed test, and writes the results."""

    def __init__(self, results):
        super().__init__()
        self.results = results
        self.at = "the first test"
        self.began = time.monotonic()

    def startTest(self, test):
        super().startTest(test)
        self.began, self.at = time.monotonic(), name_of(test)
        limit_test()

    def stopTest(self, test):
        limit_test()  # of the next set-up
        super().stopTest(test)

    def say(self, test, text=None, error=None):
        seconds = time.monotonic() - self.began
        name = name_of(test)
        print(f"{'ok  ' if text is None else 'FAIL'} {name.removeprefix('test_')} "
              f"({seconds:.1f} s)", flush=True)
        if text is not None:
            print("     " + text.rstrip().replace("\n", "\n     "), flush=True)
        json.dump({"test": name, "seconds": round(seconds, 2), "limit": TEST_SECONDS} |
                  ({} if text is None else {"failure": first_line(error or text),
                                            "fault": is_fault(error, world.all_errors())}),
                  self.results)
        print(file=self.results, flush=True)

    def addSuccess(self, test):
        self.say(test)

    def addFailure(self, test, err):
        self.say(test, self._exc_info_to_string(err, test), err[1])

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.say(test, f"{subtest}\n" + self._exc_info_to_string(err, test), err[1])

    def addSkip(self, test, reason):
        self.say(test, f"skipped: {reason}")


def first_line(error):
    """The kind of an exception and the first line of its message."""
    line = str(error).strip().split("\n")[0][:200]
    return f"{type(error).__name__}: {line}" if isinstance(error, BaseException) else line


def limit_test():
    signal.alarm(int(limits.time_limit(TEST_SECONDS)))


def too_long(*_):
    raise TimeoutError(f"the test took longer than {limits.time_limit(TEST_SECONDS):.0f} s")


def child(path, names):
    """Runs these tests in this process. Returns the exit status."""
    signal.signal(signal.SIGALRM, too_long)
    signal.signal(signal.SIGTERM, ended)
    ended_by_parent(signal.SIGTERM)
    limits.calibrate()
    limit_test()
    with open(path, "w", encoding="utf-8") as results:
        lines = Lines(results)
        tests = flat(unittest.defaultTestLoader.loadTestsFromNames(
            [f"{__package__}.{name}" for name in modules_of(names)]))
        try:
            unittest.TestSuite(t for t in tests if name_of(t) in names).run(lines)
        except BaseException:
            print(f"stopped in {lines.at}", flush=True)
            raise
    return 0


def modules_of(names):
    return sorted({name.split(".")[0] for name in names})


# --- processes --------------------------------------------------------------------------------

class Running:
    """
    The process of a job. With `shows` it has our standard output. As the servers it has a session
    of its own, for which the kernel's scheduler has a share of the CPUs (autogroup).
    """

    def __init__(self, job, shows=False, beside=False):
        """`beside`: do other tests run at the same time?"""
        self.job, self.began = job, time.monotonic()
        self.out = None if shows else tempfile.TemporaryFile("w+", errors="replace")
        self.results = tempfile.NamedTemporaryFile("r", encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.run", "--child", self.results.name, *job.tests],
            cwd=builds.REPO, env=self.environment(beside),
            stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.out, start_new_session=True)
        self.fd = os.pidfd_open(self.process.pid)

    def environment(self, beside):
        """Benchmarks with priority would stop the servers of the tests beside them for seconds."""
        env = builds.environment(self.job.build)
        env.pop("NJ_NO_PRIORITY", None)
        return env | ({"NJ_NO_PRIORITY": "1"} if beside else {})

    def end(self):
        """(output, a list with a dict for each test) after the end of the process"""
        status = self.process.wait()
        os.close(self.fd)
        text = ""
        if self.out:
            self.out.seek(0)
            text = self.out.read()
            self.out.close()
        seconds = round(time.monotonic() - self.began, 1)
        found = [json.loads(line) | {"class_seconds": seconds} for line in self.results]
        self.results.close()
        missing = set(self.job.tests) - {row["test"] for row in found}
        if status or missing and not any("failure" in row for row in found):
            line = f"{self.job.name}: the process of the tests ended: {world.exit_text(status)}"
            found.append({"test": self.job.name, "failure": line, "seconds": 0, "fault": True,
                          "limit": TEST_SECONDS, "class_seconds": seconds})
            text += f"FAIL {line}\n"
        return text, found

    def terminate(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()


def finished(running):
    """Waits until one of the processes has ended, and returns it."""
    ended_fds, _, _ = select.select([each.fd for each in running], [], [])
    return next(each for each in running if each.fd in ended_fds)


def seconds_of_classes():
    """{class: seconds of its last run in RUNS}"""
    found = {}
    with contextlib.suppress(OSError), open(RUNS, encoding="utf-8") as f:
        for line in f:
            with contextlib.suppress(ValueError, KeyError):  # a call was interrupted
                row = json.loads(line)
                tests = (seconds[0] if isinstance(seconds, list) else seconds
                         for seconds in row["tests"].values())
                found[row["class"]] = row["seconds"] if "seconds" in row else sum(tests)
    return found


def run_jobs(jobs, width, done):
    """
    Runs jobs side by side, the longest first, then each that runs alone. Calls done(job, output,
    results).
    """
    seconds = seconds_of_classes()
    waiting = collections.deque(
        sorted(jobs, key=lambda job: (job.alone, -seconds.get(job.name, math.inf))))
    running, shows = [], len(jobs) == 1
    try:
        while waiting or running:
            while waiting and len(running) < width and not any(r.job.alone for r in running) \
                    and not (waiting[0].alone and running):
                job = waiting.popleft()
                running.append(Running(job, shows, beside=not (job.alone or shows)))
            ready = finished(running)
            running.remove(ready)
            done(ready.job, *ready.end())
    except BaseException:
        for each in running:
            each.terminate()
        with contextlib.suppress(OSError):  # our standard output may have no reader any more
            for each in running:
                print(each.end()[0], end="", flush=True)
        raise


class Results:
    def __init__(self):
        self.rows, self.outputs = [], {}

    def add(self, job, output, rows):
        print(output, end="", flush=True)
        for row in rows:
            self.rows.append(row)
            if "failure" in row:
                self.outputs[row["test"]] = (job, output)

    def counts(self):
        """(passed, failed); a test may have several failures."""
        failed = {row["test"] for row in self.rows if "failure" in row}
        return len({row["test"] for row in self.rows} - failed), len(failed)


def run_again(results):
    """Repeats failed tests alone, prints those that pass, and counts them as passed."""
    faults = {row["test"] for row in results.rows if row.get("fault")}
    again = {name: found for name, found in results.outputs.items() if name not in faults}
    folder, unstable = os.path.join(builds.REPO, builds.PLAIN, "unstable"), []
    shutil.rmtree(folder, ignore_errors=True)
    if len(again) > UNSTABLE_MAX:
        print(f"{len(again)} tests failed: more than {UNSTABLE_MAX} are not repeated")
        return
    for name, (job, first) in again.items():
        tests = [name] if name in job.tests else job.tests  # the set-up of a class
        print(f"again: {name}", flush=True)
        second, rows = Running(job._replace(tests=tests)).end()
        print(second, end="", flush=True)
        if any("failure" in row for row in rows):
            continue
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, name + ".txt")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"{first}\n--- again, alone ---\n{second}")
        unstable.append((name, path))
        results.rows = [row for row in results.rows if row["test"] != name] + rows
    if unstable:
        print("unstable:", *(f"  {name}: failed, and passed alone: "
                             f"{os.path.relpath(path, builds.REPO)}" for name, path in unstable),
              sep="\n")


def main():
    parser = argparse.ArgumentParser(prog="run.py")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--child", metavar="RESULTS")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.child:
        return child(options.child, options.names)
    pattern = "".join(options.names[:1])
    chosen = [t for t in all_tests() if (pattern in name_of(t) or pattern == "e2e") and
              not (world.SANITIZED and attribute(t, "without_sanitizers"))]
    if options.list:
        print("".join(name_of(t) + "\n" for t in chosen), end="")
        return 0
    if chosen and os.geteuid() != 0:
        print("FAIL the end-to-end tests need root (namespaces, a tap): sudo ./dev test")
        print(f"0 passed, {len(chosen)} failed")
        return 1
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ended)
    build, results = os.environ.get("NJ_BUILD", builds.PLAIN), Results()
    run_jobs(jobs_of(chosen, None if options.whole else build), WIDTH, results.add)
    if options.whole:
        run_again(results)
    passed, failed = results.counts()
    print(f"{passed} passed, {failed} failed", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    exit_with(main)
