# SPDX-License-Identifier: BSD-3-Clause
"""The emulated link of ./dev bench differential drops and delays the chosen packets only."""
import os
import unittest

from perf.bench.lab import Lab
from tests.netlab.limits import time_limit

N_BYTES, SECONDS_MAX = 64 << 10, time_limit()
PATH = "rate=100M,delay=10ms,queue=256K"


class Link(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Lab(("nightjar",))
        cls.addClassCleanup(cls.lab.reaper.finish)
        with open(os.path.join(cls.lab.root, "file"), "wb") as f:
            f.write(os.urandom(N_BYTES))
        cls.lab.__enter__()

    def download(self, more=""):
        """Downloads a file and checks it. Returns what the link counted of the server's packets."""
        run = self.lab.transfer("nightjar", "file", SECONDS_MAX, PATH + more, PATH, 1, 20)
        self.assertEqual((True, 200, N_BYTES), (run["done"], run["status"], run["bytes"]))
        there, back = run["link"]["ab"], run["link"]["ba"]
        drops = {name: there[name] for name in there if name.startswith("drop_") and there[name]}
        self.assertFalse([name for name in back if name.startswith("drop_") and back[name]])
        return there, drops

    def test_nothing(self):
        there, drops = self.download()
        self.assertEqual({}, drops)
        self.assertGreater(there["new_data_bytes"], N_BYTES)
        self.assertEqual(there["offered"], there["forwarded"])

    def test_chosen_packets(self):
        there, drops = self.download(",drop=3+7")
        self.assertEqual({"drop_picked": 2}, drops)
        self.assertGreaterEqual(there["data"], there["new_data"] + 2)

    def test_the_last_packets(self):
        there, drops = self.download(f",tail=2:{N_BYTES}")
        self.assertEqual({"drop_tail": 2}, drops)
        self.assertEqual(there["new_data"], there["tail_last"])
        self.assertEqual(there["new_data"] - 1, there["tail_first"])

    def test_one_in_twenty(self):
        there, drops = self.download(",loss=0.05")
        self.assertEqual(["drop_loss"], list(drops))
        self.assertEqual(there["offered"] - drops["drop_loss"], there["forwarded"])
