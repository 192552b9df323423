# SPDX-License-Identifier: BSD-3-Clause
"""
Clients that keep requesting, on many connections of Linux's TCP, with cleartext or TLS. When a
connection gets GOAWAY, its request is completed, and another connection takes its place. `errors`
has what a user would notice: a connection that is refused, reset or closed within a request, a
request that the server did not process, a status other than 200, a wrong body.

    with SteadyClients(world, sums) as clients:
        clients.open(1000, "one")
        ...
        clients.errors, clients.n_responses
"""
import asyncio
import collections
import hashlib
import socket
import ssl
import struct
import threading

from tests.netlab.limits import time_limit
from tests.netlab.world import SERVER_ADDR, SERVER_ADDR6, inside

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
WINDOW_MAX = (1 << 31) - 1
STATUS_200 = 0x88  # RFC 7541, Appendix A
RCVBUF = 64 << 10  # so that most of a large body that is not read stays on the server
ERRORS_MAX = 20


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def request_head(path, scheme):
    text = b"/" + path.encode()
    return (b"\x82" + (b"\x87" if scheme == "https" else b"\x86") +
            b"\x04" + bytes([len(text)]) + text + b"\x01\x01a")


class Connection(asyncio.Protocol):
    """`path` is requested `n` times (0: without end), each time `pause` seconds after the response.
    With `holds` the body is read only after go_on()."""

    def __init__(self, clients, path, n, pause, holds):
        self.clients, self.path, self.left, self.pause, self.holds = clients, path, n, pause, holds
        self.head = request_head(path, clients.world.scheme)
        self.buffer, self.stream, self.busy = bytearray(), -1, False
        self.goaway, self.closed_by_us, self.n_body = None, False, 0
        self.transport = None
        self.done = clients.loop.create_future()

    def connection_made(self, transport):
        self.transport = transport
        self.clients.open_now.add(self)
        window = struct.pack(">HI", 4, WINDOW_MAX)
        transport.write(PREFACE + frame(SETTINGS, 0, 0, window) +
                        frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WINDOW_MAX - 65535)))
        self.request()

    def request(self):
        if self.closed_by_us or self.goaway is not None:
            return self.end()
        self.stream += 2
        self.busy, self.n_body, self.body = True, 0, hashlib.sha256()
        self.transport.write(frame(HEADERS, 5, self.stream, self.head))

    def end(self):
        self.closed_by_us = True
        self.transport.close()

    def fail(self, text):
        self.clients.fail(f"{text} (stream {self.stream} of {self.path}, {self.n_body} bytes)")
        self.busy = False
        self.end()

    def go_on(self):
        self.transport.resume_reading()

    def data_received(self, data):
        self.buffer += data
        at = 0
        while len(self.buffer) - at >= 9:
            n = int.from_bytes(self.buffer[at:at + 3], "big")
            if len(self.buffer) - at < 9 + n:
                break
            kind, flags, stream = struct.unpack_from(">BBI", self.buffer, at + 3)
            self.take(kind, flags, stream, bytes(self.buffer[at + 9:at + 9 + n]))
            at += 9 + n
        del self.buffer[:at]

    def take(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & 1:
            self.transport.write(frame(SETTINGS, 1, 0))
        elif kind == PING and not flags & 1 and not self.closed_by_us:
            self.transport.write(frame(PING, 1, 0, payload))
        elif kind == GOAWAY:
            self.goaway, code = struct.unpack_from(">II", payload)
            if code:
                self.fail(f"GOAWAY with error {code}")
            elif self.busy and self.stream > self.goaway:
                self.fail("a request was not processed")
            elif not self.busy:
                self.end()
        elif kind == RST_STREAM:
            self.fail("RST_STREAM")
        elif kind == HEADERS and payload[0] != STATUS_200:
            self.fail(f"no status 200: {payload[:1].hex()}")
        elif kind == DATA:
            self.body.update(payload)
            self.n_body += len(payload)
            if self.holds:
                self.holds = False
                self.clients.n_held += 1
                self.transport.pause_reading()
        if kind in (DATA, HEADERS) and flags & 1:
            self.complete()

    def complete(self):
        if not self.busy:
            return
        self.busy = False
        if self.body.hexdigest() != self.clients.sums[self.path]:
            return self.fail("wrong body")
        self.clients.n_responses += 1
        self.clients.responses[self.path] += 1
        self.left -= 1
        if self.left == 0 or self.goaway is not None:
            self.end()
        else:
            self.clients.loop.call_later(self.pause, self.request)

    def connection_lost(self, error):
        self.clients.open_now.discard(self)
        if self.busy and not self.clients.stopping:
            self.clients.fail(f"the connection ended within a request: {error} "
                              f"(stream {self.stream} of {self.path}, {self.n_body} bytes)")
        elif error and not self.closed_by_us and not self.clients.stopping:
            self.clients.fail(f"the connection ended between two requests: {error}")
        if not self.done.done():
            self.done.set_result(None)


class SteadyClients:
    def __init__(self, world, sums, ipv6=False):
        self.world, self.sums = world, sums
        self.address = SERVER_ADDR6 if ipv6 else SERVER_ADDR
        self.family = socket.AF_INET6 if ipv6 else socket.AF_INET
        self.errors, self.n_errors = [], 0
        self.n_responses = self.n_opened = self.n_replaced = self.n_held = self.n_new = 0
        self.responses = collections.Counter()
        self.held, self.tasks, self.open_now = [], set(), set()
        self.stopping = False
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.run)
        self.tls = None
        if world.scheme == "https":
            self.tls = ssl.create_default_context(cafile=world.certificate[0])
            self.tls.check_hostname = False
            self.tls.set_alpn_protocols(["h2"])

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.stopping:
            return
        self.stopping = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(time_limit())
        self.loop.close()

    def run(self):
        with inside(self.world.client_ns):
            asyncio.set_event_loop(self.loop)
            self.loop.run_forever()
            for connection in list(self.open_now):
                connection.transport.abort()
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.run_until_complete(asyncio.sleep(0.1))

    def fail(self, text):
        self.n_errors += 1
        if len(self.errors) < ERRORS_MAX:
            self.errors.append(text)

    def spawn(self, work):
        """Runs a coroutine in the loop, from any thread."""
        def begin():
            task = self.loop.create_task(work)
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        self.loop.call_soon_threadsafe(begin)

    async def connect(self, path, n=0, pause=0.0, holds=False):
        """One connection; returns it when it is open, or None."""
        sock = socket.socket(self.family)
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RCVBUF)
        port = 443 if self.tls else 80
        try:
            await asyncio.wait_for(self.loop.sock_connect(sock, (self.address, port)), time_limit())
            _, connection = await self.loop.create_connection(
                lambda: Connection(self, path, n, pause, holds), sock=sock, ssl=self.tls,
                server_hostname="a" if self.tls else None,
                ssl_handshake_timeout=time_limit() if self.tls else None)
        except (OSError, asyncio.TimeoutError) as error:
            sock.close()
            self.fail(f"cannot connect: {error!r}")
            return None
        self.n_opened += 1
        return connection

    async def keep(self, path, pause):
        while not self.stopping:
            connection = await self.connect(path, pause=pause)
            if not connection:
                return
            await connection.done
            self.n_replaced += 1

    def open(self, n, path="one", pause=1.0):
        """Keeps `n` connections, each with a request every `pause` seconds."""
        for _ in range(n):
            self.spawn(self.keep(path, pause))

    async def download(self, path):
        connection = await self.connect(path, n=1, holds=True)
        if connection:
            self.held.append(connection)

    def hold(self, n, path):
        """Begins `n` downloads, which stop after their first bytes."""
        for _ in range(n):
            self.spawn(self.download(path))

    def go_on(self):
        """Completes the downloads of hold()."""
        for connection in self.held:
            self.loop.call_soon_threadsafe(connection.go_on)
        self.held = []

    async def visit(self, path):
        connection = await self.connect(path, n=1)
        if connection:
            await connection.done
            self.n_new += 1

    async def visit_often(self, path, per_second):
        at = self.loop.time()
        while not self.stopping:
            self.spawn(self.visit(path))
            at += 1 / per_second
            await asyncio.sleep(max(0, at - self.loop.time()))

    def arrive(self, per_second, path="one"):
        """Opens so many connections per second, each for one request."""
        self.spawn(self.visit_often(path, per_second))
