# SPDX-License-Identifier: BSD-3-Clause
"""
More requests with stuck handlers than fibers, over real connections. The data that a handler waits
for reaches it, and requests of other clients complete. The numbers of fibers per lcore are 1, 2 and
5 with one lcore and with two, and 256 with one lcore.
"""
import itertools
import random
import unittest
import zlib

from tests.netlab.h2client import Client, Holder
from tests.netlab.handlers_case import HandlersCase, counted_bytes, stuck
from tests.netlab.world import until

BEYOND = 50  # requests without a fiber, per lcore
N_BYTES = 70_000  # above the buffer of a response (64 KiB), so that a handler waits for a window
REQUESTS = 20  # of each other client


class Starvation:
    addresses = [None]

    def setUp(self):
        super().setUp()
        if self.fibers > 16 and len(self.addresses) == 1:
            type(self).addresses = self.world.more_addresses(32)

    def clients(self, kind):
        """One for each address and shard."""
        return [client for source in self.addresses
                for client in self.client_of_each_shard(kind, source)]

    def rounds(self, clients):
        """
        Two lists of (client, number of streams): those that take all fibers, and BEYOND per lcore
        that have to wait. Each client of an lcore has as many fibers as the others, so that none
        has more than its share, and loses some to requests that wait.
        """
        n_clients = len(clients) // self.lcores
        each, more = divmod(BEYOND, n_clients)
        return ([(client, self.fibers // n_clients) for client in clients],
                [(client, each + (i // self.lcores < more)) for i, client in enumerate(clients)])

    def send(self, clients, prepare):
        """Sends the requests of both rounds. Returns a list of (client, streams)."""
        requests = []
        for n_waiting, streams in zip((0, BEYOND), self.rounds(clients)):
            for client, n in streams:
                requests.append((client, [prepare(client) for _ in range(n)]))
                client.flush()
            wanted = (self.fibers * self.lcores, n_waiting * self.lcores)
            until(lambda: f"{wanted} stuck, but {stuck(self.server)}",
                  lambda: stuck(self.server) == wanted)
        return requests

    def steps_for_requests(self, clients):
        """Sends requests and checks the responses. Returns the number of busy steps."""
        before = self.counted("loops_busy")
        for client in clients:
            for _ in range(REQUESTS):
                self.assertEqual((200, b"hello\n"), client.get("/hello")[::2])
        return self.counted("loops_busy") - before

    def check_other_clients(self, clients, idle_steps):
        stuck_before = stuck(self.server)
        # Stuck handlers cost no steps. The test bounds the number of steps, not their duration.
        self.assertLessEqual(self.steps_for_requests(clients), 3 * idle_steps + 20)
        for client in clients:
            client.ping()
            status, _, body = client.get("/200KiB")
            self.assertEqual((200, 200 << 10), (status, len(body)))
            self.assertEqual((200, b"inline\n"), client.get("/where")[::2])
        self.assertEqual(stuck_before, stuck(self.server))
        self.assertEqual({"pic": len(clients)}, self.ran("GET /where"))

    def check_modes(self, route, inline=0):
        """Requests with a fiber parked, the others were queued. No request was rejected."""
        wanted = {"epc_parked": self.fibers * self.lcores, "pec_queue": BEYOND * self.lcores}
        if inline:
            wanted["epc_inline"] = inline
        self.assertEqual(wanted, self.ran(route))

    def test_handlers_that_wait_for_session_windows(self):
        """EWYK 5.12, EWYK 5.13, EWYK 5.14, EWYK 5.16, EWYK 5.21, EWYK 5.56"""
        others = self.client_of_each_shard()
        idle_steps = self.steps_for_requests(others)
        holders = self.clients(Holder)
        for client in holders:
            # This response uses up the session window.
            client.response(client.request(f"/count?n={Holder.WINDOW}"))
        requests = self.send(holders, lambda client: client.prepare(f"/count?n={N_BYTES}"))
        self.check_other_clients(others, idle_steps)
        for client, streams in requests:
            self.assertFalse(any(client.ended(stream) for stream in streams))
        for client in holders:
            client.release()
        body = counted_bytes(N_BYTES)
        for client, streams in requests:
            for stream in streams:
                status, _, got = client.response(stream)
                self.assertEqual((200, True), (status, got == body))
        self.check_modes("GET /count", len(holders))
        for client in others + holders:
            client.close()

    def test_handlers_that_wait_for_request_bodies(self):
        """EWYK 5.12, EWYK 5.13, EWYK 5.15, EWYK 5.16, EWYK 5.56"""
        others = self.client_of_each_shard()
        idle_steps = self.steps_for_requests(others)
        clients = self.clients(Client)
        requests = self.send(clients,
                             lambda client: client.prepare("/digest", "POST", ends=False))
        self.check_other_clients(others, idle_steps)
        body = random.Random(self.fibers).randbytes(N_BYTES)
        # The last request gets its body first: bodies of queued requests must leave window to
        # requests with a fiber.
        for client, streams in reversed(requests):
            for stream in reversed(streams):
                self.assertTrue(client.send(stream, body))
        wanted = f"{N_BYTES} {zlib.adler32(body)}\n".encode()
        for client, streams in requests:
            for stream in streams:
                self.assertEqual((200, wanted), client.response(stream)[::2])
        self.check_modes("POST /digest")
        for client in others + clients:
            client.close()


def make(fibers, lcores):
    return type(f"Fibers{fibers}Lcores{lcores}", (Starvation, HandlersCase), {
        "fibers": fibers, "lcores": lcores, "options": ("--fibers", str(fibers))})


def load_tests(loader, *_):
    shapes = [*itertools.product((1, 2, 5), (1, 2)), (256, 1)]
    return unittest.TestSuite(loader.loadTestsFromTestCase(make(*shape)) for shape in shapes)
