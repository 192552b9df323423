# SPDX-License-Identifier: BSD-3-Clause
"""Of tests of handlers: nightjar-test-handlers, whose handlers get stuck when they are asked."""
import os
import unittest

from tests.netlab.case import ServerCase, fill_site
from tests.netlab.h2client import Client
from tests.netlab.world import World, until

STREAMS_MAX = 128  # of one connection
CONNECTS_MAX = 64  # until each shard has one: with two shards, 2^-63 that it does not
MODES = ("pc", "pic", "epc_inline", "epc_parked", "pec_queue", "pec_worker", "rejected")


def counted_bytes(n):
    """What /count?n=N answers."""
    block = bytes(range(251))
    return (block * (n // 251 + 1))[:n]


def stuck(server):
    """(requests that have a stack, requests that wait for one)"""
    told = server.ewyk()
    return told["fibers_in_use"], told["waiting"]


def open_gate(world):
    """The handlers of /gate go on, those to come, too, until the descriptor is closed."""
    return os.open(gate_of(world), os.O_RDWR)


def gate_of(world):
    return os.path.join(world.scratch, "gate")


def make_gate(world):
    os.mkfifo(gate_of(world))
    world.variables["NJ_TEST_GATE"] = gate_of(world)


class OwnServerCase(unittest.TestCase):
    """Each test starts a server of its own, which may be dead or stuck at the end."""

    options = ()

    def start(self, **variables):
        self.world = World(lcores=1, options=self.options, program="nightjar-test-handlers")
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
        self.doCleanups()  # clients close, gates, too
        super().tearDown()  # every exchange is over
        until("stacks free", lambda: stuck(self.server) == (0, 0))

    def client_of_each_shard(self, kind=Client, source=None):
        """A list of them, shard by shard."""
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
        self.fail(f"{CONNECTS_MAX} connections and none to some shard")

    def sessions(self):
        return [s["h2_connections"] for s in self.server.shards()]

    def ran(self, route):
        """{mode: how many requests to a route since the test began}, those that are not 0."""
        now, before = self.server.ewyk()["by_route"][route], self.routes_before[route]
        return {mode: now[mode] - before[mode] for mode in MODES if now[mode] != before[mode]}
