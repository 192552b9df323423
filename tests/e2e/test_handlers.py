# SPDX-License-Identifier: BSD-3-Clause
"""Requests for handlers of each type of nightjar-examples: by curl, h2load and slow readers."""
import os
import random
import re
import select
import signal
from hashlib import sha256

import h2.events
from h2.settings import SettingCodes

from tests.netlab.case import ServerCase
from tests.netlab.h2client import Client
from tests.netlab.limits import time_limit
from tests.netlab.world import until

FIBERS = 2  # per lcore
STUCK = FIBERS + 50
PIECE = 16384
FIRST = 100  # bytes


class Reluctant(Client):
    """A client that sends no WINDOW_UPDATE by itself."""

    def read(self):
        data = self.sock.recv(1 << 20)
        if data:
            self.events += self.h2.receive_data(data)
            self.flush()
        return bool(data)

    def post(self, path, first):
        """Sends a head and the first bytes of its body; end() sends the rest."""
        stream = self.h2.get_next_available_stream_id()
        fields = {":method": "POST", ":scheme": "http", ":authority": "nightjar", ":path": path}
        self.h2.send_headers(stream, list(fields.items()))
        self.h2.send_data(stream, first)
        self.flush()
        return stream

    def end(self, stream, rest):
        """`rest` has to fit into the windows."""
        for at in range(0, len(rest) or 1, PIECE):
            self.h2.send_data(stream, rest[at:at + PIECE], end_stream=at + PIECE >= len(rest))
        self.flush()

    def settle(self):
        """Waits for the server's SETTINGS and its connection window."""
        while self.h2.outbound_flow_control_window <= 65535:
            assert self.read()


class Handlers(ServerCase):
    program = "nightjar-examples"
    options = ("--fibers", str(FIBERS))

    def setUp(self):
        super().setUp()
        self.clients = []

    def tearDown(self):
        for client in self.clients:
            client.close()
        super().tearDown()

    def enter(self, kind):
        self.clients.append(kind(self.world.connect()))
        return self.clients[-1]

    def ewyk(self):
        answer = self.server.telemetry("/nightjar/ewyk")
        routes = {r["route"]: r for k, r in answer.items() if re.fullmatch(r"route\d+", k)}
        return answer, routes

    def test_each_type(self):
        self.server.telemetry("/nightjar/ewyk,reset")
        until("counted from zero", lambda: self.ewyk()[0]["resetting"] == 0)
        self.assertEqual(0, sum(r["pc"] + r["epc_inline"] + r["epc_parked"] + r["pec_worker"]
                                for r in self.ewyk()[1].values()))
        self.assertEqual("Hello from a nightjar.\n", self.curl(self.world.url("/hello")))
        self.assertEqual("That took 50 ms.\n", self.curl(self.world.url("/slow?ms=50")))
        self.assertEqual("".join(f"id: {i}\ndata: tick {i}\n\n" for i in range(3)),
                         self.curl(self.world.url("/events?n=3")))
        self.assertRegex(self.curl(self.world.url("/lookup/localhost")), r"127\.0\.0\.1|::1")
        self.assertIn("\nnightjar_examples_scrapes_total 1\n",
                      self.curl(self.world.url("/metrics")))
        self.assertIn("<title>", self.curl(self.world.url("/")))  # no route: a file of the site
        routes = self.ewyk()[1]
        self.assertEqual(1, routes["GET /hello"]["pc"])
        self.assertEqual(1, routes["GET /slow"]["epc_parked"])
        self.assertEqual(1, routes["GET /events"]["pc"])
        self.assertEqual(1, routes["GET /lookup/*"]["pec_worker"])
        shards = [k for k in self.server.telemetry("/nightjar/ewyk,0") if k.startswith("shard")]
        each = [self.server.telemetry(f"/nightjar/ewyk,0,{k[5:]}") for k in shards]
        self.assertEqual(1, sum(one["pc"] for one in each))
        self.assertEqual(1, max(one["pc"] for one in each))

    def test_heads_and_methods(self):
        head = self.curl("-I", self.world.url("/hello"))
        self.assertIn("content-length: 23", head)
        # What the handler added comes after control data (RFC 9110 5.3).
        self.assertEqual(["server", "date", "content-type", "content-length"],
                         re.findall(r"^([a-z-]+):", head, re.MULTILINE))
        head = self.curl("-i", "-X", "PUT", self.world.url("/hello"))
        self.assertTrue(head.startswith("HTTP/2 405"), head)
        self.assertIn("allow: GET, HEAD", head)

    def test_echo(self):
        there, back = (os.path.join(self.world.scratch, name) for name in ("there", "back"))
        for n_bytes in (0, 1, 200 << 10, 20 << 20):
            with self.subTest(n_bytes=n_bytes):
                data = random.Random(n_bytes).randbytes(n_bytes)
                with open(there, "wb") as f:
                    f.write(data)
                self.curl("--data-binary", "@" + there, "-H", "content-type: a/b", "-o", back,
                          "-D", back + ".head", self.world.url("/echo"))
                with open(back, "rb") as f, open(back + ".head") as head:
                    self.assertEqual(sha256(data).digest(), sha256(f.read()).digest())
                    self.assertIn("content-type: a/b", head.read())

    def expect(self, path):
        body = os.path.join(self.world.scratch, "expected")
        with open(body, "wb") as f:
            f.write(b"x" * 5000)
        done = self.world.client("nghttp", "-nv", "--expect-continue", "-d", body,
                                 self.world.url(path))
        self.assertEqual(0, done.returncode, done.stderr)
        return [m[1] or m[2] for m in
                re.finditer(r"(?:send (DATA) frame|:status: (\d+))", done.stdout)]

    def test_expect_continue(self):
        """nghttp sends the body after the response 100."""
        self.assertEqual(["100", "DATA", "200"], self.expect("/echo"))
        self.assertEqual(["405"], self.expect("/hello"))
        self.assertEqual("abc", self.curl("-H", "expect: 100-continue", "-d", "abc",
                                          self.world.url("/echo")))
        self.assertTrue(self.curl("-i", "-H", "expect: more", self.world.url("/hello"))
                        .startswith("HTTP/2 417"))

    def test_too_large(self):
        client = self.enter(Client)
        fields = {":method": "POST", ":scheme": "http", ":authority": "nightjar", ":path": "/echo",
                  "content-length": str(1 << 32)}
        client.h2.send_headers(1, list(fields.items()))
        client.flush()
        self.assertEqual(413, client.response(1)[0])

    def test_more_stuck_than_stacks(self):
        """
        All handlers wait for the rest of a body, then for a zero window. After one WINDOW_UPDATE
        all of them finish. None runs for long before it waits: the strategy stays the same.
        """
        clients = [self.enter(Reluctant) for _ in range(4)]  # some on each lcore
        body = os.urandom(100000)  # more than the buffer of a response
        streams = []
        for client in clients:
            client.settle()
            streams.append([client.post("/echo", body[:FIRST]) for _ in range(STUCK)])
        until("stacks in use", lambda: self.ewyk()[0]["fibers_in_use"] >= FIBERS and
              self.ewyk()[0]["waiting"] >= 50)
        beside = self.enter(Client)
        for _ in range(20):
            self.assertEqual(200, beside.get("/hello")[0])
        for client, mine in zip(clients, streams):
            for stream in mine:
                client.end(stream, body[FIRST:])
            client.h2.increment_flow_control_window(1 << 28)
            client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1 << 20})
            client.flush()
        # Read from all clients: requests of one may wait for a stack of another's request.
        while sum(isinstance(e, h2.events.StreamEnded) for c in clients
                  for e in c.events) < len(clients) * STUCK:
            ready, _, _ = select.select([c.sock for c in clients], [], [], time_limit())
            self.assertTrue(ready, "no more data from the server")
            for client in clients:
                if client.sock in ready:
                    self.assertTrue(client.read())
        for client, mine in zip(clients, streams):
            for stream in mine:
                status, _, back = client.response(stream)
                self.assertEqual((200, body), (status, back))
        self.assertEqual(0, self.counted("exchange_rejected"))

    def test_connections_that_close_at_any_time(self):
        """Connections close while their handlers wait. tearDown() checks for leaks."""
        for i in range(40):
            client = Reluctant(self.world.connect())
            client.settle()
            client.request("/slow?ms=5000")
            client.request("/events?n=100")
            stream = client.post("/echo", b"")
            client.end(stream, bytes(1000 * i))
            if i % 2:
                client.h2.reset_stream(stream)
                client.flush()
            client.close()
        until("all handlers have returned", lambda: self.ewyk()[0]["fibers_in_use"] == 0)

    def test_load(self):
        done = self.world.client("h2load", "-n", "2000", "-c", "8", "-m", "16",
                                 self.world.url("/hello"))
        self.assertIn("2000 succeeded", done.stdout, done.stderr)


class Strategies(ServerCase):
    program = "nightjar-examples"
    options = ("--strategy", "pec")

    def test_workers_run_all_handlers(self):
        self.assertEqual("Hello from a nightjar.\n", self.curl(self.world.url("/hello")))
        self.assertEqual("That took 20 ms.\n", self.curl(self.world.url("/slow?ms=20")))
        route = self.server.telemetry("/nightjar/ewyk,0")
        self.assertEqual((0, 1), (route["pc"], route["pec_worker"]))


class End(Handlers):
    """SIGTERM while handlers run: they finish, or the server cancels them after the time-out."""
    options = ("--drain-timeout", "3s")
    test_each_type = test_heads_and_methods = test_echo = test_too_large = None
    test_more_stuck_than_stacks = test_connections_that_close_at_any_time = None
    test_load = test_expect_continue = None

    @classmethod
    def tearDownClass(cls):
        pass

    def tearDown(self):
        pass

    def test_drain(self):
        client = self.client()
        soon, late = client.request("/slow?ms=1500"), client.request("/slow?ms=600000")
        until("both sleep", lambda: self.ewyk()[0]["fibers_in_use"] == 2)
        self.server.signal(signal.SIGTERM)
        self.assertEqual(200, client.response(soon)[0])
        try:
            while client.read():
                pass
        except ConnectionResetError:
            pass
        self.assertFalse([e for e in client.events if isinstance(e, h2.events.StreamEnded)
                          and e.stream_id == late])
        self.assertEqual(0, self.server.wait(), self.world.errors())
