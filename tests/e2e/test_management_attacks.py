# SPDX-License-Identifier: BSD-3-Clause
"""Attacks on the management listener: refused and bounded, and the lcores do not notice them."""
import contextlib
import os
import socket
import subprocess

from tests.netlab import management
from tests.netlab.limits import time_limit
from tests.e2e.test_management import LOCAL, READ, WRITE, Listener

RATE = "16MiB/s"  # of the download meanwhile
# 10,000 were tried once; so many take longer than the other tests together.
CONNECTIONS = int(os.environ.get("NJ_ATTACK_CONNECTIONS", "1000"))
HELD = 60  # connections at once
MEMORY = 64 << 20  # that the listener may take
MANY = 200  # more than there are places
FILES = 128 + 32  # LOOPBACK_MAX of lib/mgmt/listener.c, and what else may be open
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = (b"POST /api/v1/log/reopen HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
        WRITE.encode() + b"\r\n")
GARBAGE = {
    "a ClientHello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500) + b"\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an asterisk": b"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a request for a proxy": b"GET http://localhost/api/v1/limits HTTP/1.1\r\n"
                             b"Host: localhost\r\n\r\n",
    "CONNECT": b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "folders above": b"GET /api/v1/../../health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "escaped folders": b"GET /api/v1/%2e%2e%2f%2e%2e%2fhealth HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "two slashes": b"GET //health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a huge head": b"GET /health HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * 100_000 + b"\r\n\r\n",
    "many fields": b"GET /health HTTP/1.1\r\n" + b"A: b\r\n" * 10_000 + b"\r\n",
    "a huge body": POST + b"Content-Length: 1000000000000\r\n\r\n",
    "a chunk without a size": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n",
    "a chunk beyond 64 bits": POST + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
    "a negative chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n",
    "a negative length": POST + b"Content-Length: -1\r\n\r\n",
    "two lengths": POST + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    "a length beside chunks": POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
                              b"0\r\n\r\n",
    "a token that is too long": b"GET /api/v1 HTTP/1.1\r\nHost: localhost\r\n"
                                b"Authorization: Bearer " + b"x" * 20_000 + b"\r\n\r\n",
    "a token that only reads": POST.replace(WRITE.encode(), READ.encode()) + b"\r\n",
    "no token": b"POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


class Attacks(Listener):

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.write_policy(cls.policy + f"\n[class paced]\npath = /10MiB\nrequest_rate = {RATE}\n")

    def setUp(self):
        super().setUp()
        self.ask("unix", "GET", "/metrics")
        self.before_memory, self.before_files = self.memory(), self.files()
        self.download = self.world.client_popen(
            "curl", "-sS", "--http2-prior-knowledge", "-o", os.devnull, "-w", "%{size_download}",
            self.world.url("/10MiB"), stdout=subprocess.PIPE)
        self.addCleanup(self.download.stdout.close)

    def check_bounds(self):
        """The download has all its bytes, and the listener has taken little."""
        self.assertEqual(b"10485760", self.download.communicate(timeout=time_limit())[0])
        self.check_it_serves()
        self.assertLess(self.files() - self.before_files, FILES)
        self.assertLess(self.memory() - self.before_memory, MEMORY)

    def memory(self):
        with open(f"/proc/{self.server.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmRSS"))

    def files(self):
        return len(os.listdir(f"/proc/{self.server.process.pid}/fd"))

    def connect(self):
        s = management.connect(LOCAL, self.world.server_ns)
        self.addCleanup(s.close)
        return s

    def answer(self, data):
        """The status of the first response; None: the server has closed."""
        answer = b""
        with self.connect() as s, contextlib.suppress(ConnectionError):
            with contextlib.suppress(ConnectionError):
                s.sendall(data)
            while b"\r\n\r\n" not in answer and (part := s.recv(65536)):
                answer += part
        return int(answer[9:12]) if answer else None

    def test_malformed_requests(self):
        for what, data in GARBAGE.items():
            with self.subTest(what):
                status = self.answer(data)
                self.assertTrue(status is None or 400 <= status < 506, status)
                self.assertEqual(200, self.status("unix", "GET", "/health"))
        self.check_bounds()

    def test_slow_clients(self):
        """Heads, bodies, and readers of many answers."""
        held = []
        for i in range(HELD):
            held.append(s := self.connect())
            if i % 3 == 2:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            with contextlib.suppress(ConnectionError):
                s.sendall((GET[:i % 30 + 1], POST + b"Content-Length: 60000\r\n\r\n" + b"x" * i,
                           10 * GET.replace(b"health", b"metrics"))[i % 3])
            if i % 20 == 0:
                self.assertEqual(200, self.status("unix", "GET", "/health"))
        self.assertLess(self.memory() - self.before_memory, MEMORY)
        for s in held:
            s.close()
        self.check_bounds()

    def test_many_connections(self):
        held = []
        for i in range(CONNECTIONS):
            with contextlib.suppress(ConnectionError):
                held.append(management.connect(LOCAL, self.world.server_ns))
                held[-1].sendall(GET[:i % 40 + 1])
            if i % 500 == 0:
                self.assertEqual(200, self.status("unix", "GET", "/health"))
                self.assertLess(self.files() - self.before_files, FILES)
            if len(held) > MANY:
                held.pop(0).close()
        for s in held:
            s.close()
        self.check_bounds()


del Listener  # of another module
