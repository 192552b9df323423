# SPDX-License-Identifier: BSD-3-Clause
"""
Why a transfer is not faster: each reason is provoked by real clients. The unit conn_transfers has
each of them in virtual time.
"""
import ctypes
import os
import socket
import unittest

from tests.netlab.case import ServerCase
from tests.netlab.handlers_case import HandlersCase, open_gate
from tests.netlab.world import CLIENT_ADDR, PREFIX_BITS, ip, until

FAN_CLASS_CONTENT, FAN_NONBLOCK, FAN_CLOEXEC, FAN_MARK_ADD, FAN_OPEN_PERM = 4, 2, 1, 1, 0x10000
AT_FDCWD = -100


class HeldFile:
    """Whoever opens the file waits until close() (fanotify(7)). A context manager."""

    def __init__(self, path):
        c = ctypes.CDLL(None, use_errno=True)
        self.fd = c.fanotify_init(FAN_CLASS_CONTENT | FAN_NONBLOCK | FAN_CLOEXEC, os.O_RDONLY)
        if self.fd < 0 or c.fanotify_mark(self.fd, FAN_MARK_ADD, ctypes.c_uint64(FAN_OPEN_PERM),
                                          AT_FDCWD, path.encode()):
            raise unittest.SkipTest(f"fanotify: {os.strerror(ctypes.get_errno())}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)  # allows all that wait


class WhyCase:
    def wait_for(self, why, path):
        """Until the only transfer has this path and this reason."""
        def seen():
            answer = self.server.telemetry("/nightjar/transfers")
            found = [(row["path"], row["why"]) for row in answer.values() if isinstance(row, dict)]
            self.last = found
            return found == [(path, why)]
        until(lambda: f"{path} waits for {why}: {self.last}", seen)

    def get(self, path, receive_bytes=None):
        """A socket with a request of HTTP/1.1. It reads when the test does."""
        s = self.world.connect()
        self.addCleanup(s.close)
        if receive_bytes:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: nightjar\r\n\r\n".encode())
        return s

    def curl_in_background(self, path):
        curl = self.world.client_popen("curl", "-sS", "-o", os.devnull, self.world.url(path))
        self.addCleanup(curl.wait)
        self.addCleanup(curl.kill)


class Files(WhyCase, ServerCase):
    lcores = 1
    policy = """[class response]
path = /10MiB
request_rate = 100KiB/s
[class visitor]
path = /visited
client_rate = 100KiB/s
"""

    @classmethod
    def prepare(cls):
        os.link(os.path.join(cls.root, "10MiB"), os.path.join(cls.root, "visited"))

    def test_class(self):
        self.curl_in_background("/10MiB")
        self.wait_for("class", "/10MiB")

    def test_client(self):
        self.curl_in_background("/visited")
        self.wait_for("client", "/visited")

    def test_server_rate(self):
        self.change_policy("[server]\nrate = 100KiB/s\n")
        try:
            self.curl_in_background("/10MiB")
            self.wait_for("server rate", "/10MiB")
        finally:
            self.change_policy(self.policy)

    def test_receiver(self):
        self.get("/200KiB", receive_bytes=4096)
        self.wait_for("receiver", "/200KiB")

    def test_http2_window(self):
        client = self.client()
        client.request("/200KiB")
        self.wait_for("http2 window", "/200KiB")

    def test_congestion_window(self):
        """The client's address is gone for a while: the path loses all segments."""
        self.curl_in_background("/10MiB")
        self.wait_for("class", "/10MiB")
        address = f"{CLIENT_ADDR}/{PREFIX_BITS}", "dev", self.world.client_dev
        ip("-n", self.world.client_ns, "addr", "del", *address)
        try:
            self.wait_for("congestion window", "/10MiB")
        finally:
            ip("-n", self.world.client_ns, "addr", "add", *address)

    def test_disk(self):
        with HeldFile(os.path.join(self.root, "one")):
            self.get("/one")
            self.wait_for("disk", "/one")


class Handlers(WhyCase, HandlersCase):
    def test_worker(self):
        self.get("/gate")
        self.wait_for("worker", "/gate")
        os.close(open_gate(self.world))

    def test_handler(self):
        self.get("/forever")
        self.wait_for("handler", "/forever")

    def test_request(self):
        s = self.world.connect()
        self.addCleanup(s.close)
        s.sendall(b"POST /digest HTTP/1.1\r\nHost: nightjar\r\nContent-Length: 10\r\n\r\nhalf")
        self.wait_for("request", "/digest")
