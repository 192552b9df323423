# SPDX-License-Identifier: BSD-3-Clause
"""
One client holds all connections that the server accepts. The server evicts some of them for new
clients.
"""
from tests.netlab.case import ServerCase
from tests.netlab.h2client import Client
from tests.netlab.world import CLIENT_ADDR

CONNECTIONS_MAX = 300
FULL = CONNECTIONS_MAX - CONNECTIONS_MAX // 32  # the last 1/32 is for handshakes
OTHERS = 20


class ConnectionShares(ServerCase):
    lcores = 1
    options = ("--max-connections", str(CONNECTIONS_MAX))

    def test_new_clients_get_responses(self):
        addresses = self.world.more_addresses(OTHERS)
        holder = [Client(self.world.connect(source=CLIENT_ADDR)) for _ in range(FULL)]
        for client in holder:
            client.ping()
        self.assertEqual(0, self.counted("conn_evicted"), "evictions without another client")
        others = [Client(self.world.connect(source=a)) for a in addresses]
        for _ in range(2):
            for client in others:
                self.assertEqual(200, client.get("/one")[0])
        self.assertGreaterEqual(self.counted("conn_evicted"), OTHERS)
        self.assertEqual(0, self.counted("drop_tcp_full"))
        self.assertIn(f"abuse: client {CLIENT_ADDR}: conn_evicted ", self.world.errors())
        for client in holder + others:
            client.close()
