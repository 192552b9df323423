# SPDX-License-Identifier: BSD-3-Clause
"""
Handshakes of hostile clients: slow, partial, oversized, truncated, replayed, garbage. Each is
counted, memory is bounded, and another client makes handshakes and requests meanwhile.
"""
import contextlib
import hashlib
import random
import select
import socket
import ssl
import struct
import threading

from tests.netlab.case import ServerCase
from tests.netlab.h2client import Client
from tests.netlab.world import SANITIZED, SERVER_ADDR, until

TIMEOUT_S = 12 if SANITIZED else 3
HANDSHAKES_MAX = 1024  # NJ_TLS_HANDSHAKES_MAX
RECORD_MAX = 16384
# Memory for 512 handshakes and 600 connections
MORE_KIB_MAX = (64 << 10) * (4 if SANITIZED else 1)
SEED = random.SystemRandom().randrange(1 << 32)


def records(message, n=RECORD_MAX):
    """A handshake message in records of at most `n` bytes."""
    pieces = (message[i:i + n] for i in range(0, len(message), n))
    return b"".join(b"\x16\x03\x01" + struct.pack("!H", len(piece)) + piece for piece in pieces)


def padded(hello, n):
    """The records of a ClientHello with an unknown extension of `n` bytes."""
    body, at = hello[9:], 34  # behind version and random
    at += 1 + body[at]  # session
    at += 2 + int.from_bytes(body[at:at + 2], "big")  # cipher suites
    at += 1 + body[at]  # compression
    extensions = body[at + 2:] + struct.pack("!HH", 0xfafa, n) + bytes(n)
    body = body[:at] + struct.pack("!H", len(extensions)) + extensions
    return records(b"\x01" + len(body).to_bytes(3, "big") + body)


def until_end(sock):
    """What the server sends until it closes or resets the connection."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while chunk := sock.recv(65536):
            data += chunk
    return data


class Conversation:
    """A client of Python's ssl whose bytes the test moves. `sent`: all bytes, in flights."""

    def __init__(self, context, sock):
        self.sock, self.sent = sock, []
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=SERVER_ADDR)

    def step(self, action):
        """Returns action()'s result after the server's bytes that it needs."""
        while True:
            try:
                result = action()
            except ssl.SSLWantReadError:
                result = None
            if data := self.outgoing.read():
                self.sent.append(data)
                self.sock.sendall(data)
            if result is not None:
                return result
            data = self.sock.recv(65536)
            if not data:
                raise ConnectionError("the server closed")
            self.incoming.write(data)

    def handshake(self):
        self.step(lambda: self.tls.do_handshake() or True)

    def sendall(self, data):
        self.step(lambda: self.tls.write(data))

    def recv(self, n):
        return self.step(lambda: self.tls.read(n))


class Hostile(ServerCase):
    lcores = 1
    options = ("--preface-timeout", f"{TIMEOUT_S}s")

    @classmethod
    def prepare(cls):
        cls.world.serve_tls()
        cls.context = ssl.create_default_context(cafile=cls.world.certificate[0])
        cls.context.set_alpn_protocols(["h2"])
        conversation = Conversation(cls.context, None)
        with contextlib.suppress(ssl.SSLWantReadError):
            conversation.tls.do_handshake()
        cls.hello = conversation.outgoing.read()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.other_address, = cls.world.more_addresses(1)

    def setUp(self):
        super().setUp()
        self.sockets = []
        self.addCleanup(lambda: [sock.close() for sock in self.sockets])

    def tearDown(self):
        for sock in self.sockets:
            sock.close()
        super().tearDown()

    def connect(self, data=b"", fin=False):
        sock = self.world.connect(port=443)
        self.sockets.append(sock)
        sock.sendall(data)
        if fin:
            sock.shutdown(socket.SHUT_WR)
        return sock

    def one_request(self):
        with self.world.connect(port=443, source=self.other_address) as sock, \
                self.context.wrap_socket(sock, server_hostname=SERVER_ADDR) as tls:
            body = Client(tls).get("/16KiB-1")[2]
            self.assertEqual(self.sums["16KiB-1"], hashlib.sha256(body).hexdigest())

    @contextlib.contextmanager
    def another_client(self, own=0):
        """Another client connects and requests a file, again and again, until the block ends.
        `own`: complete handshakes of the test itself."""
        stop, errors, n_done = threading.Event(), [], 0

        def requests():
            nonlocal n_done
            try:
                while not stop.is_set() or n_done == 0:
                    self.one_request()
                    n_done += 1
            except Exception as error:  # of whatever kind, it is a failure of the test
                errors.append(error)
        thread = threading.Thread(target=requests)
        thread.start()
        try:
            yield
            self.one_request()
        finally:
            stop.set()
            thread.join()
        self.assertEqual([], errors)
        self.assertEqual(n_done + 1 + own, self.counted("tls_handshakes"))

    def memory_kib(self):
        with open(f"/proc/{self.server.process.pid}/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))

    def no_handshakes(self):
        until("no handshake in progress",
              lambda: self.server.stats()["tls_handshakes_open"] == 0)

    def test_partial_ones_end_by_the_timeout(self):
        lengths = (0, 1, 5, 6, len(self.hello) // 2, len(self.hello) - 1, len(self.hello))
        with self.another_client():
            sockets = [self.connect(self.hello[:n]) for n in lengths]
            answers = [until_end(sock) for sock in sockets]
        self.assertEqual([False] * 6 + [True], [bool(answer) for answer in answers])
        self.assertEqual(len(lengths), self.counted("conn_timeout"))
        self.assertEqual(1, self.counted("tls_failed_closed"))  # one was a handshake
        self.no_handshakes()

    def test_progress_does_not_prolong_the_timeout(self):
        with self.another_client():
            sock = self.connect()
            with contextlib.suppress(ConnectionError):
                for i, byte in enumerate(padded(self.hello, 40000)):
                    sock.sendall(bytes((byte,)))
                    if select.select([sock], [], [], 0.02)[0]:
                        break
            self.assertEqual(b"", until_end(sock))
        self.assertLess(i, 40000)
        self.assertEqual(1, self.counted("conn_timeout"))

    def test_truncated_ones_end_at_once(self):
        lengths = (1, 5, 6, len(self.hello) // 2, len(self.hello) - 1, len(self.hello))
        with self.another_client(own=1):
            for n in lengths:
                until_end(self.connect(self.hello[:n], fin=True))
            conversation = Conversation(self.context, self.connect())
            conversation.handshake()
            flight = conversation.sent[1]  # the Finished; the server answers with a ticket
            for n in (0, 5, len(flight) // 2):
                sock = self.connect(self.hello)
                sock.recv(1)
                sock.sendall(flight[:n])
                sock.shutdown(socket.SHUT_WR)
                until_end(sock)
            self.assertEqual(0, self.counted("conn_timeout"))
            conversation.sock.close()
        until("they are counted",
              lambda: self.counted("tls_failed_closed") == len(lengths) + 3)
        self.no_handshakes()

    def test_oversized_ones(self):
        with self.another_client():
            for n in (RECORD_MAX - len(self.hello), 32 << 10, 60000):  # one flight, in more tasks
                with self.subTest(extension=n):
                    self.assertEqual(b"\x16\x03\x03", self.connect(padded(self.hello, n)).recv(3))
            self.assertEqual(0, self.counted("tls_failed_message"))
            long = [b"\x16\x03\x01" + struct.pack("!H", n) + bytes(min(n, 1 << 16))
                    for n in (RECORD_MAX + 1, RECORD_MAX + 257, 65535)]
            long.append(records(b"\x01" + (1 << 20).to_bytes(3, "big") + bytes(1 << 18)))
            for data in long:
                with contextlib.suppress(ConnectionError):
                    sock = self.connect()
                    sock.sendall(data)
                until_end(sock)
        self.assertEqual(len(long), self.counted("tls_failed_message"))

    def test_replayed_clienthello(self):
        """One client has as many handshakes as are free. Each is answered afresh."""
        before, n = self.memory_kib(), HANDSHAKES_MAX // 2 + 88
        with self.another_client():
            sockets = [self.connect(self.hello) for _ in range(n)]
            until("the last one is processed", lambda: self.counted("tls_handshakes_full") and
                  not self.server.telemetry("/nightjar/workers")["tls"]["waiting"])
            used = self.server.stats()["tls_handshakes_open"]
            more = self.memory_kib() - before
            answers = [until_end(sock) for sock in sockets]
        randoms = {answer[11:43] for answer in answers if answer}
        refused = answers.count(b"")
        self.assertLess(more, MORE_KIB_MAX)
        self.assertLessEqual(used, HANDSHAKES_MAX // 2 + 2)  # two of the other client
        self.assertEqual(refused, self.counted("tls_handshakes_full"))
        self.assertEqual(n, len(randoms) + refused)
        self.assertGreaterEqual(len(randoms), HANDSHAKES_MAX // 2 - 2)
        self.assertEqual(len(randoms), self.counted("conn_timeout"))
        self.no_handshakes()

    def test_replayed_flights(self):
        """The flights of a whole connection, a second time: the Finished is of other keys."""
        conversation = Conversation(self.context, self.connect())
        conversation.handshake()
        self.assertEqual(200, Client(conversation).get("/one")[0])
        conversation.sock.close()
        self.assertEqual(1, self.counted("tls_handshakes"))
        sock = self.connect(conversation.sent[0])
        sock.recv(1)
        for data in conversation.sent[1:]:
            sock.sendall(data)
        until_end(sock)
        self.assertEqual((1, 1), (self.counted("tls_handshakes"),
                                  self.counted("tls_failed_message")))
        self.assertEqual(1, self.counted("requests"))

    def test_replayed_record(self):
        """A record with a request, again on the same connection: its number is another."""
        conversation = Conversation(self.context, self.connect())
        conversation.handshake()
        client = Client(conversation)
        client.request("/one")
        request = conversation.sent[-1]
        self.assertEqual(200, client.response(1)[0])
        conversation.sock.sendall(request)
        until_end(conversation.sock)
        self.assertEqual((1, 1), (self.counted("tls_bad_record"), self.counted("requests")))

    def test_garbage(self):
        """Random bytes, and ClientHellos with random changes."""
        rng = random.Random(SEED)
        n = 200
        with self.subTest(seed=SEED), self.another_client():
            for _ in range(n):
                data = bytearray(self.hello)
                for _ in range(rng.randrange(1, 8)):
                    data[rng.randrange(len(data))] = rng.randrange(256)
                until_end(self.connect(bytes(data), fin=True))
                noise = rng.randbytes(rng.randrange(6, 2000))
                head = b"\x16\x03\x01" + struct.pack("!H", len(noise)) if rng.random() < .5 else b""
                with contextlib.suppress(ConnectionError):
                    until_end(self.connect(head + noise, fin=True))
        failures = ("version", "negotiation", "alpn", "alert", "message", "closed")
        until("each is counted", lambda: sum(self.counted(f"tls_failed_{name}")
                                             for name in failures) == 2 * n)
        self.no_handshakes()
