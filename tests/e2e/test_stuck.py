# SPDX-License-Identifier: BSD-3-Clause
"""
Handlers that never return, full queues, and clients that reset streams or close connections. Other
requests complete, and the server frees all objects of closed connections.
"""
import array
import fcntl
import os
import signal
import socket
import struct
import subprocess
import termios

import h2.errors
import h2.events

from tests.netlab.h2client import Holder
from tests.netlab.handlers_case import (HandlersCase, OwnServerCase, STREAMS_MAX, open_gate,
                                        stuck)
from tests.netlab.limits import time_limit
from tests.netlab.world import until

QUEUE = 4096  # of requests that wait for a fiber, per lcore
TASKS_OUT = 1024  # requests on workers or queued for them, per lcore
PART_BYTES = 200_000
HUGE = 1 << 30


def unacknowledged(sock):
    """Bytes that the peer's TCP has not acknowledged yet (SIOCOUTQ)."""
    n = array.array("i", [0])
    fcntl.ioctl(sock, termios.TIOCOUTQ, n)
    return n[0]


class StuckAtShutdown(OwnServerCase):
    """Shutdown while handlers are stuck. Each test starts its own server."""

    FIBERS = 2
    options = ("--fibers", str(FIBERS), "--workers", "1", "--drain-timeout", "500ms")

    def setUp(self):
        self.start()

    def occupy(self, *paths):
        """Sends FIBERS + 3 requests for each path, until all fibers are in use and 3 wait."""
        client = self.client()
        for path in paths:
            for _ in range(self.FIBERS + 3):
                client.prepare(path)
        client.flush()
        wanted = len(paths) * (self.FIBERS + 3)
        until("all stuck", lambda: self.world.server.stats()["exchanges"] == wanted and
              stuck(self.world.server) == (self.FIBERS, 3))
        return client

    def check_other_requests(self, client):
        for path, body in (("/hello", b"hello\n"), ("/where", b"inline\n"), ("/one", None)):
            status, _, got = client.get(path)
            self.assertEqual(200, status)
            self.assertIn(body, (got, None))
        client.ping()
        upload = client.request("/digest", "POST", ends=False)  # no fiber is free to read it
        client.send(upload, bytes(PART_BYTES), ends=False)
        until("all acknowledged", lambda: unacknowledged(client.sock) == 0)
        client.ping()

    def end(self, client):
        """
        Sends SIGTERM. A request after the first GOAWAY gets its response. Returns the exit status.
        """
        self.world.server.signal()
        while not client.goaway():
            self.assertTrue(client.read())
        self.assertEqual(200, client.get("/hello")[0])
        return self.world.server.wait()

    def test_stuck_fibers(self):
        """EWYK 5.12, EWYK 5.13, EWYK 5.16, EWYK 5.21, EWYK 5.51, EWYK 5.56"""
        self.occupy("/forever")
        client = self.client()
        self.check_other_requests(client)
        self.assertEqual(0, self.end(client), self.world.errors())

    def test_stuck_fibers_and_workers(self):
        """EWYK 5.12, EWYK 5.13, EWYK 5.16"""
        self.occupy("/forever", "/gate")
        client = self.client()
        self.check_other_requests(client)
        # The handler on the worker may still use the server's memory, so the exit status is 1.
        self.assertEqual(1, self.end(client))
        self.assertIn("1 task on workers did not return", self.world.errors())

    def test_a_worker_that_returns_in_time(self):
        client = self.client()
        stream = client.request("/gate")
        until("the request is open", lambda: self.world.server.stats()["exchanges"] == 1)
        self.world.server.signal()
        while not client.goaway():
            self.assertTrue(client.read())
        gate = open_gate(self.world)
        self.addCleanup(os.close, gate)
        self.assertEqual((200, b"through\n"), client.response(stream)[::2])
        self.assertEqual(0, self.world.server.wait(), self.world.errors())


class Full(HandlersCase):
    options = ("--fibers", "1", "--workers", "1")

    def fill(self, path, n):
        """Sends `n` requests that do not complete."""
        for at in range(0, n, STREAMS_MAX):
            client = self.client()
            for _ in range(min(STREAMS_MAX, n - at)):
                client.prepare(path)
            client.flush()
        until(f"{n} open requests", lambda: self.held()[0]["exchanges"] == n)

    def check_rejected(self, path, n):
        """Sends `n` more requests. Each gets 503 with Retry-After."""
        client = self.client()
        streams = [client.prepare(path) for _ in range(n)]
        client.flush()
        for stream in streams:
            status, fields, _ = client.response(stream)
            self.assertEqual((503, "1"), (status, fields["retry-after"]))
        self.assertEqual(n, self.counted("exchange_rejected"))
        self.assertEqual(n, self.ran("GET " + path)["rejected"])
        self.assertEqual(n, self.counted("status_5xx"))
        self.assertEqual(200, client.get("/hello")[0])

    def close_clients(self):
        self.doCleanups()

    def test_full_queue_for_fibers(self):
        """EWYK 5.3, EWYK 5.49, EWYK 5.56"""
        self.fill("/forever", 1 + QUEUE)
        self.assertEqual((1, QUEUE), stuck(self.server))
        self.check_rejected("/forever", 100)
        self.close_clients()
        until("no request has or waits for a fiber", lambda: stuck(self.server) == (0, 0))
        self.assertEqual((200, b"on a stack\n"), self.client().get("/untyped")[::2])
        self.close_clients()

    def test_full_queue_for_workers(self):
        """EWYK 5.3, EWYK 5.49"""
        self.fill("/gate", TASKS_OUT)
        self.check_rejected("/gate", 100)
        gate = open_gate(self.world)
        until("all requests are complete", lambda: self.held()[0]["exchanges"] == 0)
        self.assertEqual({"pec_worker": TASKS_OUT, "rejected": 100}, self.ran("GET /gate"))
        self.close_clients()
        os.close(gate)


class Aborted(HandlersCase):
    """Clients abort requests. tearDown() checks that all objects are free again."""

    options = ("--fibers", "4", "--workers", "1")

    def until_on_fibers(self, n=1):
        until(f"{n} requests on fibers", lambda: stuck(self.server)[0] == n)

    def reset(self, client, stream):
        client.h2.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
        client.flush()

    def test_reset_in_an_upload(self):
        """EWYK 5.49, EWYK 5.58"""
        client = self.client()
        for _ in range(18):  # 72 MB: above the session window of 64 MiB, if it leaked
            streams = [client.request("/digest", "POST", ends=False) for _ in range(20)]
            for stream in streams:  # 4 handlers read, 16 requests wait for a fiber
                client.send(stream, bytes(PART_BYTES), ends=False)
            self.until_on_fibers(4)
            for stream in streams:
                self.reset(client, stream)
            until("no request has or waits for a fiber", lambda: stuck(self.server) == (0, 0))
        self.assertEqual((200, b"0 1\n"), client.get("/digest", **{":method": "POST"})[::2])
        client.close()
        self.assertEqual(360, self.counted("h2_reset_in"))

    def test_reset_in_a_download(self):
        """EWYK 5.58"""
        client = self.client(Holder)
        for _ in range(10):
            stream = client.request(f"/count?n={HUGE}")
            self.until_on_fibers()
            self.reset(client, stream)
            until("no request has or waits for a fiber", lambda: stuck(self.server) == (0, 0))
        client.release()
        self.assertEqual(200, client.get("/count?n=100000")[0])
        client.close()

    def test_reset_of_parked_and_queued_requests(self):
        """EWYK 5.58"""
        client = self.client()
        streams = [client.request(path) for path in ("/doze?ms=60000", "/forever") * 4]
        until("4 parked and 4 queued requests", lambda: stuck(self.server) == (4, 4))
        for stream in streams:
            self.reset(client, stream)
        until("no request has or waits for a fiber", lambda: stuck(self.server) == (0, 0))
        self.assertEqual(200, client.get("/hello")[0])
        client.close()

    def test_reset_of_requests_for_workers(self):
        """EWYK 5.58"""
        client = self.client()
        streams = [client.request("/gate") for _ in range(10)]
        until("10 open requests", lambda: self.held()[0]["exchanges"] == 10)
        for stream in streams:
            self.reset(client, stream)
        client.ping()  # the server has received all resets
        gate = open_gate(self.world)
        until("all requests have ended", lambda: self.held()[0]["exchanges"] == 0)
        os.close(gate)
        client.close()

    def killed(self, *args, **more):
        """Kills curl with SIGKILL while its handler has a fiber."""
        process = self.world.client_popen("curl", "-sS", "--http2-prior-knowledge", *args,
                                          stdout=subprocess.DEVNULL, **more)
        try:
            self.until_on_fibers()
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(time_limit())
        return process

    def test_client_killed_in_a_download(self):
        """EWYK 5.58"""
        self.killed("--limit-rate", "1000", self.world.url(f"/count?n={HUGE}"))

    def test_client_killed_in_an_upload(self):
        """EWYK 5.58"""
        upload = self.killed("-XPOST", "-T-", self.world.url("/digest"), stdin=subprocess.PIPE)
        upload.stdin.close()

    def test_reset_of_a_connection_with_waiting_handlers(self):
        """EWYK 5.58"""
        client = self.client()
        for path in ("/forever", "/doze?ms=60000", "/os-digest", "/digest"):
            client.request(path, "POST" if "digest" in path else "GET", ends="digest" not in path)
        self.until_on_fibers(3)
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()


class Refused(HandlersCase):
    def test_methods_without_a_route(self):
        client = self.client()
        for path, method, allow in (("/hello", "POST", "GET, HEAD"), ("/digest", "GET", "POST"),
                                    ("/gate", "DELETE", "GET, HEAD")):
            with self.subTest(path=path):
                status, fields, _ = client.get(path, **{":method": method})
                self.assertEqual((405, allow), (status, fields["allow"]))
        client.close()

    def test_bodies_above_the_limit(self):
        for path, most in (("/small", 1000), ("/digest", 16 << 20), ("/os-digest", 1 << 20)):
            with self.subTest(path=path, declared=True):
                client = self.client()
                stream = client.request(path, "POST", False, **{"content-length": str(most + 1)})
                self.assertEqual(413, client.response(stream)[0])
                client.close()
        for path, most in (("/small", 1000), ("/os-digest", 1 << 20)):
            for n_bytes, wanted in ((most, 200), (most + 1, 413)):
                with self.subTest(path=path, n_bytes=n_bytes):
                    client = self.client()
                    stream = client.request(path, "POST", ends=False)
                    client.send(stream, bytes(n_bytes))
                    self.assertEqual(wanted, client.response(stream)[0])
                    client.close()

    def test_wait_in_a_handler_that_must_not_block(self):
        """EWYK 5.31, EWYK 5.33"""
        client = self.client()
        self.assertEqual((200, b"did not sleep\n"), client.get("/wrong?ms=60000")[::2])
        client.close()
        until("the server counts the call", lambda: self.counted("handler_would_block") == 1)
        until("a message", lambda: "/wrong would park in a context that must not block"
              in self.world.errors())
