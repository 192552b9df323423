# SPDX-License-Identifier: BSD-3-Clause
"""
Download tools over HTTP and HTTPS: whole files, eight ranges at a time, the rest after a connection
was cut, and files that did not change. What they get is compared byte for byte.
"""
import os
import random
import shutil
import socket

from tests.clients.case import Clients
from tests.netlab.relay import relay
from tests.netlab.world import SERVER_ADDR, inside, until

A_YEAR_S = 365 * 86400
CUTS = (3_000_000, 2_000_000)  # of 10 MiB, on the first two connections
CHANGING_BYTES = 4 << 20


class Whole(Clients):
    def test_each_tool(self):
        for url in self.urls():
            for client, *command in (
                    ("wget", "wget", "-q", "--ca-certificate", self.ca, "-O"),
                    ("wget2", "wget2", "-q", "--ca-certificate", self.ca, "-O"),
                    ("wget2 --no-http2", "wget2", "-q", "--no-http2", "--ca-certificate", self.ca,
                     "-O"),
                    ("curl", "curl", "-sS", "--cacert", self.ca, "-o"),
                    ("curl --http2", "curl", "-sS", "--http2", "--cacert", self.ca, "-o"),
                    ("curl --http1.1", "curl", "-sS", "--http1.1", "--cacert", self.ca, "-o"),
                    ("curl --http1.0", "curl", "-sS", "--http1.0", "--cacert", self.ca, "-o")):
                with self.subTest(command=command, url=url):
                    for name in self.sums:
                        self.client(*command, self.path("got"), url + name)
                        self.same(name, self.path("got"))
                    self.passed(client, url)

    def test_aria2_with_eight_ranges(self):
        for url in self.urls():
            with self.subTest(url=url):
                shutil.rmtree(self.path("aria"), ignore_errors=True)
                before = self.server.stats()["conn_h1"]
                self.client("aria2c", "-q", "-x8", "-s8", "-k1M", "--ca-certificate", self.ca, "-d",
                            self.path("aria"), url + "10MiB")
                self.same("10MiB", self.path("aria/10MiB"))
                self.assertGreaterEqual(self.server.stats()["conn_h1"] - before, 8)
                self.passed("aria2 -x8", url)


class Conditions(Clients):
    """A file whose mtime is older than its ctime, as on a mirror."""

    @classmethod
    def prepare(cls):
        super().prepare()
        path = os.path.join(cls.root, "200KiB")
        then = os.stat(path).st_mtime - A_YEAR_S
        os.utime(path, (then, then))

    def check(self, client, *command):
        """Runs a command twice: it fetches the file, then it learns that it has it."""
        self.wait_for_date("/200KiB")
        for url in self.urls():
            with self.subTest(url=url):
                shutil.rmtree(self.path("n"), ignore_errors=True)
                os.mkdir(self.path("n"))
                for status in (200, 304):
                    self.mark_log()
                    self.client(*command, url + "200KiB", cwd=self.path("n"))
                    self.same("200KiB", self.path("n/200KiB"))
                    self.assertEqual(status, self.new_records()[-1]["status"])
                self.passed(client, url)

    def test_wget(self):
        self.check("wget -N", "wget", "-q", "-N", "--ca-certificate", self.ca)

    def test_curl_by_date(self):
        self.check("curl -z", "curl", "-sSR", "--http1.1", "--cacert", self.ca, "-z", "200KiB",
                   "-o", "200KiB")

    def test_curl_by_tag(self):
        self.check("curl --etag-compare", "curl", "-sS", "--http1.1", "--cacert", self.ca,
                   "--etag-save", "tag", "--etag-compare", "tag", "-o", "200KiB")


class Resumed(Clients):
    """The connection is reset in the middle of a download."""

    def cut_urls(self, cuts=CUTS):
        """URLs of a relay that cuts its first connections."""
        for scheme, port in (("http", 80), ("https", 443)):
            with inside(self.world.client_ns):
                listener = socket.create_server(("127.0.0.1", 0))
            relay(listener, self.world.client_ns, (SERVER_ADDR, port), cuts)
            self.mark_log()
            yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/"

    def statuses(self):
        return [record["status"] for record in self.new_records() if record["user_agent"]]

    def check(self, client, *command, fails=0):
        """Runs a command until it succeeds, which takes `fails` failures."""
        for url in self.cut_urls():
            with self.subTest(url=url):
                shutil.rmtree(self.path("part"), ignore_errors=True)
                os.mkdir(self.path("part"))
                for _ in range(fails):
                    done = self.attempt(*command, url + "10MiB", cwd=self.path("part"))
                    self.assertNotEqual(0, done.returncode)
                    self.assertLess(os.path.getsize(self.path("part/10MiB")), 10 << 20)
                self.client(*command, url + "10MiB", cwd=self.path("part"))
                self.same("10MiB", self.path("part/10MiB"))
                self.assertEqual([200, 206, 206], self.statuses())
                self.passed(client, url)

    def test_curl(self):
        self.check("curl -C -", "curl", "-sS", "--http1.1", "--cacert", self.ca, "-C", "-", "-o",
                   "10MiB", fails=len(CUTS))

    def test_curl_http2(self):
        self.check("curl -C - --http2", "curl", "-sS", "--http2", "--cacert", self.ca, "-C", "-",
                   "-o", "10MiB", fails=len(CUTS))

    def test_wget(self):
        """wget repeats by itself."""
        self.check("wget -c", "wget", "-q", "-c", "--waitretry", "0", "--ca-certificate", self.ca)

    def test_aria2(self):
        self.check("aria2 -c", "aria2c", "-q", "-c", "-x1", "-s1", "--retry-wait", "0",
                   "--ca-certificate", self.ca)

    def change(self, seed):
        """Writes a new version of a file. Returns its tag, when the server has it."""
        data = random.Random(seed).randbytes(CHANGING_BYTES)
        self.sums["changing"] = self.write("changing", data)

        def tag():
            response = self.ask("/changing")
            return response.body == data and "etag" in response.fields and response.fields["etag"]
        return until("the new version with a tag", tag)[0]

    def test_if_range(self):
        """The rest of a file is sent for its tag; of another version the whole file."""
        self.addCleanup(self.sums.pop, "changing", None)
        whole, rest = self.path("whole"), self.path("rest")
        for url in self.cut_urls(CUTS[:1]):
            with self.subTest(url=url):
                tag = self.change(5)
                fetch = ("curl", "-sS", "--http1.1", "--cacert", self.ca, url + "changing")
                done = self.attempt(*fetch, "-o", whole)
                self.assertNotEqual(0, done.returncode)
                n_bytes = os.path.getsize(whole)
                self.assertTrue(0 < n_bytes < CHANGING_BYTES, n_bytes)
                fetch += ("-H", f"Range: bytes={n_bytes}-", "-H", f"If-Range: {tag}", "-o", rest)
                self.client(*fetch)
                with open(whole, "ab") as to, open(rest, "rb") as f:
                    to.write(f.read())
                self.same("changing", whole)
                self.change(6)
                self.client(*fetch)
                self.same("changing", rest)
                self.assertEqual([200, 206, 200], self.statuses())
                self.passed("curl with If-Range", url)
