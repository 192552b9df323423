# SPDX-License-Identifier: BSD-3-Clause
"""Modes of execution: their counts per route, a slow request, and slow routes on workers."""
import re

import h2.events

from tests.netlab.case import ServerCase
from tests.netlab.handlers_case import HandlersCase, MODES
from tests.netlab.world import until

FAST = 99
REQUESTS = 10_000
SPINS = 200  # requests after which a route has moved


class Modes(HandlersCase):
    lcores = 2

    def test_one_slow_request_delays_no_other_of_its_connection(self):
        """EWYK 5.12, EWYK 5.35"""
        for path in ("/doze?ms=200", "/os-doze?ms=200"):
            with self.subTest(slow=path):
                client = self.client()
                client.ping()  # the preface is over: the requests fit into two segments
                slow = client.prepare(path)
                fast = {client.prepare(("/hello", "/hello-on-stack", "/where")[i % 3])
                        for i in range(FAST)}
                client.flush()
                self.assertEqual((200, b"slept\n"), client.response(slow)[::2])
                ends = [e.stream_id for e in client.events if isinstance(e, h2.events.StreamEnded)]
                self.assertEqual(slow, ends[-1])
                self.assertEqual(fast, set(ends[:-1]))
                client.close()

    def test_every_request_counts_once(self):
        """EWYK 5.3, EWYK 5.20, EWYK 5.21, EWYK 5.24, EWYK 5.28"""
        client = self.client()
        for path, n, mode in (("/hello", 7, "pc"), ("/hello-on-stack", 6, "epc_inline"),
                              ("/where", 5, "epc_inline"), ("/doze?ms=1", 4, "epc_parked"),
                              ("/untyped", 3, "epc_inline"), ("/os-doze?ms=1", 2, "pec_worker")):
            for stream in [client.request(path) for _ in range(n)]:
                self.assertEqual(200, client.response(stream)[0])
            self.assertEqual({mode: n}, self.ran("GET " + path.partition("?")[0]))
        asked = sum(self.ran(route).get(mode, 0) for route in self.routes_before for mode in MODES)
        self.assertEqual(27, asked)
        self.assertEqual(27, self.counted("requests"))
        self.assertEqual(b"on a stack\n", client.get("/untyped")[2])
        client.close()

    def test_reset_of_counts(self):
        """EWYK 5.28"""
        client = self.client()
        self.assertEqual(200, client.get("/hello")[0])

        def sum_of_all():
            return sum(route[mode] for route in self.server.ewyk()["by_route"].values()
                       for mode in MODES)
        self.assertGreater(sum_of_all(), 0)
        self.server.telemetry("/nightjar/ewyk,reset")
        until("zero", lambda: sum_of_all() == 0)
        self.assertEqual(200, client.get("/hello")[0])  # a reset changes counts only
        self.assertEqual(1, sum_of_all())
        client.close()

    def h2load(self, path, mode):
        done = self.world.client("h2load", "-c", "20", "-m", "32", "-n", str(REQUESTS),
                                 self.world.url(path))
        found = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout",
                          done.stdout)
        self.assertEqual((str(REQUESTS), "0", "0", "0"), found.groups(), done.stdout)
        self.assertEqual({mode: REQUESTS}, self.ran("GET " + path))

    def test_load_inline(self):
        self.h2load("/hello", "pc")

    def test_load_on_stacks(self):
        self.h2load("/hello-on-stack", "epc_inline")


class Slow(HandlersCase):
    def route(self):
        return self.server.ewyk()["by_route"]["GET /spin"]

    def until_moved(self, client, path, n):
        for _ in range(SPINS):
            self.assertEqual((200, b"spun\n"), client.get(path)[::2])
            if self.route()["moves"] == n:
                return
        self.fail(f"{SPINS} requests of {path} did not move the route: {self.route()}")

    def test_a_route_that_keeps_the_core_moves_to_the_workers_and_back(self):
        """EWYK 5.55"""
        client = self.client()
        self.until_moved(client, "/spin?us=500", 1)
        self.assertGreaterEqual(self.route()["budget_overrun"], 1)
        self.assertGreaterEqual(self.route()["longest_ns"], 500_000)
        until("a message", lambda: "GET /spin: moved to the workers" in self.world.errors())
        client.get("/spin?us=500")
        self.assertGreaterEqual(self.ran("GET /spin")["pec_worker"], 1)
        self.until_moved(client, "/spin?us=0", 2)
        until("a message", lambda: "GET /spin: back from the workers" in self.world.errors())
        client.close()

    def test_the_watchdog_names_a_route_that_holds_its_core(self):
        """EWYK 5.19, EWYK 5.55"""
        client = self.client()
        client.get("/spin?us=500000")
        client.close()
        until("the watchdog's message", lambda: re.search(
            r"the handler of GET /spin has had lcore \d+ for", self.world.errors()))


class Trailers(HandlersCase):
    def test_trailers(self):
        client = self.client()
        status, _, body = client.get("/trailers")
        self.assertEqual((200, b"body\n"), (status, body))
        trailers = [dict(e.headers) for e in client.events
                    if isinstance(e, h2.events.TrailersReceived)]
        self.assertEqual([{"x-sum": "5", "x-last": "yes"}], trailers)
        client.close()
        head = self.curl("-D-", self.world.url("/trailers"))
        self.assertIn("x-last: yes", head)


class Inline(ServerCase):
    """--strategy pc: lcores run all handlers inline."""
    program = "nightjar-test-handlers"
    options = ("--strategy", "pc")

    def test_all_types(self):
        for path, told in (("/hello", "hello\n"), ("/doze?ms=1", "slept\n"),
                           ("/os-doze?ms=1", "slept\n"), ("/spin?us=1", "spun\n")):
            self.assertEqual(told, self.curl(self.world.url(path)))
        for route in self.server.ewyk()["by_route"].values():
            self.assertEqual(0, sum(route[mode] for mode in MODES if mode != "pc"))
