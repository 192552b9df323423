# SPDX-License-Identifier: BSD-3-Clause
"""
One address has all connections that a server lets in; others come, and are let in and served.
"""
from tests.netlab.case import ServerCase
from tests.netlab.h2client import Client
from tests.netlab.world import CLIENT_ADDR

PLACES = 300
FULL = PLACES - PLACES // 32  # the rest is for handshakes under way
OTHERS = 20


class Greedy(ServerCase):
    lcores = 1
    options = ("--max-connections", str(PLACES))

    def test_others_are_served(self):
        addresses = self.world.more_addresses(OTHERS)
        greedy = [Client(self.world.connect(source=CLIENT_ADDR)) for _ in range(FULL)]
        for client in greedy:
            client.ping()
        self.assertEqual(0, self.counted("conn_evicted"), "nobody else wants a place")
        others = [Client(self.world.connect(source=a)) for a in addresses]
        for _ in range(2):
            for client in others:
                self.assertEqual(200, client.get("/one")[0])
        self.assertGreaterEqual(self.counted("conn_evicted"), OTHERS)
        self.assertEqual(0, self.counted("drop_tcp_full"))
        self.assertIn(f"abuse: client {CLIENT_ADDR}: conn_evicted ", self.world.errors())
        for client in greedy + others:
            client.close()
