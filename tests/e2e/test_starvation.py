# SPDX-License-Identifier: BSD-3-Clause
"""
More handlers stuck than there are stacks, over real connections: what they wait for reaches them,
and nobody else notices. With few stacks and many, over one lcore and two.
"""
import itertools
import random
import unittest
import zlib

from tests.netlab.h2client import Client, Holder
from tests.netlab.handlers_case import HandlersCase, STREAMS_MAX, counted_bytes, stuck
from tests.netlab.world import SLOW, until

BEYOND = 50  # more requests than stacks, per lcore
N_BYTES = 70_000  # more than a response's buffer (64 KiB), so that a handler waits for a window
ASKED = 20  # requests of those who wait for nothing


class Starvation:
    addresses = [None]

    def setUp(self):
        super().setUp()
        if self.fibers > 16 and len(self.addresses) == 1:
            type(self).addresses = self.world.more_addresses(32)

    def streams_of_each_shard(self, kind):
        """[(client, how many streams)], enough of them for each shard. No client has more of many
        stacks than an eighth, which is its share of the last ones."""
        left = self.fibers + BEYOND
        each = self.fibers // 24 if len(self.addresses) > 1 else STREAMS_MAX
        counts = [each] * (left // each) + [left % each] * (left % each > 0)
        for source, n in zip(self.sources(len(counts)), counts):
            yield from ((client, n) for client in self.client_of_each_shard(kind, source))

    def sources(self, n):
        """Each its own address, where stacks are shared out."""
        return (self.addresses * n)[:n]

    def until_stuck(self):
        wanted = (self.fibers * self.lcores, BEYOND * self.lcores)
        until(lambda: f"{wanted} stuck, but {stuck(self.server)}",
              lambda: stuck(self.server) == wanted)

    def steps_of_others(self, clients):
        """Each request is answered, wherever it runs; and how many busy steps that took."""
        before = self.counted("loops_busy")
        for client in clients:
            for _ in range(ASKED):
                self.assertEqual((200, b"hello\n"), client.get("/hello")[::2])
        return self.counted("loops_busy") - before

    def others_go_on(self, clients, idle_steps):
        still = stuck(self.server)
        # The time between two steps is not ours to assert; their number is. Those who are stuck
        # cost none, so nobody is behind them.
        self.assertLessEqual(self.steps_of_others(clients), 3 * idle_steps + 20)
        for client in clients:
            client.ping()
            status, _, body = client.get("/200KiB")
            self.assertEqual((200, 200 << 10), (status, len(body)))
            self.assertEqual((200, b"inline\n"), client.get("/where")[::2])
        self.assertEqual(still, stuck(self.server))
        self.assertEqual({"pic": len(clients)}, self.ran("GET /where"))

    def check_modes(self, route, inline=0):
        """Those with a stack waited on it, the others for it; nobody was refused."""
        wanted = {"epc_parked": self.fibers * self.lcores, "pec_queue": BEYOND * self.lcores}
        if inline:
            wanted["epc_inline"] = inline
        self.assertEqual(wanted, self.ran(route))

    def test_on_session_windows(self):
        """EWYK 5.12, EWYK 5.13, EWYK 5.14, EWYK 5.16, EWYK 5.21, EWYK 5.56"""
        others = self.client_of_each_shard()
        idle_steps = self.steps_of_others(others)
        asked, holders = [], list(self.streams_of_each_shard(Holder))
        for client, _ in holders:
            client.response(client.request(f"/count?n={Holder.WINDOW}"))  # that was all of it
        for client, n in holders:
            streams = [client.prepare(f"/count?n={N_BYTES}") for _ in range(n)]
            client.flush()
            asked.append((client, streams))
        self.until_stuck()
        self.others_go_on(others, idle_steps)
        for client, streams in asked:
            self.assertFalse(any(client.ended(stream) for stream in streams))
            client.release()
        body = counted_bytes(N_BYTES)
        for client, streams in asked:
            for stream in streams:
                status, _, got = client.response(stream)
                self.assertEqual((200, True), (status, got == body))
            client.close()
        self.check_modes("GET /count", len(asked))
        for client in others:
            client.close()

    def test_on_request_bodies(self):
        """EWYK 5.12, EWYK 5.13, EWYK 5.15, EWYK 5.16, EWYK 5.56"""
        others = self.client_of_each_shard()
        idle_steps = self.steps_of_others(others)
        asked = []
        for client, n in self.streams_of_each_shard(Client):
            asked.append((client, [client.prepare("/digest", "POST", ends=False)
                                   for _ in range(n)]))
            client.flush()
        self.until_stuck()
        self.others_go_on(others, idle_steps)
        body = random.Random(self.fibers).randbytes(N_BYTES)
        # Last come, first served: those who wait for a stack must not keep the windows from those
        # who have one.
        for client, streams in reversed(asked):
            for stream in reversed(streams):
                self.assertTrue(client.send(stream, body))
        wanted = f"{N_BYTES} {zlib.adler32(body)}\n".encode()
        for client, streams in asked:
            for stream in streams:
                self.assertEqual((200, wanted), client.response(stream)[::2])
            client.close()
        self.check_modes("POST /digest")
        for client in others:
            client.close()


def make(fibers, lcores):
    return type(f"Fibers{fibers}Lcores{lcores}", (Starvation, HandlersCase), {
        "fibers": fibers, "lcores": lcores, "options": ("--fibers", str(fibers)),
        "idle_seconds": 10 * SLOW})


def load_tests(loader, *_):
    shapes = [*itertools.product((1, 2, 5), (1, 2)), (256, 1)]
    return unittest.TestSuite(loader.loadTestsFromTestCase(make(*shape)) for shape in shapes)
