# SPDX-License-Identifier: BSD-3-Clause
"""Requests and their responses, refused uploads, and invalid prefaces."""
import os
import re

from tests.netlab.case import ServerCase


class Requests(ServerCase):
    @classmethod
    def prepare(cls):
        os.symlink("one", os.path.join(cls.root, "link-in"))

    def test_ping(self):
        done = self.world.client("ping", "-c3", "-i0.2", "-W5", "198.18.0.2")
        self.assertIn(" 0% packet loss", done.stdout)
        self.assertEqual(3, self.counted("rx_icmp"))

    def test_nghttp_get(self):
        done = self.world.client("nghttp", self.world.url("/index.html"))
        self.assertIn("<title>nightjar</title>", done.stdout)

    def test_index_and_type(self):
        headers = self.curl("-D-", "-o/dev/null", self.world.url("/")).lower()
        self.assertIn("http/2 200", headers)
        self.assertIn("content-type: text/html", headers)
        self.assertIn("content-length: 24", headers)

    def test_head_has_the_length_and_no_body(self):
        client = self.client()
        status, fields, body = client.get("/200KiB", **{":method": "HEAD"})
        self.assertEqual((200, str(200 << 10), b""), (status, fields["content-length"], body))
        client.close()

    def test_statuses(self):
        client = self.client()
        for path, method, status in (("/nothing", "GET", 404), ("/one/more", "GET", 404),
                                     ("/one", "POST", 405), ("/one", "DELETE", 405),
                                     ("/%zz", "GET", 400), ("/one?a=b", "GET", 200),
                                     ("/%6fne", "GET", 200), ("/link-in", "GET", 200)):
            with self.subTest(path=path, method=method):
                self.assertEqual(status, client.get(path, **{":method": method})[0])
        client.close()
        self.assertEqual(5, self.counted("status_4xx"))

    def test_curl_reads_the_response_to_a_refused_upload(self):
        """curl 7.88 drops a response that it reads together with RST_STREAM."""
        with open(os.path.join(self.world.scratch, "upload"), "wb") as f:
            f.write(os.urandom(3 << 20))
        for n_bytes in (3 << 20, 200_000, 20_000, 100):
            with self.subTest(n_bytes=n_bytes):
                with open(os.path.join(self.world.scratch, "upload"), "r+b") as f:
                    f.truncate(n_bytes)
                self.assertEqual("405", self.curl(
                    "-o/dev/null", "-w", "%{http_code}", "--data-binary",
                    f"@{self.world.scratch}/upload", self.world.url("/one")))

    def test_a_refused_upload_ends(self):
        """nghttp sends its body after the response, until RST_STREAM arrives."""
        with open(os.path.join(self.world.scratch, "endless"), "wb") as f:
            f.truncate(8 << 20)
        done = self.world.client("nghttp", "-nv", "-d", f"{self.world.scratch}/endless",
                                 self.world.url("/one"))
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertRegex(done.stdout, r":status: 405")
        self.assertRegex(done.stdout, r"recv RST_STREAM frame [^\n]*\n[^\n]*NO_ERROR")
        sent = sum(int(n) for n in
                   re.findall(r"send DATA frame <length=(\d+)", done.stdout))
        self.assertLessEqual(sent, 512 << 10, "the window of a discarded body was opened again")

    def test_connections_with_an_invalid_preface_are_closed(self):
        for preface in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"\0" * 100, b"\xff" * 3000,
                        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"):
            with self.subTest(preface=preface[:10]):
                sock = self.world.connect()
                sock.sendall(preface)
                try:
                    while sock.recv(4096):
                        pass
                except ConnectionResetError:
                    pass
                sock.close()
        self.assertEqual(4, self.counted("conn_unknown") + self.counted("h2_error"))
