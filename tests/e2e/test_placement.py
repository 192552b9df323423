# SPDX-License-Identifier: BSD-3-Clause
"""CPUs of the threads, messages about them, and the output of --print-placement."""
import glob
import os
import subprocess
import tempfile
import unittest

from tests.netlab.limits import time_limit
from tests.netlab.world import World, server_for_nobody

PLAIN_BUILD = "start"
FILE_TASKS = 4  # NJ_FILE_TASKS_MAX


def threads(pid):
    """{name of a thread: [set of CPUs for each thread of that name]} of a process."""
    found = {}
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        with open(path) as f:
            status = dict(line.split(":", 1) for line in f)
        cpus = set()
        for part in status["Cpus_allowed_list"].strip().split(","):
            first, _, last = part.partition("-")
            cpus |= set(range(int(first), int(last or first) + 1))
        found.setdefault(status["Name"].strip(), []).append(cpus)
    return found


class Threads(unittest.TestCase):
    def start(self, lcores, *options):
        world = World("null", root="/run", lcores=lcores, options=options)
        self.addCleanup(world.close)
        world.make_namespaces()
        world.start()
        return world

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two CPUs")
    def test_no_other_thread_on_the_cpu_of_a_polling_lcore(self):  # EWYK 5.54
        polled = min(os.sched_getaffinity(0))
        world = self.start(f"0@{polled}", "--workers", "2")
        found = threads(world.server.process.pid)
        there = [name for name, sets in found.items() for cpus in sets if polled in cpus]
        self.assertEqual(1, len(there), found)  # the lcore itself
        # Two workers for handlers, the others for files.
        self.assertEqual({f"nj-worker-{i}" for i in range(2 + FILE_TASKS)},
                         {name for name in found if name.startswith("nj-worker")})
        self.assertNotIn("every CPU has an lcore", world.errors())
        self.assertEqual(0, world.stop(), world.errors())

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two CPUs")
    def test_warning_if_every_cpu_has_an_lcore(self):
        world = self.start(len(os.sched_getaffinity(0)))
        self.assertRegex(world.errors(),
                         r"nightjar: warning: every CPU has an lcore: .*; better: -l \d")
        self.assertEqual(0, world.stop(), world.errors())


class Print(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="nj-placement-")
        cls.addClassCleanup(folder.cleanup)
        cls.program, cls.variables = server_for_nobody(folder.name)

    def run_it(self, *args, machine=None):
        env = dict(os.environ, **self.variables,
                   **({"HWLOC_SYNTHETIC": machine} if machine else {}))
        return subprocess.run([self.program, *args], capture_output=True, text=True, env=env,
                              timeout=time_limit(), preexec_fn=lambda: os.setuid(65534))

    def test_placement_for_this_machine_without_root(self):
        done = self.run_it("--print-placement")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertRegex(done.stdout, r"(?m)^    cpu \d+ +polls queue 0")
        self.assertRegex(done.stdout, r"(?m)^worker 0: CPU \d")
        self.assertRegex(done.stdout, r"\nEAL arguments: -l \d+[-,0-9]*( --socket-mem [0-9,]+)?\n$")

    def test_a_nic_that_is_not_there(self):
        done = self.run_it("-a", "0000:fe:1f.7", "--", "--print-placement")
        self.assertEqual(0, done.returncode)
        self.assertIn("-a 0000:fe:1f.7: no such PCI device", done.stderr)

    def test_two_sockets(self):
        done = self.run_it("--", "--print-placement", "--workers", "2",
                           machine="pack:2 [numa] l3:1 core:2 pu:2")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn("cpu 0   polls queue 0\n    cpu 1   worker 0, files, all else\n",
                      done.stdout)
        self.assertIn("EAL arguments: -l 0,2 --socket-mem 400,0\n", done.stdout)
        done = self.run_it("--", "--print-placement", "--mtu", "9000",
                           machine="pack:2 [numa] l3:1 core:2 pu:2")
        self.assertIn("EAL arguments: -l 0,2 --socket-mem 600,0\n", done.stdout, "jumbo frames")

    def test_given_lcores(self):
        done = self.run_it("-l", "0,1", "--", "--print-placement", "--workers", "1",
                           machine="core:2 pu:2")
        self.assertEqual(0, done.returncode)
        self.assertIn("cpu 1   polls queue 1\n", done.stdout)
        self.assertIn("worker 0: CPU 2-3,", done.stdout)
        self.assertIn("two threads of one core", done.stderr)
        self.assertTrue(done.stderr.endswith("; better: -l 0,2\n"), done.stderr)

    def test_invalid_lcores(self):
        done = self.run_it("--lcores", "(0,1)@0", "--", "--print-placement")
        self.assertEqual(2, done.returncode)
        self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)

    def test_too_many_workers(self):
        done = self.run_it("--", "--workers", "33", "--print-placement")
        self.assertEqual(2, done.returncode)
        self.assertEqual("nightjar: --workers 33: expected a number from 1 to 32\n", done.stderr)
