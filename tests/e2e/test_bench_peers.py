# SPDX-License-Identifier: BSD-3-Clause
"""
A short run of ./dev bench peers: one round with nightjar and nghttpd. The figures of a short run
are not precise. The test checks that they exist and are consistent, and that a server which does
not start has none.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

from tests.netlab.limits import time_limit
from tests.netlab.world import REPO

WITHOUT_SANITIZERS = True  # as test_bench.py
REFUSES = "#!/bin/sh\necho 'not today' >&2\nexit 3\n"
OF_A_PEER = {"rate", "bytes", "ns", "full", "bytes_full", "busy", "client_busy", "busy_ns"}


class BenchPeers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "h2o"), "w") as f:
                f.write(REFUSES)
            os.chmod(f.name, 0o755)
            path = os.path.join(folder, "run.json")
            command = [sys.executable, "-m", "perf.bench.peers", "--rounds", "1",
                       "--seconds", "0.3", "--peers", "nightjar,nghttpd,h2o", "--json", path,
                       "16x32", "200KiB"]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, cwd=REPO, env=os.environ | {
                                           "PATH": f"{folder}:{os.environ['PATH']}"})
            cls.out, cls.err = process.communicate(timeout=time_limit())
            cls.pid, cls.status = process.pid, process.returncode
            if not os.path.exists(path):
                raise AssertionError(f"./dev bench peers wrote no JSON: {cls.out}{cls.err}")
            with open(path) as f:
                cls.run_ = json.load(f)

    def values(self, shape, peer, link):
        row, = (r for r in self.run_["rows"] if (r["shape"], r["peer"], r["link"]) ==
                (shape, peer, link))
        return {name: value["median"] for name, value in row["values"].items()}

    def test_measured_servers(self):
        """Downloads from the other servers are also measured with the offloads of the device."""
        small = [("16x32", "nightjar", "memif"), ("16x32", "nightjar", "veth"),
                 ("16x32", "nghttpd", "veth")]
        bulk = [("200KiB", peer, link) for _, peer, link in small]
        self.assertEqual(sorted([*small, *bulk, ("200KiB", "nghttpd", "veth+tso")]),
                         sorted((r["shape"], r["peer"], r["link"]) for r in self.run_["rows"]))

    def test_server_that_does_not_start(self):
        missing, = self.run_["missing"]
        self.assertEqual("h2o", missing["peer"])
        self.assertIn("not today", missing["why"])
        self.assertEqual(2, self.out.count("NOT MEASURED"), "once for each shape")
        self.assertEqual(1, self.status)

    def test_figures_are_consistent(self):
        for row in self.run_["rows"]:
            v = self.values(row["shape"], row["peer"], row["link"])
            n_bytes = 128 if row["shape"] == "16x32" else 200 << 10
            self.assertGreater(v["rate"], 0)
            self.assertAlmostEqual(1, v["full"] * v["ns"] / 1e9, delta=0.01)
            if row["link"] != "memif":  # memif: bytes and requests of different periods
                self.assertAlmostEqual(1, v["bytes"] / v["rate"] / n_bytes, delta=0.01)
                self.assertAlmostEqual(1, v["bytes_full"] / v["full"] / n_bytes, delta=0.01)
            self.assertGreater(v["busy"], 0)
            self.assertTrue(0 <= v["client_busy"] <= 1.01, v)
        for shape in ("16x32", "200KiB"):
            self.assertLessEqual(OF_A_PEER, set(self.values(shape, "nghttpd", "veth")))
        for link in ("memif", "veth"):
            v = self.values("16x32", "nightjar", link)
            self.assertLessEqual(v["p50"], v["p99"])

    def test_namespaces_are_removed(self):
        self.assertEqual([], [path for folder in ("/run/netns", "/run", "/var/run/dpdk")
                              for path in glob.glob(f"{folder}/njt-{self.pid}-*")])
