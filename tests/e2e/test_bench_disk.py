# SPDX-License-Identifier: BSD-3-Clause
"""
A short run of ./dev bench disk: one round with nightjar alone. The figures are consistent. The
benchmark removes its files, also when SIGKILL ends it.
"""
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from perf.bench import disk
from tests.netlab.limits import time_limit
from tests.netlab.world import REPO, until

PROGRAM = [sys.executable, "-m", "perf.bench.disk"]


class BenchDisk(unittest.TestCase):
    def start(self, folder, *options):
        return subprocess.Popen([*PROGRAM, "--peers", "nightjar", "--large", "32x17", *options],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                cwd=REPO, env=os.environ | {"NJ_BENCH_DIR": folder})

    def left(self, folder, pid):
        return [path for where in (folder, "/run/netns", "/run", "/var/run/dpdk")
                for path in glob.glob(f"{where}/njt-{pid}-*")]

    def test_cold(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)  # the server is user nobody
            path = os.path.join(folder, "run.json")
            process = self.start(folder, "--rounds", "1", "--json", path, "cold")
            out, err = process.communicate(timeout=time_limit())
            self.assertEqual(0, process.returncode, out + err)
            self.assertEqual([], self.left(folder, process.pid))
            with open(path, encoding="utf-8") as f:
                rows = json.load(f)["rows"]
        self.assertEqual({(cell, link) for cell in ("fresh", "cold") for link in ("memif", "veth")},
                         {(row["shape"], row["link"]) for row in rows})
        for row in rows:
            v = {name: value["median"] for name, value in row["values"].items()}
            self.assertGreater(v["bytes"], 0)
            self.assertAlmostEqual(v["cpu_gb"], v["lcore_gb"] + v["others_gb"], places=3)
            self.assertGreater(v["lcore_gb"], 0)
            self.assertGreater(v["others_gb"], 0)
            self.assertGreaterEqual(v["from_disk"], 1)  # each connection reads its own file

    def test_killed(self):
        with tempfile.TemporaryDirectory() as folder:
            process = self.start(folder, "cold")
            until("it writes", lambda: glob.glob(f"{folder}/*/large/*"))
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=time_limit())
            until("its files are gone", lambda: not self.left(folder, process.pid))

    def test_verdicts(self):
        """A ratio compares values of one round. A value of one of two rounds alone has no ratio."""
        cpu = lambda *values: {i: {"cpu_gb": v} for i, v in enumerate(values) if v}  # noqa: E731
        ours = ("nightjar", "memif")
        rows = disk.judged({("hot", *ours): cpu(1.0, 2.0, 4.0), ("cold", *ours): cpu(1.2, 3.0, 0),
                            ("cached", *ours): cpu(1.0, 2.2, 4.0),
                            ("cold", "nginx", "veth+tso"): cpu(2.0, 0, 1.0)})
        self.assertEqual([(1.0, 1.0, 1.1, True), (1.35, 1.2, 1.5, False), (0.6, 0.6, 0.6, False)],
                         [(*(round(v, 6) for v in found), met) for _, found, _, met in rows])
