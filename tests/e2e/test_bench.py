# SPDX-License-Identifier: BSD-3-Clause
"""Short runs of ./dev bench serve and ./dev bench echo: their results match the requested load."""
import contextlib
import errno
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from perf.bench import apart, attacks, serve
from perf.bench.echo import TESTPMD, Echo
from perf.bench.hugepages import Memory
from perf.bench.pair import FILES, Pair
from tests.netlab import priority, reaper
from tests.netlab.limits import time_limit
from tests.netlab.world import REPO, Failed

# Sanitizers check the programs in other tests. The calls of the programs need no sanitizer.
WITHOUT_SANITIZERS = True
SEGMENTS = FILES["200KiB"] // 1448
SECONDS = 0.3
PLAIN = set("rate full ns cycles bytes bytes_full idle busy client_busy p50 p99 p99.9".split())


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "two CPUs are needed")
class Instruments(unittest.TestCase):
    alone = True  # its programs have a high priority

    @classmethod
    def setUpClass(cls):
        cls.memory = Memory()
        cls.addClassCleanup(cls.memory.reaper.finish)

    def measure(self, link, shape, *more):
        with Pair(link, self.memory) as pair:
            found = pair.measure(shape, SECONDS, *more)
        self.assertLessEqual(PLAIN, found.keys())
        self.assertAlmostEqual(1, found["busy"] + found["idle"])
        self.assertAlmostEqual(1e9, found["ns"] * found["full"], delta=1)
        return found

    def test_over_memif(self):
        found = self.measure("memif", "200KiB")
        self.assertGreaterEqual(found["tx_packets"], SEGMENTS * 0.9)
        self.assertNotIn("connection_bytes", found)

    def test_over_virtio_segments_are_not_cut(self):
        self.assertLess(self.measure("virtio", "200KiB")["tx_packets"], SEGMENTS / 2)

    def test_what_becomes_of_attackers(self):
        counters = {"slowloris": "h1_head_timeout", "slow-post": "body_slow",
                    "idle": "conn_timeout", "flood": "status_4xx", "requests": "status_2xx"}
        self.assertEqual(set(counters), set(attacks.ATTACKS))
        with attacks.Site(self.memory, 0.8) as site:
            for name, counter in counters.items():
                with self.subTest(name):
                    attack = attacks.ATTACKS[name]._replace(connections=40)
                    values, counted = site.turn(attack, 1000 if attack.rate else 0)
                    self.assertGreater(counted[counter], 20)
                    self.assertEqual(0, counted["status_5xx"])
                    self.assertGreater(values["ratio_p99"], 0)

    @unittest.skipUnless(shutil.which(TESTPMD), f"no {TESTPMD}: it is in Debian's dpdk-dev")
    def test_the_echo(self):
        for link, n_bytes in (("memif", 80), ("virtio", 65226)):
            with self.subTest(link=link), Echo(link, n_bytes, self.memory) as echo:
                found = echo.measure(SECONDS)  # fails if the returned frames differ
                self.assertGreater(found["full"], 0)


def restore_sigint():
    """A background process of a shell inherits SIG_IGN for SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Interrupted(unittest.TestCase):
    def test_finished_rounds_are_printed(self):
        """Ctrl-C in a terminal: all processes of the group receive SIGINT."""
        with subprocess.Popen(
                [sys.executable, "-m", "perf.bench.h2load", "--rounds", "99", "16x32/128"],
                cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                start_new_session=True, preexec_fn=restore_sigint) as bench:
            try:
                begin, char = "", "."
                while "round 2 of 99" not in begin and char:
                    char = bench.stderr.read(1)
                    begin += char
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(bench.pid, signal.SIGINT)
                out, err = bench.communicate(timeout=time_limit())
            finally:
                bench.kill()
        self.assertEqual(130, bench.returncode, out + begin + err)
        n_done = re.search(r"interrupted: this is of ([1-9]\d*) of 99 rounds", err)[1]
        self.assertRegex(out, rf"\({n_done} rounds\)\n16x32/128 +[1-9]")


class Help(unittest.TestCase):
    def test_help_of_each_program(self):
        for path in glob.glob(os.path.join(REPO, "perf", "bench", "*.py")):
            with open(path) as f:
                if '__name__ == "__main__"' not in f.read():
                    continue
            name = os.path.basename(path).removesuffix(".py")
            with self.subTest(name):
                run = subprocess.run([sys.executable, "-m", f"perf.bench.{name}", "--help"],
                                     cwd=REPO, capture_output=True, text=True, timeout=time_limit())
                self.assertEqual((0, ""), (run.returncode, run.stderr))
                self.assertRegex(run.stdout, "^usage: ")


class Priority(unittest.TestCase):
    THREADS_THAT_END = """
from threading import Thread
while True:
    threads = [Thread(target=int) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""

    def setUp(self):
        variables = mock.patch.dict(os.environ)
        variables.start()
        self.addCleanup(variables.stop)
        os.environ.pop("NJ_NO_PRIORITY", None)

    def test_threads_end_meanwhile(self):
        with subprocess.Popen([sys.executable, "-c", self.THREADS_THAT_END],
                              start_new_session=True) as process:
            try:
                for _ in range(5000):
                    priority.first_of_threads(process.pid)
                self.assertEqual(-20, os.getpriority(os.PRIO_PROCESS, process.pid))
            finally:
                process.kill()

    def test_thread_without_a_group(self):
        refused = OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        with subprocess.Popen(["sleep", "60"], start_new_session=True) as process, \
                mock.patch("tests.netlab.priority.open", side_effect=refused, create=True):
            try:
                priority.first(process.pid)
                self.assertEqual(-20, os.getpriority(os.PRIO_PROCESS, process.pid))
            finally:
                process.kill()


class Plans(unittest.TestCase):
    def test_shapes_with_a_server_of_their_own(self):
        groups = serve.plan(None, None)
        self.assertIn(("memif", ["100k"]), groups)
        self.assertIn(("memif", ["half"]), groups)
        self.assertNotIn(("virtio", ["half"]), serve.plan("virtio", None))
        self.assertIn(("virtio", ["10MiB"]), groups)
        self.assertEqual([("virtio", ["1x1"]), ("virtio", ["200KiB"])],
                         serve.plan("virtio", ["1x1", "200KiB"]))

    def test_other_shapes_run_after_a_failed_one(self):
        class Broken:
            kind = "memif"

            def __init__(self, *_):
                pass

            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            def measure(self, shape, *_):
                if shape == "16x32":
                    raise Failed("why")
                return {"ns": 1}
        bench = serve.Bench(None, 1)
        for name, instead in (("Pair", Broken), ("near", lambda run: run())):
            self.addCleanup(setattr, serve, name, getattr(serve, name))
            setattr(serve, name, instead)
        bench.group("memif", ["1x1", "16x32", "1000x1"], lambda _: None)
        self.assertEqual([("memif", "1x1"), ("memif", "1000x1")], list(bench.results))
        self.assertEqual("why", bench.failed["memif", "16x32"])

    def test_one_run_if_the_cpus_stay_far_apart(self):
        was, looks, runs = apart.apart, [], []
        self.addCleanup(setattr, apart, "apart", was)
        apart.apart = lambda: looks.pop(0) if looks else 400

        def run():
            runs.append(1)
            return {}
        self.addCleanup(setattr, apart, "WAIT_SECONDS", apart.WAIT_SECONDS)
        apart.WAIT_SECONDS = 0
        self.assertEqual({"apart_ns": 400, "apart_before": 0}, apart.near(run))
        self.assertEqual(1, len(runs))
        looks[:] = [60, 300, 60, 70]  # far at the end of a run: it is repeated
        self.assertEqual({"apart_ns": 70, "apart_before": 1}, apart.near(run))
        self.assertEqual(3, len(runs))
        self.assertEqual("", apart.summary([]))


class Hugepages(unittest.TestCase):
    def test_reserved_hugepages_are_freed(self):
        with tempfile.NamedTemporaryFile("w+", encoding="ascii") as f:
            f.write("12\n")
            f.flush()
            was, reaper.HUGEPAGES = reaper.HUGEPAGES, f.name
            self.addCleanup(setattr, reaper, "HUGEPAGES", was)
            for n, left in ((5, 7), (0, 7), (-3, 7), (9, 0)):
                reaper.drop_hugepages(n)
                with open(f.name, encoding="ascii") as now:
                    self.assertEqual(left, int(now.read()))
