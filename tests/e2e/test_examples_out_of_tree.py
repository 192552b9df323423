# SPDX-License-Identifier: BSD-3-Clause
"""The programs of examples/: pkg-config alone gives the compiler's options. Clients use each."""
import hashlib
import json
import os
import random
import shutil
import subprocess
import tempfile
import unittest

import h2.events

from tests.netlab.h2client import Client
from tests.netlab.world import PREFIX_BITS, SANITIZED, SERVER_ADDR, Failed, Server, World, until
from tests.package.prefix import Prefix

DOWNLOAD = (bytes(range(251)) * ((8 << 20) // 251 + 1))[:8 << 20]  # of paced.c
N_EVENTS = 4
FILE_BYTES = (6 << 20) + 7  # at 4 KiB/s longer than a test may take


class Example(Server):
    """A program of `folder`, which takes an address, `words` and the arguments of the EAL."""

    def __init__(self, world, folder, program, *words, **more):
        self.folder = folder
        super().__init__(world.server_ns, world.name, world.eal, words, world.server_errors,
                         program, world.variables, cwd=folder, **more)

    def command(self, program, options, eal):
        return [os.path.join(self.folder, program), f"{SERVER_ADDR}/{PREFIX_BITS}", *options, *eal]

    def class_of(self, name):
        """The entry of the class in the answer of /nightjar/classes."""
        classes = self.telemetry("/nightjar/classes")
        return next(one for one in classes.values() if one["name"] == name)


class ExamplesOutOfTree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.mkdtemp(prefix="nj-examples-")
        cls.addClassCleanup(shutil.rmtree, scratch)
        cls.prefix = Prefix(os.path.join(scratch, "prefix"))
        cls.folder = os.path.join(scratch, "examples")
        sanitizers = {"LDFLAGS": "-fsanitize=address,undefined"} if SANITIZED else {}
        cls.prefix.make_examples(cls.folder, **sanitizers)

    def serve(self, program, *words, **more):
        self.world = World(lcores=1)
        self.addCleanup(self.world.close)
        self.world.variables = {"LD_LIBRARY_PATH": self.prefix.lib}
        self.world.make_namespaces()
        self.world.reaper.will_make("prefix", self.world.name)
        self.server = self.world.server = Example(self.world, self.folder, program, *words, **more)
        self.world.wait_ready()

    def client(self, **more):
        client = Client(self.world.connect(), **more)
        self.addCleanup(client.close)
        return client

    def curl(self, path):
        """(status, content-type, body)"""
        done = self.world.client("curl", "-sS", "--http2-prior-knowledge", "-w",
                                 "%{stderr}%{http_code} %{content_type}", self.world.url(path))
        self.assertEqual(0, done.returncode, done.stderr)
        status, _, kind = done.stderr.partition(" ")
        return int(status), kind, done.stdout

    def end(self):
        """Waits until no request is open, then ends the program by SIGTERM."""
        until("no request is open",
              lambda: not any(shard["exchanges"] for shard in self.server.shards()))
        self.assertEqual(0, self.world.stop(), self.server.stderr_text)

    def test_hello(self):
        self.serve("hello")
        self.assertEqual((200, "text/plain; charset=utf-8", "Hello from nightjar.\n"),
                         self.curl("/"))
        self.assertEqual(404, self.curl("/other")[0])
        self.end()

    def test_json_api(self):
        self.serve("json_api")
        for path, statuses, key in (("/hosts/localhost", (200,), "addresses"),
                                    ("/hosts/%22", (400,), "error"),
                                    ("/hosts/", (400,), "error"),
                                    ("/hosts/" + "a" * 254, (400,), "error"),
                                    ("/hosts/nobody.invalid", (404, 502), "error")):
            with self.subTest(path=path):
                status, kind, body = self.curl(path)
                self.assertIn(status, statuses)
                self.assertEqual("application/json", kind)
                self.assertIn(key, json.loads(body))
        host = json.loads(self.curl("/hosts/localhost")[2])
        self.assertEqual("localhost", host["name"])
        self.assertTrue({"127.0.0.1", "::1"} & set(host["addresses"]), host)
        routes = self.server.ewyk()["by_route"]
        self.assertEqual(6, sum(route["pec_worker"] for route in routes.values()), routes)
        self.end()

    def test_paced(self):
        self.serve("paced")
        limits = self.server.telemetry("/nightjar/limits")["class_paced"]
        self.assertEqual(("16MiB/s", "4MiB/s"), (limits["rate"], limits["request_rate"]))
        status, fields, body = self.client(window_bytes=1 << 20).get("/download")
        self.assertEqual((200, str(len(DOWNLOAD))), (status, fields["content-length"]))
        self.assertTrue(body == DOWNLOAD, "other bytes")
        limited = until("the class has counted the requests", lambda: (
            (now := self.server.class_of("paced"))["bytes"] >= len(DOWNLOAD) and now))
        self.assertEqual((1, len(DOWNLOAD)), (limited["requests"], limited["bytes"]))
        self.assertEqual(0, self.server.class_of("default")["bytes"])
        self.assertGreater(limited["throttled_ms"], 0)
        self.end()

    def test_paced_is_cancelled(self):
        self.serve("paced")
        client = self.client()
        client.request("/download")
        while not any(isinstance(e, h2.events.DataReceived) for e in client.events):
            self.assertTrue(client.read())
        client.close()
        self.end()

    def test_events(self):
        """Two clients receive the events in order until they close."""
        self.serve("events")
        wanted = "".join(f"id: {i}\ndata: event {i}\n\n" for i in range(N_EVENTS)).encode()
        for client in (self.client(), self.client()):
            stream = client.request("/events")
            pieces = []
            while len(b"".join(pieces)) < len(wanted):
                self.assertTrue(client.read())
                self.assertFalse(client.ended(stream))
                pieces = [e.data for e in client.events if isinstance(e, h2.events.DataReceived)]
            self.assertEqual(wanted, b"".join(pieces)[:len(wanted)])
            self.assertGreaterEqual(len(pieces), N_EVENTS - 1)  # each event is sent at once
            head = next(e for e in client.events if isinstance(e, h2.events.ResponseReceived))
            self.assertEqual("text/event-stream", dict(head.headers)["content-type"])
            client.close()
        self.end()

    def test_events_end_with_the_server(self):
        self.serve("events")
        client = self.client()
        client.request("/events")
        while not any(isinstance(e, h2.events.DataReceived) for e in client.events):
            self.assertTrue(client.read())
        self.assertEqual(0, self.world.stop(), self.server.stderr_text)

    def test_kv(self):
        self.serve("kv")
        client = self.client()
        value = os.urandom(60_000)
        stream = client.request("/kv/a", method="PUT", ends=False)
        client.send(stream, value)
        self.assertEqual(201, client.response(stream)[0])
        status, fields, body = client.get("/kv/a")
        self.assertEqual((200, value), (status, body))
        known = client.request("/kv/a", **{"if-none-match": fields["etag"]})
        self.assertEqual(304, client.response(known)[0])
        self.assertEqual(404, client.get("/kv/b")[0])
        client.close()
        self.end()

    def change(self, limits):
        self.server.process.stdin.write(limits.encode() + b"\n")
        self.server.process.stdin.flush()

    def rate(self):
        return self.server.telemetry("/nightjar/limits")["class_iso"].get("rate")

    def test_reference(self):
        """The class changes during a download. At the low rate it would exceed the deadline."""
        path = os.path.join(self.folder, "file")
        data = random.Random(1).randbytes(FILE_BYTES)
        with open(path, "wb") as f:
            f.write(data)
        self.serve("reference", path, stdin=subprocess.PIPE)
        self.assertEqual("5MiB/s", self.rate())
        self.change("class=iso,rate=4KiB/s")
        until("a lower rate", lambda: self.rate() == "4KiB/s")
        client = self.client(window_bytes=8 << 20)
        stream = client.request("/1GiB.bin")
        while not any(isinstance(e, h2.events.DataReceived) for e in client.events):
            self.assertTrue(client.read())
        self.assertEqual(1, self.server.class_of("iso")["requests"])
        self.change("class=iso,rate=quick")
        until("an error message about the class", lambda: "quick" in self.server.stderr_text)
        self.assertEqual("4KiB/s", self.rate())
        self.change("class=iso,rate=100MiB/s")
        until("a higher rate", lambda: self.rate() == "100MiB/s")
        status, fields, body = client.response(stream)
        self.assertEqual((200, str(FILE_BYTES)), (status, fields["content-length"]))
        self.assertEqual(hashlib.sha256(data).digest(), hashlib.sha256(body).digest())
        until("the class has counted the bytes",
              lambda: self.server.class_of("iso")["bytes"] == FILE_BYTES)
        client.close()
        self.assertEqual(0, self.server.wait(), self.server.stderr_text)  # this closes its input

    def test_reference_without_its_file(self):
        with self.assertRaisesRegex(Failed, "No such file"):
            self.serve("reference", "/nonexistent", stdin=subprocess.PIPE)
