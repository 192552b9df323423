# SPDX-License-Identifier: BSD-3-Clause
"""A short run of ./dev bench memory: thousands of idle connections, requests on some, a reset."""
import unittest

from tests.netlab.crowd import Crowd, room_for
from tests.netlab.world import until

PLAIN_BUILD = "memory"
N = 2000


class Memory(unittest.TestCase):
    def test_memory_of_idle_connections(self):
        with Crowd(N) as crowd:
            empty = crowd.memory()
            self.assertEqual(N, crowd.open(N)["open"])
            objects = crowd.server.telemetry("/nightjar/memory")
            for pool in ("tcb", "conn"):
                self.assertEqual(N, objects[pool + "_used"])
                self.assertEqual(N, objects[pool + "_high"])
                self.assertEqual(room_for(N), objects[pool + "_max"])
            alone = crowd.server.telemetry("/nightjar/memory,0")  # the only shard
            self.assertEqual(objects.keys(), alone.keys())
            self.assertEqual(objects["conn_used"], alone["conn_used"])
            grown = crowd.memory()["anonymous"] - empty["anonymous"]
            self.assertGreater(grown, N * 64)  # the measurement includes them
            self.assertEqual(100, crowd.command("get 100", 60)["ok"])
            until("100 HTTP/2 sessions", lambda: crowd.server.stats()["h2_connections"] == 100)
            stats = crowd.server.stats()
            self.assertEqual((N, 100), (stats["connections"], stats["status_2xx"]))
            self.assertEqual(0, stats["conn_timeout"])
            crowd.abort()
            self.assertEqual(N, crowd.server.stats()["tcp_reset_in"])
