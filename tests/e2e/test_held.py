# SPDX-License-Identifier: BSD-3-Clause
"""
Clients that leave something unfinished on thousands of connections, so that the server holds what
they have sent. New clients are served all the same, and the server names the others.
"""
import re
import resource
import socket
import ssl
import struct

from tests.netlab.case import ServerCase
from tests.netlab.h2client import Client
from tests.netlab.world import SERVER_ADDR, until

CONNECTIONS, NEWCOMERS = 2000, 50
SEGMENT, SEGMENTS = bytes(300), 54
RECORD_HEAD = b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc"  # a ClientHello of 16 KiB
HEADERS, SETTINGS, CONTINUATION = 1, 4, 9


def frame_header(kind, stream, n_bytes):
    return struct.pack("!I", n_bytes)[1:] + bytes([kind, 0]) + struct.pack("!I", stream)


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame_header(SETTINGS, 0, 0)


class Unfinished(ServerCase):
    lcores = 1
    options = ("--preface-timeout", "20s", "--header-timeout", "20s", "--max-connections", "8192")

    @classmethod
    def prepare(cls):
        cls.world.serve_tls()
        cls.context = ssl.create_default_context(cafile=cls.world.certificate[0])
        cls.context.set_alpn_protocols(["h2"])

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * CONNECTIONS + 1000), hard))
        cls.addresses = cls.world.more_addresses(9)

    def attack(self, port, head, n_addresses):
        """The connections, each with `head` and then SEGMENTS short segments."""
        sockets = []
        self.addCleanup(lambda: [sock.close() for sock in sockets])
        for i in range(CONNECTIONS):
            sock = self.world.connect(port=port, source=self.addresses[1 + i % n_addresses])
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(False)
            sockets.append(sock)
        for data in (head, *[SEGMENT] * SEGMENTS):
            for sock in sockets:
                try:
                    sock.send(data)
                except OSError:  # reset, or its buffer is full
                    pass
        return sockets

    def serve_newcomers(self):
        for i in range(NEWCOMERS):
            with self.world.connect(port=443 if i % 2 else 80, source=self.addresses[0]) as sock:
                if i % 2:
                    with self.context.wrap_socket(sock, server_hostname=SERVER_ADDR) as tls:
                        self.assertEqual(200, Client(tls).get("/one")[0])
                else:
                    self.assertEqual(200, Client(sock).get("/one")[0])

    def case(self, port, head, n_addresses, holds):
        sockets = self.attack(port, head, n_addresses)
        self.serve_newcomers()
        self.assertEqual(0, self.counted("drop_tcp_full"))
        if holds:
            self.assertGreater(self.counted("conn_rx_limit"), 0)
            line = re.compile("abuse: client (" + "|".join(
                map(re.escape, self.addresses[1:1 + n_addresses])) + r")\b.*: conn_rx_limit ")
            until("a line names an attacker", lambda: line.search(self.world.errors()))
            self.assertNotIn(f"client {self.addresses[0]}", self.world.errors())
        for sock in sockets:
            sock.close()

    def test_client_hellos_of_one_address(self):
        self.case(443, RECORD_HEAD, 1, holds=True)

    def test_client_hellos_of_eight_addresses(self):
        self.case(443, RECORD_HEAD, 8, holds=True)

    def test_header_blocks(self):
        self.case(80, PREFACE + frame_header(HEADERS, 1, 16384), 8, holds=False)

    def test_continuations(self):
        self.case(80, PREFACE + frame_header(HEADERS, 1, 0) +
                  frame_header(CONTINUATION, 1, 16384), 8, holds=False)
