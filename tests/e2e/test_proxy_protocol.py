# SPDX-License-Identifier: BSD-3-Clause
"""
The PROXY protocol: curl, HAProxy and nginx name their clients, for cleartext and TLS, HTTP/1.1 and
HTTP/2. The access log of named fields has the client that a proxy names.
"""
import json
import os
import re
import signal
import socket
import ssl
import struct
import subprocess

from tests.netlab.case import ServerCase
from tests.netlab.h2client import Client
from tests.netlab.limits import time_limit
from tests.netlab.world import CLIENT_ADDR, CLIENT_ADDR6, SERVER_ADDR, SERVER_ADDR6, inside, until

FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\["\\]|\\u[0-9a-f]{4})*"|[^ "]+)')
KEYS = ["time", "client", "remote", "port", "peer", "host", "scheme", "protocol", "tls", "method",
        "path", "status", "bytes", "referer", "user_agent", "client_subject", "class", "ttfb_ms",
        "total_ms", "throttled_ms", "complete", "cut", "shard", "connection", "stream"]
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
NEAR = "127.0.0.1"  # where the fronts listen
V1, V2, TLS, HTTP, V1_6 = 8081, 8082, 8083, 8084, 8085
STRANGER = "198.18.0.100"
GET = b"GET /one HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"

HAPROXY = f"""
global
    nbthread 1
defaults
    mode tcp
    timeout connect 60s
    timeout server 60s
    timeout client 60s
listen v1
    bind {NEAR}:{V1}
    server nightjar {SERVER_ADDR}:80 send-proxy
listen v1_6
    bind [::1]:{V1_6}
    server nightjar [{SERVER_ADDR6}]:80 send-proxy
listen v2
    bind {NEAR}:{V2}
    default-server send-proxy-v2 check check-send-proxy inter 100
    server nightjar {SERVER_ADDR}:80 proxy-v2-options crc32c,authority
listen tls
    bind {NEAR}:{TLS}
    server nightjar {SERVER_ADDR}:443 send-proxy-v2-ssl-cn proxy-v2-options crc32c
listen http
    mode http
    bind {NEAR}:{HTTP}
    http-request set-header X-Forwarded-Proto https
    server nightjar {SERVER_ADDR}:80 send-proxy-v2
"""

NGINX = f"""
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off;
worker_processes 1;
pid @folder@/nginx.pid;
error_log @folder@/nginx.err;
events {{ }}
stream {{
    proxy_protocol on;
    server {{
        listen {NEAR}:{V1};
        proxy_pass {SERVER_ADDR}:80;
    }}
    server {{
        listen {NEAR}:{TLS};
        proxy_pass {SERVER_ADDR}:443;
    }}
}}
"""


def binary(source, port, more=b"", command=0x21):
    """A header of version 2."""
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    body = b"" if command == 0x20 else (
        2 * socket.inet_pton(family, source) + struct.pack(">HH", port, 80) + more)
    code = 0 if command == 0x20 else 0x21 if family == socket.AF_INET6 else 0x11
    return SIGNATURE + bytes([command, code]) + struct.pack(">H", len(body)) + body


class ProxyProtocol(ServerCase):
    ipv6 = True
    lcores = 1  # the lines have the order of the requests
    policy = f"""
[server]
deny = denied
deny_action = reset
[client]
by = header X-Forwarded-For
trusted_proxy = {CLIENT_ADDR}, {CLIENT_ADDR6}, 10.0.0.0/8
[list denied]
networks = 192.0.2.0/24
[log]
log_format = logfmt
"""

    @classmethod
    def prepare(cls):
        cls.world.serve_tls()
        cls.log = os.path.join(cls.world.scratch, "access.log")
        cls.world.options += [
            "--access-log", cls.log, "--addr", f"{SERVER_ADDR6}/64", "--preface-timeout", "2s",
            "--proxy-protocol", "80", "--proxy-protocol", "443"]

    def setUp(self):
        super().setUp()
        self.n_log_bytes = os.path.getsize(self.log)

    def lines(self, n):
        """The last `n` lines of the log, as dicts; there may be no others since the begin of the
        test."""
        until(lambda: f"{n} lines, but {self.counted('access_written')}",
              lambda: self.counted("access_written") >= n)
        with open(self.log, encoding="ascii") as f:
            f.seek(self.n_log_bytes)
            text = f.read()
        found = []
        for line in text.splitlines():
            fields = FIELD.findall(line)
            self.assertEqual(line, " ".join("=".join(field) for field in fields))
            found.append({name: json.loads(value) if value[0] == '"' else value
                          for name, value in fields})
            self.assertEqual(KEYS, list(found[-1]))
        self.assertEqual(n, len(found), text)
        return found

    def expect(self, line, **fields):
        self.assertEqual(fields, {name: line[name] for name in fields})

    def talk(self, *pieces, source=None, port=80, addr=SERVER_ADDR):
        """What the server answers until it closes; None: it resets."""
        family = socket.AF_INET6 if ":" in addr else socket.AF_INET
        with inside(self.world.client_ns):
            s = socket.socket(family)
        with s:
            s.settimeout(time_limit())
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if source:
                s.bind((source, 0))
            try:
                s.connect((addr, port))
                for piece in pieces:
                    s.sendall(piece)
                answer = b""
                while chunk := s.recv(65536):
                    answer += chunk
            except ConnectionError:
                return None
            return answer

    def test_curl(self):
        out = self.curl("--haproxy-protocol", "--http1.1", "-o", os.devnull, "-w", "%{local_port}",
                        f"http://{SERVER_ADDR}/one")
        self.curl("--haproxy-protocol", "--http2-prior-knowledge", "-o", os.devnull,
                  f"http://{SERVER_ADDR}/one")
        for version in ("--http1.1", "--http2"):
            self.curl("--haproxy-protocol", version, "--cacert", self.world.certificate[0],
                      "-o", os.devnull, self.world.url("/one"))
        lines = self.lines(4)
        # curl speaks for itself, so the source is the trusted proxy.
        for line in lines:
            self.expect(line, client=CLIENT_ADDR, remote=CLIENT_ADDR, peer=CLIENT_ADDR)
        self.assertEqual(out, lines[0]["port"])
        self.assertEqual(["http", "http", "https", "https"], [line["scheme"] for line in lines])
        self.assertEqual(4, self.counted("conn_proxied"))

    def test_raw_headers(self):
        """Both versions and families, at once and byte by byte."""
        line = b"PROXY TCP4 203.0.113.7 198.51.100.1 4711 80\r\n"
        line6 = b"PROXY TCP6 2001:db8:9::7 2001:db8::1 4711 80\r\n"
        sent = [(line, "203.0.113.7"), (line6, "2001:db8:9::7"),
                (binary("203.0.113.7", 4711), "203.0.113.7"),
                (binary("2001:db8:9::7", 4711), "2001:db8:9::7"),
                (binary("203.0.113.7", 4711, b"\x04\x0f\x00" + 0xf00 * b"x"), "203.0.113.7")]
        for header, _ in sent:
            self.assertIn(b" 200 OK\r\n", self.talk(header + GET))
            self.assertIn(b" 200 OK\r\n", self.talk(header + GET, addr=SERVER_ADDR6))
            pieces = [bytes([b]) for b in (header + GET)[:200]] + [(header + GET)[200:]]
            self.assertIn(b" 200 OK\r\n", self.talk(*pieces))
        lines = self.lines(3 * len(sent))
        for i, line in enumerate(lines):
            source = sent[i // 3][1]
            self.expect(line, client=source, remote=source, port="4711", host="a.test",
                        protocol="HTTP/1.1", scheme="http", tls="-", path="/one",
                        peer=CLIENT_ADDR6 if i % 3 == 1 else CLIENT_ADDR)

    def test_no_source(self):
        self.assertIn(b" 200 OK\r\n", self.talk(b"PROXY UNKNOWN\r\n" + GET))
        self.assertIn(b" 200 OK\r\n", self.talk(binary("", 0, command=0x20) + GET))
        for line in self.lines(2):
            self.expect(line, client=CLIENT_ADDR, remote=CLIENT_ADDR)
        self.assertEqual(0, self.counted("conn_proxied"))

    def refused(self, reason, *pieces, client=CLIENT_ADDR, **more):
        """The server resets, counts, and names the client."""
        before = self.counted(reason)
        self.assertIsNone(self.talk(*pieces, **more))
        until(reason, lambda: self.counted(reason) == before + 1)
        until("a line", lambda: re.search(rf" info: refused: client {client}\b.*: {reason} ",
                                          self.world.errors()))
        self.assertIn(reason, self.server.telemetry("/nightjar/refused"))

    def test_refused(self):
        self.world.client("ip", "addr", "add", f"{STRANGER}/24", "dev", "nj0", check=True)
        header = binary("203.0.113.7", 4711)
        self.refused("conn_proxy_untrusted", header + GET, source=STRANGER, client=STRANGER)
        self.refused("conn_proxy_missing", GET)
        self.refused("conn_proxy_missing", b"\x16\x03\x01\x00\x05hello", port=443)
        self.refused("conn_proxy_malformed", b"PROXY TCP4 203.0.113.7 1.2.3.4 04711 80\r\n" + GET)
        self.refused("conn_proxy_malformed", header[:13] + b"\x12" + header[14:])
        self.refused("conn_proxy_timeout", header[:20])
        self.refused("conn_proxy_timeout", b"PROXY ", port=443)
        self.refused("conn_denied", binary("192.0.2.7", 4711) + GET, client="192.0.2.7")
        self.assertEqual(0, self.counted("requests"))

    def test_closed_without_a_byte(self):
        """As some health checks do."""
        self.world.connect().close()
        until("it is closed", lambda: self.counted("tcp_closed") == 1)
        self.assertEqual([], [n for n in self.server.telemetry("/nightjar/refused")
                              if n.startswith("conn_proxy") and self.counted(n)])

    def test_order_of_names(self):
        """A client behind the header cannot be forged by X-Forwarded-For; a proxy's counts."""
        field = b"X-Forwarded-For: 1.2.3.4, 203.0.113.9, 10.0.0.2\r\n"
        get = GET.replace(b"\r\n\r\n", b"\r\n" + field + b"X-Forwarded-Proto: https\r\n\r\n")
        self.assertIn(b" 200 OK\r\n", self.talk(binary("203.0.113.7", 4711) + get))
        self.assertIn(b" 200 OK\r\n", self.talk(binary("10.0.0.1", 4711) + get))
        self.assertIn(b" 200 OK\r\n", self.talk(b"PROXY UNKNOWN\r\n" + get))
        direct, behind, own = self.lines(3)
        self.expect(direct, client="203.0.113.7", remote="203.0.113.7", scheme="http")
        self.expect(behind, client="203.0.113.9", remote="10.0.0.1", scheme="https")
        self.expect(own, client="203.0.113.9", remote=CLIENT_ADDR, scheme="https")

    def test_http2_and_tls(self):
        sock = self.world.connect()
        sock.sendall(binary("203.0.113.7", 1))
        client = Client(sock)
        self.assertEqual(200, client.get("/one")[0])
        client.close()
        context = ssl.create_default_context(cafile=self.world.certificate[0])
        context.set_alpn_protocols(["h2"])
        sock = self.world.connect(port=443)
        sock.sendall(binary("203.0.113.8", 2))
        client = Client(context.wrap_socket(sock, server_hostname=SERVER_ADDR))
        self.assertEqual(200, client.get("/200KiB", **{":scheme": "https"})[0])
        client.close()
        clear, tls = self.lines(2)
        self.expect(clear, client="203.0.113.7", port="1", protocol="HTTP/2.0", tls="-")
        self.expect(tls, client="203.0.113.8", port="2", protocol="HTTP/2.0", scheme="https")
        self.assertTrue(tls["tls"].startswith("TLS_"))

    def test_texts_of_clients(self):
        """Spaces, quotes, equal signs and control characters do not end a field."""
        agent = 'a "b" \\ c=d status=200\t'
        get = GET.replace(b"/one", b'/one?a="b"\\').replace(
            b"\r\n\r\n", b"\r\nUser-Agent: " + agent.encode() + b"x \xe9\r\n\r\n")
        self.assertIn(b" 200 OK\r\n", self.talk(binary("203.0.113.7", 4711) + get))
        with open(self.log, "rb") as f:
            f.seek(self.n_log_bytes)
            until("the line", lambda: self.counted("access_written") == 1)
            line = f.read().decode()
        fields = dict(FIELD.findall(line))
        self.assertEqual(agent + "x \xe9", json.loads(fields["user_agent"]))
        self.assertEqual('/one?a="b"\\', json.loads(fields["path"]))
        self.assertEqual(KEYS, [name for name, _ in FIELD.findall(line)])

    # --- fronts ---

    def front(self, command, config, port):
        path = os.path.join(self.world.scratch, command[0] + ".proxy.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(config.replace("@folder@", self.world.scratch))
        process = self.world.client_popen(*command, path, stdin=subprocess.DEVNULL,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def stop():
            process.send_signal(signal.SIGTERM)
            process.wait(time_limit())
        self.addCleanup(stop)

        def listens():
            self.assertIsNone(process.poll(), f"{command[0]} has ended")
            with inside(self.world.client_ns):
                s = socket.socket()
            with s:
                return s.connect_ex((NEAR, port)) == 0
        until(f"{command[0]} listens", listens)

    def through(self, port, *more, scheme="http", host=NEAR, source="127.0.0.5"):
        """The client's port."""
        name = "nightjar.test"
        return self.curl("--connect-to", f"{name}:{port}:{host}:{port}", "--interface", source,
                         "--insecure", "-o", os.devnull, "-w", "%{local_port}", *more,
                         f"{scheme}://{name}:{port}/one")

    def requests(self):
        """The lines of curl's requests: a front that begins may have connected by itself."""
        with open(self.log, encoding="ascii") as f:
            f.seek(self.n_log_bytes)
            return [{name: json.loads(value) if value[0] == '"' else value
                     for name, value in FIELD.findall(line)} for line in f]

    def wait_requests(self, n):
        until(lambda: f"{n} requests: {self.requests()}", lambda: len(self.requests()) == n)
        return self.requests()

    def test_haproxy(self):
        self.front(["haproxy", "-f"], HAPROXY, V1)
        ports = [self.through(V1, "--http1.1"), self.through(V1, "--http2-prior-knowledge"),
                 self.through(V2, "--http1.1"), self.through(V2, "--http2-prior-knowledge"),
                 self.through(TLS, "--http1.1", scheme="https"),
                 self.through(TLS, "--http2", scheme="https"), self.through(HTTP, "--http1.1")]
        lines = self.wait_requests(len(ports))
        for line, port in zip(lines, ports):
            self.expect(line, client="127.0.0.5", remote="127.0.0.5", port=port, peer=CLIENT_ADDR,
                        status="200")
            self.assertTrue(line["host"].startswith("nightjar.test:"), line)
        self.assertEqual(["HTTP/1.1", "HTTP/2.0"] * 3 + ["HTTP/1.1"],
                         [line["protocol"] for line in lines])
        # The last one has X-Forwarded-Proto, but the source of its connection is no proxy.
        self.assertEqual(["http"] * 4 + ["https"] * 2 + ["http"],
                         [line["scheme"] for line in lines])
        port = self.through(V1_6, "--http1.1", host="[::1]", source="::1")
        self.expect(self.wait_requests(8)[-1], client="::1", port=port, peer=CLIENT_ADDR6)
        self.assertEqual(0, self.counted("conn_proxy_malformed"))

    def test_nginx(self):
        self.front(["nginx", "-c"], NGINX, V1)
        ports = [self.through(V1, "--http1.1"), self.through(V1, "--http2-prior-knowledge"),
                 self.through(TLS, "--http1.1", scheme="https"),
                 self.through(TLS, "--http2", scheme="https")]
        for line, port in zip(self.wait_requests(4), ports):
            self.expect(line, client="127.0.0.5", remote="127.0.0.5", port=port, peer=CLIENT_ADDR)
        self.assertEqual(0, self.counted("conn_proxy_malformed"))
