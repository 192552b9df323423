# SPDX-License-Identifier: BSD-3-Clause
"""Which way packets take: static routes."""
from case import ServerCase
from world import SERVER_ADDR, ip

BEHIND, ELSEWHERE = "198.19.7.1", "198.19.8.1"  # of the clients, not on the link


class StaticRoutes(ServerCase):
    options = ("--route", "198.19.7.0/24=198.18.0.9")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        ip("-n", cls.world.client_ns, "addr", "add", "198.18.0.9/24", "dev", "nj0")
        for address in (BEHIND, ELSEWHERE):
            ip("-n", cls.world.client_ns, "addr", "add", f"{address}/32", "dev", "lo")

    def test_a_network_behind_a_router(self):
        self.assertIn("nightjar", self.curl("--interface", BEHIND, self.world.url("/")))

    def test_a_network_that_no_route_names(self):
        self.world.client("ping", "-c1", "-W1", "-I", ELSEWHERE, SERVER_ADDR)
        self.assertEqual(1, self.counted("drop_tx_no_route"))
