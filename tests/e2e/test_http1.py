# SPDX-License-Identifier: BSD-3-Clause
"""
HTTP/1.1 and HTTP/1.0 with clients that are everywhere: curl, wget, Python's http.client, and a raw
socket. Files byte for byte, handlers, HTTPS, and the end of connections.
"""
import hashlib
import http.client
import json
import os
import random
import signal
import socket
import ssl
import zlib
from concurrent.futures import ThreadPoolExecutor

from tests.http1 import wire
from tests.netlab.case import FILES, ServerCase
from tests.netlab.certificates import make_certificate
from tests.netlab.world import CLIENT_ADDR, SERVER_ADDR, until

HEAD = b"GET %s HTTP/1.1\r\nHost: nightjar.test\r\n%s\r\n"
CLOSE = b"Connection: close\r\n"
MIB10 = FILES["10MiB"]
NAME = "nightjar.test"


class Http1Case(ServerCase):
    @classmethod
    def prepare(cls):
        cls.log = os.path.join(cls.world.scratch, "access.log")
        cls.world.options += ["--access-log", cls.log, "--log-format", "json"]
        cls.sums |= {"64KiB": cls.write("64KiB", random.Random(64).randbytes(64 << 10))}
        cls.write("small", b"small\n")

    def setUp(self):
        self.wait_for_log()  # lines of former tests must not count for this one
        super().setUp()

    @classmethod
    def write(cls, name, data):
        with open(os.path.join(cls.root, name), "wb") as f:
            f.write(data)
        return hashlib.sha256(data).hexdigest()

    def path(self, name):
        return os.path.join(self.world.scratch, name)

    def curl(self, *args, **more):
        return super().curl("--http1.1", *args, **more)  # the last option of this kind counts

    def raw(self, data):
        """Sends bytes, and returns the responses until the server closes."""
        exchange = wire.Exchange(self.world.connect(), [data])
        wire.run([exchange])
        self.assertFalse(exchange.reset)
        return exchange.responses()

    def ask(self, path, *lines):
        """A response to GET on a connection of its own."""
        fields = b"".join(line.encode() + b"\r\n" for line in lines)
        response, = self.raw(HEAD % (path.encode(), fields + CLOSE))
        return response

    def same(self, name, path):
        with open(path, "rb") as f:
            self.assertEqual(self.sums[name], hashlib.sha256(f.read()).hexdigest(), name)

    def records(self, n):
        """The last `n` lines of the access log, once there are `n` since the begin of the test."""
        until("they are logged", lambda: self.counted("access_written") >= n)
        with open(self.log, encoding="utf-8") as f:
            return [json.loads(line) for line in f.readlines()[-n:]]


class Files(Http1Case):
    def test_curl_without_options(self):
        done = self.world.client("curl", "-sSi", self.world.url("/"))
        self.assertTrue(done.stdout.startswith("HTTP/1.1 200 OK\n"), done.stdout)
        self.assertIn("Content-Length: 24\n", done.stdout)
        self.assertIn("<title>nightjar</title>", done.stdout)
        self.assertEqual(1, self.counted("conn_h1"))

    def test_upgrade_to_http_2_is_ignored(self):
        out = self.curl("--http2", "-i", self.world.url("/small"))
        self.assertTrue(out.startswith("HTTP/1.1 200 "), out)
        self.assertNotIn("101", out.split("\n")[0])

    def test_prior_knowledge_beside_it(self):
        self.assertTrue(self.curl("--http2-prior-knowledge", "-i", self.world.url("/small"))
                        .startswith("HTTP/2 200"))

    def test_files_byte_for_byte(self):
        names = list(self.sums)
        for version in ("--http1.1", "--http1.0"):
            outputs = [word for name in names for word in
                       ("-o", self.path(name + ".got"), self.world.url("/" + name))]
            self.curl(version, *outputs)
            for name in names:
                with self.subTest(version=version, name=name):
                    self.same(name, self.path(name + ".got"))

    def test_a_connection_is_used_again(self):
        out = self.curl("-w", "%{num_connects} ", *[word for _ in range(5) for word in
                                                    ("-o", "/dev/null", self.world.url("/small"))])
        self.assertEqual([1, 0, 0, 0, 0], [int(n) for n in out.split()])
        self.assertEqual(1, self.counted("conn_h1"))
        self.assertEqual(5, self.counted("requests"))

    def test_http_1_0(self):
        out = self.curl("--http1.0", "-i", self.world.url("/small"))
        self.assertTrue(out.startswith("HTTP/1.1 200 "), out)
        self.assertIn("Connection: close\n", out)
        self.assertEqual("HTTP/1.0", self.records(1)[0]["protocol"])

    def test_head(self):
        out = self.curl("-I", self.world.url("/200KiB"))
        self.assertIn(f"Content-Length: {200 << 10}\n", out)
        self.assertTrue(out.endswith("\n\n"), out)

    def test_conditions(self):
        etag = self.ask("/small").fields["etag"][0]
        until("the file is not new on any shard: then it has a Last-Modified",
              lambda: all("last-modified" in self.ask("/small").fields for _ in range(20)))
        modified = self.ask("/small").fields["last-modified"][0]
        for lines, status in ((("If-None-Match: " + etag,), 304), (('If-None-Match: "x"',), 200),
                              (("If-Modified-Since: " + modified,), 304),
                              (("If-Match: " + etag,), 200), (('If-Match: "x"',), 412),
                              (("Range: bytes=1-3", "If-Range: " + etag), 206),
                              (("Range: bytes=1-3", 'If-Range: "x"'), 200)):
            with self.subTest(lines=lines):
                response = self.ask("/small", *lines)
                self.assertEqual((status, {200: b"small\n", 206: b"mal", 304: b""}.get(
                                     status, b"412 Precondition Failed\n")),
                                 (response.status, response.body))

    def test_statuses(self):
        for path, more, status in (
                ("/nothing", (), 404), ("/one/more", (), 404), ("/%zz", (), 400),
                ("/one", ("-X", "DELETE"), 405), ("/one", ("-d", "x"), 405),
                ("/one", ("-r", "5-"), 416), ("/%6fne?a=b", (), 200)):
            with self.subTest(path=path, more=more):
                self.assertEqual(str(status), self.curl("-o/dev/null", "-w%{http_code}", *more,
                                                        self.world.url(path)))

    def test_a_refused_upload(self):
        """curl reads the response while it sends."""
        with open(self.path("upload"), "wb") as f:
            f.write(os.urandom(3 << 20))
        for n_bytes in (3 << 20, 200_000, 20_000, 100):
            os.truncate(self.path("upload"), n_bytes)
            for how in (("--data-binary", "@"), ("-T", "")):
                with self.subTest(n_bytes=n_bytes, how=how):
                    self.assertEqual("405", self.curl(
                        "-o/dev/null", "-w%{http_code}", "--expect100-timeout", "100", how[0],
                        how[1] + self.path("upload"), self.world.url("/one")))

    def test_eight_ranges_at_once(self):
        step = MIB10 // 8
        def fetch(i):
            last = MIB10 if i == 7 else (i + 1) * step
            return self.curl("-r", f"{i * step}-{last - 1}", self.world.url("/10MiB"), text=False)
        with ThreadPoolExecutor(8) as pool:
            data = b"".join(pool.map(fetch, range(8)))
        self.assertEqual(self.sums["10MiB"], hashlib.sha256(data).hexdigest())

    def test_several_ranges(self):
        response = self.ask("/small", "Range: bytes=0-1,4-4")
        self.assertEqual(206, response.status)
        kind, _, boundary = response.fields["content-type"][0].partition("; boundary=")
        self.assertEqual("multipart/byteranges", kind)
        self.assertEqual(2, response.body.count(b"--" + boundary.encode() + b"\r\n"))

    def test_pipelined(self):
        paths = [b"/small", b"/64KiB", b"/one", b"/nothing", b"/empty", b"/10MiB", b"/small"]
        data = b"".join(HEAD % (path, b"") for path in paths[:-1]) + HEAD % (paths[-1], CLOSE)
        responses = self.raw(data)
        self.assertEqual([200, 200, 200, 404, 200, 200, 200], [r.status for r in responses])
        for path, response in zip(paths, responses):
            if sha256 := self.sums.get(path[1:].decode()):
                self.assertEqual(sha256, hashlib.sha256(response.body).hexdigest())
        self.assertEqual(["close"], responses[-1].fields["connection"])

    def test_a_thousand_pipelined_requests(self):
        """They wait in the receive window of TCP while responses are not read."""
        responses = self.raw(HEAD % (b"/16KiB-1", b"") * 1000 + HEAD % (b"/small", CLOSE))
        self.assertEqual(1001, len(responses))
        self.assertEqual({self.sums["16KiB-1"]},
                         {hashlib.sha256(r.body).hexdigest() for r in responses[:-1]})

    def test_wget(self):
        for name in self.sums:
            done = self.world.client("wget", "-q", "-O", self.path("wget"),
                                     self.world.url("/" + name))
            self.assertEqual(0, done.returncode, done.stderr)
            self.same(name, self.path("wget"))

    def test_wget_resumes_after_a_cut(self):
        with open(os.path.join(self.root, "10MiB"), "rb") as f, \
                open(self.path("10MiB"), "wb") as to:
            to.write(f.read(3_141_592))
        done = self.world.client("wget", "-c", "-O", self.path("10MiB"), self.world.url("/10MiB"))
        self.assertIn("206 Partial Content", done.stderr)
        self.same("10MiB", self.path("10MiB"))

    def test_http_client(self):
        connection = http.client.HTTPConnection(SERVER_ADDR)
        connection.sock = self.world.connect()
        self.addCleanup(connection.close)
        for method, path, status in (("GET", "/small", 200), ("HEAD", "/10MiB", 200),
                                     ("GET", "/nothing", 404), ("POST", "/one", 405),
                                     ("GET", "/64KiB", 200)):
            connection.request(method, path, body=b"x" if method == "POST" else None)
            response = connection.getresponse()
            body = response.read()
            self.assertEqual((status, 11), (response.status, response.version))
            if path[1:] in self.sums and method == "GET" and status == 200:
                self.assertEqual(self.sums[path[1:]], hashlib.sha256(body).hexdigest())
        self.assertEqual(1, self.counted("conn_h1"))

    def test_access_log(self):
        self.curl("-A", "agent", "-e", "http://other.test/", "-H", "Host: files.test",
                  "-o/dev/null", self.world.url("/small?a"), "-o/dev/null",
                  self.world.url("/nothing"))
        first, second = self.records(2)
        self.assertEqual(
            ["GET", "/small?a", "files.test", "HTTP/1.1", 200, 6, "http://other.test/", "agent",
             True, CLIENT_ADDR, 1],
            [first[key] for key in ("method", "path", "authority", "protocol", "status", "bytes",
                                    "referer", "user_agent", "complete", "remote", "stream")])
        self.assertEqual([404, 2], [second["status"], second["stream"]])


class Handlers(Http1Case):
    """Bodies of requests, and responses whose length is not known."""
    program = "nightjar-test-handlers"

    def test_get(self):
        out = self.curl("-i", self.world.url("/hello"))
        self.assertTrue(out.startswith("HTTP/1.1 200 OK\n") and out.endswith("\n\nhello\n"), out)

    def test_chunked_response(self):
        for n_bytes in (0, 1, 16384, 1_000_000):
            with self.subTest(n_bytes=n_bytes):
                path = f"/count?n={n_bytes}"
                body = (bytes(range(251)) * (n_bytes // 251 + 1))[:n_bytes]
                got = self.ask(path)
                self.assertEqual(hashlib.sha256(body).hexdigest(),
                                 hashlib.sha256(got.body).hexdigest())
                old, = self.raw(f"GET {path} HTTP/1.0\r\n\r\n".encode())
                self.assertNotIn("transfer-encoding", old.fields)
                self.assertEqual(hashlib.sha256(body).hexdigest(),
                                 hashlib.sha256(old.body).hexdigest())

    def test_trailers(self):
        got = self.ask("/trailers", "TE: trailers")
        self.assertEqual((b"body\n", {"x-sum": ["5"], "x-last": ["yes"]}),
                         (got.body, got.trailers))
        self.assertEqual(["chunked"], got.fields["transfer-encoding"])

    def digest(self, *how, data, path="/digest"):
        """Uploads `data` with these arguments of curl, and compares what the handler has read."""
        with open(self.path("upload"), "wb") as f:
            f.write(data)
        with open(self.path("upload"), "rb") as f:
            out = self.curl(*how, self.world.url(path), stdin=f)
        self.assertEqual(f"{len(data)} {zlib.adler32(data)}\n", out)

    def test_uploads(self):
        for n_bytes in (0, 1, 1000, 200 << 10, 4 << 20):
            data = random.Random(n_bytes).randbytes(n_bytes)
            for how in (("--data-binary", "@-"), ("-X", "POST", "-T", "-"),
                        ("-H", "Expect: 100-continue", "--expect100-timeout", "100",
                         "--data-binary", "@-"),
                        ("-X", "POST", "-T", "-", "-H", "Expect: 100-continue",
                         "--expect100-timeout", "100"),
                        ("-H", "Expect:", "--data-binary", "@-"),
                        ("--http1.0", "--data-binary", "@-")):
                with self.subTest(n_bytes=n_bytes, how=how):
                    self.digest(*how, data=data)
            self.digest("-X", "POST", "-T", "-", data=data[:1 << 20], path="/os-digest")

    def test_too_large(self):
        for how in (("--data-binary", "@-"), ("-X", "POST", "-T", "-")):
            with self.subTest(how=how), open(os.path.join(self.root, "200KiB"), "rb") as f:
                self.assertEqual("413", self.curl("-o/dev/null", "-w%{http_code}", *how,
                                                  "--expect100-timeout", "100",
                                                  self.world.url("/small"), stdin=f))

    def test_http_client_sends_chunks(self):
        connection = http.client.HTTPConnection(SERVER_ADDR)
        connection.sock = self.world.connect()
        self.addCleanup(connection.close)
        parts = [bytes([i]) * (i * 100 + 1) for i in range(30)]
        for _ in range(3):
            connection.request("POST", "/digest", body=iter(parts), encode_chunked=True)
            data = b"".join(parts)
            self.assertEqual(f"{len(data)} {zlib.adler32(data)}\n".encode(),
                             connection.getresponse().read())
        self.assertEqual(1, self.counted("conn_h1"))

    def test_continue_is_sent_when_the_handler_reads(self):
        sock = self.world.connect()
        self.addCleanup(sock.close)
        sock.sendall(b"POST /digest HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
                     b"Expect: 100-continue\r\n\r\n")
        self.assertEqual(b"HTTP/1.1 100 Continue\r\n\r\n", sock.recv(4096))
        sock.sendall(b"hello" + HEAD % (b"/hello", CLOSE))
        data = b"".join(iter(lambda: sock.recv(65536), b""))
        self.assertEqual([f"5 {zlib.adler32(b'hello')}\n".encode(), b"hello\n"],
                         [response.body for response in wire.parse(data)])


class Https(Http1Case):
    @classmethod
    def prepare(cls):
        super().prepare()
        cls.cert, key = make_certificate(cls.world.scratch, "server", f"DNS:{NAME}")
        cls.world.options += ["--tls-cert", cls.cert, "--tls-key", key]

    def fetch(self, *args, **more):
        return self.curl("--cacert", self.cert, "--resolve", f"{NAME}:443:{SERVER_ADDR}", *args,
                         **more)

    def test_files_byte_for_byte(self):
        for how in (("--http1.1",), ("--http1.1", "--no-alpn"), ("--http1.0",)):
            outputs = [word for name in self.sums for word in
                       ("-o", self.path(name + ".got"), f"https://{NAME}/{name}")]
            out = self.fetch(*how, "-w", "%{http_version} ", *outputs)
            for name in self.sums:
                with self.subTest(how=how, name=name):
                    self.same(name, self.path(name + ".got"))
            self.assertEqual({"1.1"}, set(out.split()))
        self.assertEqual(3, self.counted("tls_handshakes"))
        self.assertEqual({"HTTP/1.1", "HTTP/1.0"}, {
            record["protocol"] for record in self.records(3 * len(self.sums))})

    def test_http_2_is_preferred(self):
        self.assertEqual("2", self.fetch("--http2", "-o/dev/null", "-w%{http_version}",
                                         f"https://{NAME}/small"))

    def secure(self, *protocols):
        context = ssl.create_default_context(cafile=self.cert)
        if protocols:
            context.set_alpn_protocols(protocols)
        sock = context.wrap_socket(self.world.connect(port=443), server_hostname=NAME)
        self.addCleanup(sock.close)
        return sock

    def test_pipelined(self):
        for protocols in (), ("http/1.1",), ("x", "http/1.1"):
            sock = self.secure(*protocols)
            self.assertEqual("http/1.1" if protocols else None, sock.selected_alpn_protocol())
            sock.sendall(HEAD % (b"/64KiB", b"") * 40 + HEAD % (b"/small", CLOSE))
            data = b"".join(iter(lambda: sock.recv(65536), b""))
            responses = wire.parse(data)
            self.assertEqual(41, len(responses))
            self.assertEqual({self.sums["64KiB"]},
                             {hashlib.sha256(r.body).hexdigest() for r in responses[:-1]})
            self.assertEqual(b"small\n", responses[-1].body)

    def test_a_head_byte_by_byte(self):
        sock = self.secure()
        for byte in HEAD % (b"/small", CLOSE):
            sock.sendall(bytes((byte,)))
        data = b"".join(iter(lambda: sock.recv(65536), b""))
        self.assertEqual(b"small\n", wire.parse(data)[0].body)

    def test_an_error_is_answered(self):
        sock = self.secure("http/1.1")
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n" + b"x" * 10_000)
        data = b"".join(iter(lambda: sock.recv(65536), b""))
        self.assertEqual([400], [response.status for response in wire.parse(data)])

    def test_another_protocol_is_refused(self):
        with self.assertRaisesRegex(ssl.SSLError, "NO_APPLICATION_PROTOCOL|alert"):
            self.secure("spdy/1")
        until("it is counted", lambda: self.counted("tls_failed_alpn") == 1)


class Slow(Http1Case):
    options = ("--header-timeout", "500ms", "--idle-timeout", "1s", "--preface-timeout", "1s")

    def until_end(self, sock):
        self.addCleanup(sock.close)
        return b"".join(iter(lambda: sock.recv(65536), b""))

    def test_a_slow_head_gets_408(self):
        for first in (b"G", b"GET /small HT", b"GET /small HTTP/1.1\r\nHost: x\r\n",
                      HEAD % (b"/small", b"") + b"GET /small"):
            with self.subTest(first=first):
                sock = self.world.connect()
                sock.sendall(first)
                responses = wire.parse(self.until_end(sock))
                self.assertEqual((408, ["close"]), (responses[-1].status,
                                                    responses[-1].fields["connection"]))
        self.assertEqual(4, self.counted("h1_head_timeout"))

    def test_an_idle_connection_ends(self):
        sock = self.world.connect()
        sock.sendall(HEAD % (b"/small", b""))
        self.assertEqual([200], [r.status for r in wire.parse(self.until_end(sock))])


class Refused(Http1Case):
    options = ("--no-http1",)

    def test_505(self):
        response, = self.raw(HEAD % (b"/small", b""))
        self.assertEqual(505, response.status)
        self.assertEqual(1, self.counted("conn_http1"))
        self.assertEqual(0, self.counted("conn_h1"))
        self.assertTrue(self.curl("--http2-prior-knowledge", "-i", self.world.url("/small"))
                        .startswith("HTTP/2 200"))


class Drain(Http1Case):
    """SIGTERM: a download finishes, and idle connections end."""
    options = ("--drain-timeout", "60s")

    @classmethod
    def tearDownClass(cls):
        pass

    def tearDown(self):
        pass

    def test_drain(self):
        idle, busy, pipelined = (self.world.connect() for _ in range(3))
        busy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        idle.sendall(HEAD % (b"/small", b""))
        self.assertTrue(idle.recv(65536).startswith(b"HTTP/1.1 200 "))
        busy.sendall(HEAD % (b"/10MiB", b""))
        data = busy.recv(1000)
        pipelined.sendall(HEAD % (b"/10MiB", b"") + HEAD % (b"/small", b""))
        first = pipelined.recv(1000)
        self.server.signal(signal.SIGTERM)
        self.assertEqual(b"", idle.recv(65536))
        data += b"".join(iter(lambda: busy.recv(65536), b""))
        response, = wire.parse(data)
        self.assertEqual(self.sums["10MiB"], hashlib.sha256(response.body).hexdigest())
        first += b"".join(iter(lambda: pipelined.recv(65536), b""))
        self.assertEqual(self.sums["10MiB"],
                         hashlib.sha256(wire.parse(first)[0].body).hexdigest())
        for sock in (idle, busy, pipelined):
            sock.close()
        self.assertEqual(0, self.server.wait(), self.world.errors())
