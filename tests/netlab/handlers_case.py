# SPDX-License-Identifier: BSD-3-Clause
"""Base classes for tests of nightjar-test-handlers, whose handlers get stuck on request."""
import os
import unittest

from tests.netlab.case import ServerCase, fill_site
from tests.netlab.h2client import Client
from tests.netlab.world import World, until

STREAMS_MAX = 128  # per connection
CONNECTS_MAX = 64  # to reach each shard; for two shards this fails with probability 2^-63
MODES = ("pc", "pic", "epc_inline", "epc_parked", "pec_queue", "pec_worker", "rejected")


def counted_bytes(n):
    """The response body of /count?n=N."""
    block = bytes(range(251))
    return (block * (n // 251 + 1))[:n]


def stuck(server):
    """(requests with a fiber, requests that wait for a fiber)"""
    counts = server.ewyk()
    return counts["fibers_in_use"], counts["waiting"]


def open_gate(world):
    """Lets current and later handlers of /gate return, until the descriptor is closed."""
    return os.open(gate_of(world), os.O_RDWR)


def gate_of(world):
    return os.path.join(world.scratch, "gate")


def make_gate(world):
    os.mkfifo(gate_of(world))
    world.variables["NJ_TEST_GATE"] = gate_of(world)


class OwnServerCase(unittest.TestCase):
    """Each test starts its own server, which may be dead or stuck at the end."""

    options = ()
    program = "nightjar-test-handlers"

    def start(self, **variables):
        self.world = World(lcores=1, options=self.options, program=self.program)
        self.addCleanup(self.world.close)
        self.world.root = os.path.join(self.world.scratch, "site")
        os.mkdir(self.world.root)
        fill_site(self.world.root)
        make_gate(self.world)
        self.world.variables |= variables
        self.world.make_namespaces()
        self.world.start()

    def client(self):
        client = Client(self.world.connect())
        self.addCleanup(client.close)
        return client


class HandlersCase(ServerCase):
    program = "nightjar-test-handlers"
    lcores = 1

    @classmethod
    def prepare(cls):
        make_gate(cls.world)

    def setUp(self):
        super().setUp()
        self.routes_before = self.server.ewyk()["by_route"]

    def tearDown(self):
        super().tearDown()  # closes clients and gates, and waits for the end of all exchanges
        until("all fibers are free", lambda: stuck(self.server) == (0, 0))

    def client_of_each_shard(self, kind=Client, source=None):
        """A list with a client for each shard, in the order of the shards."""
        found = {}
        for _ in range(CONNECTS_MAX):
            before = self.sessions()
            client = self.client(kind, source)
            client.ping()
            after = until("the session is counted",
                          lambda: (now := self.sessions()) != before and now)
            shard = next(i for i, n in enumerate(after) if n > before[i])
            if shard in found:
                client.close()
                until("the session has ended", lambda: self.sessions() == before)
            found.setdefault(shard, client)
            if len(found) == self.lcores:
                return [found[i] for i in range(self.lcores)]
        self.fail(f"a shard got none of {CONNECTS_MAX} connections")

    def sessions(self):
        return [s["h2_connections"] for s in self.server.shards()]

    def ran(self, route):
        """{mode: number of requests to a route since the start of the test}, without zeros."""
        now, before = self.server.ewyk()["by_route"][route], self.routes_before[route]
        return {mode: now[mode] - before[mode] for mode in MODES if now[mode] != before[mode]}
