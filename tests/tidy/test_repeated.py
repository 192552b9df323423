# SPDX-License-Identifier: BSD-3-Clause
"""What a whole run counts (all.py), and which failed end-to-end tests it repeats (e2e/run.py)."""
import contextlib
import io
import os
import tempfile
import unittest
from unittest import mock

from tests import all as suites
from tests import builds
from tests.e2e import run
from tests.tidy import tidy

JOB = run.Job("test_x.X", ["test_x.X.test_a", "test_x.X.test_b"], builds.PLAIN, False)
LATE = "not within 60 s: the response sent"
FAULTS = (  # messages of exceptions
    "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1",
    "==7==ERROR: LeakSanitizer: detected memory leaks",
    "../lib/h2/x.c:5:3: runtime error: signed integer overflow",
    "WARNING: ThreadSanitizer: data race",
    "nightjar: ../lib/tcp/x.c:9: assertion failed: n > 0",
    "nightjar: 0.1.0 crashed: SIGSYS by system call 146 in thread rte-worker-1",
    "the server died: -11",
    "leak: in use when idle [], now [{'connections': 1}]",
    "the server ended before it was ready: killed by SIGABRT",
    "the server's exit status was 99 after SIGTERM",
    "nightjar-load ended with -11: ",
    "the program ended at live 1 25: -11\n",
    "0 != -11 : ",
    "0 != 99",
    "b'abc' != b'abd'",
    "Tuples differ: (200, b'abc') != (200, b'abd')",
    f"'{'0' * 64}' != '{'1' * 64}'",
    f"Items in the first set but not the second:\n'{'0' * 64}'",
    "Lists differ: [] != ['wrong body of /one']",
    "0 != 3 : wrong bytes",
)
NO_FAULTS = (LATE, "the test took longer than 300 s", "1 != 2", "10 != 11",
             "(9, 0, 0) != (10, 0, 0)", "[Errno 104] Connection reset by peer",
             "0 != 3 : curl: (28) timed out",
             "Command 'curl' timed out after 60 seconds")


def failed(name, fault=False):
    return {"test": name, "seconds": 1, "limit": 300, "failure": "late", "fault": fault}


def passed(name):
    return {"test": name, "seconds": 1, "limit": 300}


class Faults(unittest.TestCase):
    def test_what_is_a_fault_of_the_server(self):
        for text in FAULTS:
            with self.subTest(text=text):
                self.assertTrue(run.is_fault(AssertionError(text)))

    def test_what_servers_write(self):
        self.assertTrue(run.is_fault(TimeoutError(LATE), "nightjar: 0.1.0 crashed: SIGSEGV"))
        self.assertFalse(run.is_fault(TimeoutError(LATE), "nightjar: info: ready"))

    def test_what_may_be_the_machine(self):
        for text in NO_FAULTS:
            with self.subTest(text=text):
                self.assertFalse(run.is_fault(AssertionError(text)))


class Again(unittest.TestCase):
    def again(self, rows, second):
        """(which tests were repeated, how many have then passed and failed)"""
        results, repeated = run.Results(), []

        class Repeated:
            def __init__(self, job):
                repeated.append(job.tests)

            def end(self):
                return "second output\n", second
        with contextlib.redirect_stdout(io.StringIO()) as said, \
                mock.patch.object(run, "Running", Repeated), \
                mock.patch.object(run, "open", mock.mock_open(), create=True) as file, \
                mock.patch.object(run.os, "makedirs"), mock.patch.object(run.shutil, "rmtree"):
            results.add(JOB, "first output\n", rows)
            run.run_again(results)
        self.said, self.kept = said.getvalue(), "".join(c.args[0] for c in file().write.mock_calls)
        return repeated, results.counts()

    def test_a_test_that_passes_alone_is_unstable(self):
        name, other = JOB.tests
        self.assertEqual(([[name]], (2, 0)),
                         self.again([failed(name), passed(other)], [passed(name)]))
        self.assertRegex(self.said, rf"(?m)^unstable:\n  {name}: ")
        for text in ("first output", "second output"):
            self.assertIn(text, self.kept)

    def test_one_that_fails_again_has_failed(self):
        name = JOB.tests[0]
        self.assertEqual(([[name]], (0, 1)), self.again([failed(name)], [failed(name)]))
        self.assertNotIn("unstable:", self.said)

    def test_a_fault_is_not_repeated(self):
        self.assertEqual(([], (0, 1)), self.again([failed(JOB.tests[0], True)], []))

    def test_a_fault_of_the_second_run_counts(self):
        name = JOB.tests[0]
        self.assertEqual((0, 1), self.again([failed(name)], [failed(name, True)])[1])

    def test_the_set_up_of_a_class_is_repeated_with_all_its_tests(self):
        rows = [passed(name) for name in JOB.tests]
        self.assertEqual(([JOB.tests], (2, 0)), self.again([failed(JOB.name)], rows))

    def test_more_than_three_are_not_repeated(self):
        rows = [failed(f"test_x.X.test_{i}") for i in range(run.UNSTABLE_MAX + 1)]
        self.assertEqual(([], (0, 4)), self.again(rows, []))


class Builds(unittest.TestCase):
    def test_each_test_has_one_build(self):
        jobs = run.jobs_of(run.all_tests())
        names = [name for job in jobs for name in job.tests]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual({builds.PLAIN, builds.SANITIZED}, {job.build for job in jobs})


class Stages(unittest.TestCase):
    def whole(self, status, rows):
        """The closing line of a run whose stages end with `status` after these rows."""
        def stage(_, env, **more):
            with mock.patch.object(suites, "BUILD", env["NJ_BUILD"]):
                for name, *counts in rows:
                    suites.append_stage(f"{suites.BUILD}: {name}", *counts, 1.0)
            return mock.Mock(returncode=status)
        with tempfile.NamedTemporaryFile() as file, \
                mock.patch.dict(os.environ, NJ_STAGES=file.name), \
                mock.patch.object(suites.subprocess, "run", stage), \
                mock.patch.object(suites.verified, "head", lambda: None), \
                mock.patch.object(suites, "run", lambda *_: (0, "5 passed, 0 failed\n")), \
                contextlib.redirect_stdout(io.StringIO()) as said:
            suites.append_stage("build: compile", 0, 0, 9.0)
            failed = suites.whole([])
        return failed, said.getvalue().splitlines()[-1]

    def test_all_pass(self):
        self.assertEqual((0, "11 passed, 0 failed"), self.whole(0, [("unit", 2, 0)]))

    def test_a_failed_test(self):
        self.assertEqual((1, "11 passed, 3 failed"), self.whole(1, [("unit", 2, 1)]))

    def test_a_stage_that_ends_early(self):
        self.assertEqual((1, "5 passed, 3 failed"), self.whole(-9, []))
        self.assertEqual((1, "11 passed, 3 failed"), self.whole(1, [("unit", 2, 0)]))


class Verified(unittest.TestCase):
    def test_age(self):
        for age, found in ((0, 0), (tidy.MUTANTS_MAX - 1, 0), (tidy.MUTANTS_MAX, 1)):
            with self.subTest(age=age):
                self.assertEqual(found, len(list(tidy.rule_mutants(age))))


if __name__ == "__main__":
    unittest.main()
