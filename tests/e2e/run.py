# SPDX-License-Identifier: BSD-3-Clause
"""
Runs the end-to-end tests whose name contains the pattern and prints a line for each. Without a
pattern and with the pattern `e2e` it runs all tests. `--list PATTERN` prints the names and runs no
test. Each test has a deadline. The tests of classes with `mostly_waits` run in a second process at
the same time; their lines are printed at the end. Modules with WITHOUT_SANITIZERS do not run under
sanitizers.
"""
import contextlib
import os
import re
import signal
import sys
import tempfile
import time
import unittest

from tests.netlab import world
from tests.netlab.ended import ended, exit_with

HERE = os.path.dirname(os.path.abspath(__file__))

TEST_SECONDS_MAX = 120 * world.SLOW


def name_of(test):
    """The name of the test without the package."""
    return test.id().removeprefix(f"{__package__}.")


def runs_in_this_build(test):
    module = sys.modules[type(test).__module__]
    return not (world.SANITIZED and getattr(module, "WITHOUT_SANITIZERS", False))


def flat(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flat(item)
        else:
            yield item


class Lines(unittest.TestResult):
    """Prints one line per test, and below it the error of a failed test."""

    def __init__(self):
        super().__init__()
        self.passed = self.failed = 0
        self.at = "the first test"
        self.began = time.monotonic()

    def startTest(self, test):
        super().startTest(test)
        self.began, self.at = time.monotonic(), name_of(test)
        signal.alarm(TEST_SECONDS_MAX)

    def stopTest(self, test):
        signal.alarm(0)
        super().stopTest(test)

    def say(self, word, test, text=""):
        name = name_of(test).removeprefix("test_")
        print(f"{word:<4} {name} ({time.monotonic() - self.began:.1f} s)", flush=True)
        if text:
            print("     " + text.rstrip().replace("\n", "\n     "), flush=True)

    def addSuccess(self, test):
        self.passed += 1
        self.say("ok", test)

    def addFailure(self, test, err):
        self.failed += 1
        self.say("FAIL", test, self._exc_info_to_string(err, test))

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.addFailure(subtest, err)

    def addSkip(self, test, reason):
        self.failed += 1
        self.say("FAIL", test, f"skipped: {reason}")


def too_long(*_):
    raise TimeoutError(f"the test took longer than {TEST_SECONDS_MAX} s")


class SecondProcess:
    """Tests that run in a second process."""

    def __init__(self, tests):
        self.out = tempfile.TemporaryFile("w+", errors="replace")
        self.pid = os.fork()
        if self.pid > 0:
            return
        status = 1
        try:
            os.dup2(self.out.fileno(), 1)
            os.dup2(self.out.fileno(), 2)
            status = run(tests)
        finally:
            os._exit(status)  # without closing files of the parent

    def end(self):
        """Waits for the process and prints its output. Returns (passed, failed)."""
        _, status = os.waitpid(self.pid, 0)
        self.out.seek(0)
        *lines, last = self.out.read().splitlines() or [""]
        print(*lines, sep="\n")
        counts = re.fullmatch(r"(\d+) passed, (\d+) failed", last)
        if not counts:
            print("FAIL the tests in the second process: " + last)
        passed, failed = map(int, counts.groups()) if counts else (0, 0)
        return passed, failed or int(status != 0 or not counts)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)


def run(tests, second=None):
    signal.signal(signal.SIGALRM, too_long)
    signal.signal(signal.SIGTERM, ended)
    result = Lines()
    try:
        unittest.TestSuite(tests).run(result)
        passed, failed = second.end() if second else (0, 0)
    except BaseException:
        if second:
            second.kill()
        print(f"stopped in {result.at}", flush=True)
        raise
    print(f"{result.passed + passed} passed, {result.failed + failed} failed", flush=True)
    return int(result.failed + failed > 0)


def main():
    listed = sys.argv[1:2] == ["--list"]
    pattern = "".join(sys.argv[1 + listed:][:1])
    found = flat(unittest.defaultTestLoader.discover(HERE, "test_*.py", world.REPO))
    chosen = [t for t in found
              if (pattern in name_of(t) or pattern == "e2e") and runs_in_this_build(t)]
    if listed:
        print("".join(name_of(t) + "\n" for t in chosen), end="")
        return 0
    if chosen and os.geteuid() != 0:
        print("FAIL the end-to-end tests need root (namespaces, a tap): sudo ./dev test")
        print(f"0 passed, {len(chosen)} failed")
        return 1
    waiting = [t for t in chosen if getattr(t, "mostly_waits", False)]
    others = [t for t in chosen if t not in waiting]
    return run(others, SecondProcess(waiting) if waiting else None)


if __name__ == "__main__":
    exit_with(main)
