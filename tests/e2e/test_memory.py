# SPDX-License-Identifier: BSD-3-Clause
"""./dev bench memory, small: thousands of silent connections, some that ask, and the end of all."""
import unittest

from tests.netlab.crowd import Crowd, room_for
from tests.netlab.world import until

N = 2000


class Memory(unittest.TestCase):
    def test_idle_connections_cost_little_and_answer(self):
        with Crowd(N) as crowd:
            empty = crowd.memory()
            self.assertEqual(N, crowd.open(N)["open"])
            objects = crowd.server.telemetry("/nightjar/memory")
            for pool in ("tcb", "conn"):
                self.assertEqual(N, objects[pool + "_used"])
                self.assertEqual(N, objects[pool + "_high"])
                self.assertEqual(room_for(N), objects[pool + "_max"])
            alone = crowd.server.telemetry("/nightjar/memory,0")  # there is one shard only
            self.assertEqual(objects.keys(), alone.keys())
            self.assertEqual(objects["conn_used"], alone["conn_used"])
            grown = crowd.memory()["anonymous"] - empty["anonymous"]
            self.assertGreater(grown, N * 64)  # it does see them
            self.assertEqual(100, crowd.command("get 100", 60)["ok"])
            until("the gauges tell", lambda: crowd.server.stats()["h2_connections"] == 100)
            stats = crowd.server.stats()
            self.assertEqual((N, 100), (stats["connections"], stats["status_2xx"]))
            self.assertEqual(0, stats["conn_timeout"])
            crowd.abort()
            self.assertEqual(N, crowd.server.stats()["tcp_reset_in"])
