# SPDX-License-Identifier: BSD-3-Clause
"""
The server closes the connection of an abusive client. The GOAWAY frame carries the reason.
The counts of the lines on standard error add up to the number of closed connections (unit test
log_abuse_log: at most one line per second and reason). Telemetry has the same count and the address
of the client. The same holds for what is refused before there is a transaction.
"""
import contextlib
import os
import re
import socket
import ssl

import h2.errors
import h2.events

from tests.netlab.case import ServerCase
from tests.netlab.h2client import Client
from tests.netlab.limits import time_limit
from tests.netlab.world import CLIENT_ADDR, SERVER_ADDR, inside, until

FLOODS = 12
REFUSED = re.compile(r" nightjar: info: refused: client (\S+): (\w+) \d+ times?: ", re.M)
DENIED_ADDR = "198.18.0.100"
LINE = re.compile(r" nightjar: warning: abuse: client (\S+): h2_abuse_resets (\d+) times?: ", re.M)


class Reported(ServerCase):
    def reset_until_goaway(self):
        """Resets each request at once until the server closes. Returns the GOAWAY event."""
        client = Client(self.world.connect())
        client.sock.settimeout(time_limit())
        while not client.goaway():
            try:
                for _ in range(100):
                    stream = client.prepare("/one")
                    client.h2.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
                client.flush()
                client.get("/one")  # not a PING: it could be the frame that exceeds the limit
            except ConnectionError:  # the server closed; its last frames may not be read yet
                with contextlib.suppress(ConnectionError):
                    while client.read():
                        pass
                break
        client.close()
        return next(e for e in client.events if isinstance(e, h2.events.ConnectionTerminated))

    def lines(self):
        return [(address, int(times)) for address, times in LINE.findall(self.world.errors())]

    def test_floods_of_resets(self):
        for _ in range(FLOODS):
            goaway = self.reset_until_goaway()
            self.assertEqual(h2.errors.ErrorCodes.ENHANCE_YOUR_CALM, goaway.error_code)
            self.assertEqual(b"too many streams reset", goaway.additional_data)
        until("a line for each flood", lambda: sum(n for _, n in self.lines()) == FLOODS)
        self.assertEqual(FLOODS, self.counted("h2_abuse_resets"))
        self.assertEqual({CLIENT_ADDR}, {address for address, _ in self.lines()})
        abuse = self.server.telemetry("/nightjar/abuse")["h2_abuse_resets"]
        self.assertEqual((FLOODS, CLIENT_ADDR), (abuse["count"], abuse["client"]))


class Refused(ServerCase):
    options = ("--no-http1",)
    policy = f"[server]\ndeny = denied\n[list denied]\nnetworks = {DENIED_ADDR}\n"

    @classmethod
    def prepare(cls):
        cls.world.serve_tls()
        cls.log = os.path.join(cls.world.scratch, "access.log")
        cls.world.options += ["--access-log", cls.log, "--tls-client-ca", cls.world.certificate[0]]

    def expect(self, reason, client=CLIENT_ADDR):
        """`reason` has counted; a line and telemetry name the client."""
        until(f"{reason} is counted", lambda: self.counted(reason) > 0)
        until("a line", lambda: (client, reason) in REFUSED.findall(self.world.errors()))
        refused = self.server.telemetry("/nightjar/refused")[reason]
        self.assertEqual((client, "no"), (refused["client"], refused["others"]))
        self.assertGreater(refused["count"], 0)
        self.assertNotIn(reason, self.server.telemetry("/nightjar/abuse"))

    def send(self, data, port=80):
        """Returns what the server sends until it closes."""
        with self.world.connect(port=port) as sock:
            sock.sendall(data)
            received = b""
            with contextlib.suppress(ConnectionError):
                while chunk := sock.recv(65536):
                    received += chunk
            return received

    def test_http1(self):
        self.assertIn(b" 505 ", self.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"))
        self.expect("conn_http1")

    def test_no_preface(self):
        self.assertEqual(b"", self.send(b"SSH-2.0-OpenSSH\r\n"))
        self.expect("conn_unknown")

    def test_a_preface_with_an_error(self):
        self.assertIn(b"preface: not allowed", self.send(b"PRI * HTTP/2.0\r\n\r\nSSH\r\n\r\n"))
        self.expect("h2_error")

    def handshake(self, version=ssl.TLSVersion.TLSv1_3, protocol="h2"):
        context = ssl.create_default_context(cafile=self.world.certificate[0])
        context.minimum_version = context.maximum_version = version
        context.set_alpn_protocols([protocol])
        with self.world.connect(port=443) as sock, \
                self.assertRaises((ssl.SSLError, ConnectionError)), \
                context.wrap_socket(sock, server_hostname=SERVER_ADDR) as tls:
            tls.recv(1)  # a client knows of its refusal when it reads

    def test_tls(self):
        self.handshake(version=ssl.TLSVersion.TLSv1_2)
        self.expect("tls_failed_version")
        self.handshake(protocol="http/1.1")
        self.expect("tls_failed_alpn")
        self.handshake()
        self.expect("tls_failed_client_cert")
        self.send(b"GET / HTTP/1.1\r\n", port=443)
        self.expect("tls_failed_message")

    def head(self, *fields):
        """Returns the events of a request with these fields."""
        client = self.client()
        stream = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream, fields, end_stream=True)
        client.flush()
        return client, stream

    def test_no_host(self):
        """As sent by HAProxy's `option httpchk` over HTTP/2."""
        client, stream = self.head((":method", "OPTIONS"), (":scheme", "http"), (":path", "/"),
                                   ("user-agent", "check"))
        self.assertEqual(400, client.response(stream)[0])
        self.assertEqual(200, client.get("/one")[0])  # the connection stays
        self.expect("request_no_host")

        def logged():
            with open(self.log) as f:
                return [line for line in f if '"check"' in line]
        line = until("a line in the access log", logged)[0]
        self.assertRegex(line, rf'^{CLIENT_ADDR} .* "OPTIONS / HTTP/2.0" 400 ')

    def test_a_malformed_head(self):
        client, stream = self.head((":method", "GET"), (":scheme", "http"), (":authority", "a"))
        client.response(stream)
        reset = next(e for e in client.events if isinstance(e, h2.events.StreamReset))
        self.assertEqual(h2.errors.ErrorCodes.PROTOCOL_ERROR, reset.error_code)
        self.expect("request_malformed")

    def test_a_denied_network(self):
        self.world.more_addresses(1)
        with inside(self.world.client_ns):
            sock = socket.socket()
        with sock:
            sock.setblocking(False)
            sock.bind((DENIED_ADDR, 0))
            sock.connect_ex((SERVER_ADDR, 80))
            self.expect("drop_tcp_denied", DENIED_ADDR)
