# SPDX-License-Identifier: BSD-3-Clause
"""
The access log has one line for each request, also for refused and aborted requests and after the
log file was renamed.
"""
import collections
import json
import os
import re
import signal
import subprocess
import time
import unittest

from tests.netlab.case import ServerCase
from tests.netlab.h2client import Client
from tests.netlab.limits import time_limit
from tests.netlab.world import CLIENT_ADDR, Failed, World, until

KEYS = ["time", "remote", "port", "method", "path", "authority", "protocol", "status", "bytes",
        "referer", "user_agent", "class", "ttfb_ms", "total_ms", "throttled_ms", "complete", "cut",
        "shard", "connection", "stream"]
QUOTED = r'"((?:[ !#-\[\]-~]|\\x[0-9A-F]{2})*)"'
COMBINED = re.compile(
    r"(?P<remote>[0-9a-f.:]+) - - "
    r"\[(?P<time>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "
    + QUOTED.replace("(", "(?P<request>", 1) + r" (?P<status>\d{3}) (?P<bytes>\d+) "
    + QUOTED.replace("(", "(?P<referer>", 1) + " " + QUOTED.replace("(", "(?P<agent>", 1)
    + r" rt=(?P<rt>\d+\.\d{3}) ttfb=(?P<ttfb>\d+\.\d{3}) throttled=(?P<throttled>\d+\.\d{3})"
    + " class=" + QUOTED.replace("(", "(?P<class>", 1) + r" (?P<end>complete|incomplete)( cut)?")
DISK_BYTES = 64 << 10


class LogCase(ServerCase):
    """A server with an access log. lines() returns the lines since the start of the test."""
    log_format = "json"

    @classmethod
    def prepare(cls):
        cls.log = os.path.join(cls.world.scratch, "access.log")
        cls.world.options += ["--access-log", cls.log, "--log-format", cls.log_format]

    def setUp(self):
        super().setUp()
        self.renamed = []
        self.size_before = os.path.getsize(self.log)

    def text(self):
        """The log since the start of the test, the renamed files included, oldest first."""
        text = b""
        for number, name in enumerate(self.renamed + [self.log]):
            with open(name, "rb") as f:
                f.seek(self.size_before if number == 0 else 0)
                text += f.read()
        return text

    def lines(self):
        text = self.text()
        self.assertTrue(text.endswith(b"\n") or not text, "the last line is incomplete")
        return text.split(b"\n")[:-1]

    def wait_lines(self, n):
        """Waits for `n` lines, checks that the server counted `n` requests, returns the lines."""
        self.wait_logged(n)
        self.assertEqual(n, self.counted("requests"))
        self.assertEqual(0, self.counted("access_lost"))
        self.assertEqual(n, len(self.lines()))
        return self.lines()

    def wait_logged(self, n):
        def logged():
            return self.counted("access_written") + self.counted("access_lost")
        until(lambda: f"{n} requests written or lost, but {logged()}", lambda: logged() >= n)
        self.assertEqual(n, logged())

    def load(self, n, *more):
        done = self.world.client("h2load", "-n", str(n), "-c", "8", "-m", "16", *more,
                                 self.world.url("/one"))
        self.assertIn(f"{n} succeeded, 0 failed", done.stdout)

    def fetch(self, path, *more):
        """Returns (status, bytes of the body, local port) as curl prints them."""
        out = self.curl("-o", os.devnull, "-w", "%{http_code} %{size_download} %{local_port}",
                        *more, self.world.url(path))
        return [int(word) for word in out.split()]


class Json(LogCase):
    def records(self, n):
        records = []
        for line in self.wait_lines(n):
            record = json.loads(line.decode())
            self.assertEqual(KEYS, list(record))
            self.assertEqual(CLIENT_ADDR, record["remote"])
            self.assertEqual("HTTP/2.0", record["protocol"])
            self.assertLessEqual(record["ttfb_ms"], record["total_ms"])
            self.assertLessEqual(record["throttled_ms"], record["total_ms"])
            records.append(record)
        return records

    def test_every_kind_of_response(self):
        etag = re.search(r"(?im)^etag: (.*?)\r?$",
                         self.curl("-I", self.world.url("/200KiB"))).group(1)
        asked = [
            (200, "GET", "/200KiB", []),
            (200, "GET", "/empty", []),
            (206, "GET", "/200KiB", ["-r", "1000-1999"]),
            (416, "GET", "/200KiB", ["-r", "999999-"]),
            (304, "GET", "/200KiB", ["-H", f"if-none-match: {etag}"]),
            (404, "GET", "/absent", []),
            (405, "DELETE", "/one", ["-X", "DELETE"]),
            (200, "HEAD", "/200KiB", ["-I"]),
        ]
        began = time.time()
        seen = [self.fetch(path, *more) for _, _, path, more in asked]
        by_port = {record["port"]: record for record in self.records(1 + len(asked))}
        records = [by_port[port] for _, _, port in seen]  # two lcores: the order differs
        for (status, method, path, _), (code, n_bytes, port), r in zip(asked, seen, records):
            with self.subTest(status=status, method=method, path=path):
                self.assertEqual(status, code)
                self.assertEqual([status, method, path, n_bytes, port, True, False],
                                 [r[key] for key in ("status", "method", "path", "bytes", "port",
                                                     "complete", "cut")])
                self.assertEqual(1, r["stream"])
                self.assertEqual("default", r["class"])
        self.assertEqual([200 << 10, 0, 1000], [r["bytes"] for r in records[:3]])
        self.assertEqual(0, records[-1]["bytes"], "the body of a HEAD")
        stamp = time.strptime(records[0]["time"][:19], "%Y-%m-%dT%H:%M:%S")
        self.assertAlmostEqual(began, time.mktime(stamp) - time.timezone, delta=100)

    def test_fields_of_the_request(self):
        self.curl("-o", os.devnull, "-A", 'a "b" \\ c', "-e", "http://example.org/?x=1",
                  "-H", "host: files.example", self.world.url("/one?q=%22"))
        record, = self.records(1)
        self.assertEqual(['a "b" \\ c', "http://example.org/?x=1", "files.example", "/one?q=%22"],
                         [record[key] for key in ("user_agent", "referer", "authority", "path")])

    def test_bytes_that_are_not_utf8(self):
        client = Client(self.world.connect())
        agents = [bytes([b]) * 3 for b in range(0x80, 0x100)] + ["é€🦇".encode(), b"\xe2\x82",
                                                                 b"\xe2\x80\xa8\xc2\x85"]
        for agent in agents:
            client.get("/one", **{"user-agent": agent})
        client.close()
        records = self.records(len(agents))
        self.assertEqual([agent.decode("latin-1") for agent in agents[:128]],
                         [record["user_agent"] for record in records[:128]])
        self.assertEqual(["é€🦇", "\xe2\x82", "\u2028\x85"],
                         [record["user_agent"] for record in records[128:]])
        self.assertTrue(all(ord(c) >= 0x20 for c in self.text().decode() if c != "\n"))

    def test_long_fields_are_cut(self):
        path = "/" + "x" * 3000
        self.assertEqual(404, self.fetch(path)[0])
        record, = self.records(1)
        self.assertTrue(record["cut"])
        self.assertTrue(path.startswith(record["path"]) and len(record["path"]) > 500)

    def test_download_that_is_reset(self):
        """The client receives one initial window of 65535 bytes and then resets the stream."""
        client = Client(self.world.connect())
        client.acknowledge = lambda data: None
        stream = client.request("/10MiB")
        until("a window", lambda: client.read() and self.received(client, stream) == 65535)
        client.h2.reset_stream(stream)
        client.flush()
        record, = self.records(1)
        client.close()
        self.assertEqual([200, 65535, False], [record[k] for k in ("status", "bytes", "complete")])
        self.assertEqual(stream, record["stream"])

    def test_download_whose_connection_closes(self):
        client = Client(self.world.connect())
        client.acknowledge = lambda data: None
        streams = [client.request("/10MiB"), client.request("/one")]
        until("a window", lambda: client.read() and
              sum(self.received(client, s) for s in streams) == 65535)
        client.close()
        records = {record["stream"]: record for record in self.records(2)}
        first, second = (records[stream] for stream in streams)
        self.assertFalse(first["complete"])
        self.assertEqual(65535, first["bytes"] + second["bytes"])
        self.assertEqual(first["connection"], second["connection"])
        self.assertEqual(first["shard"], second["shard"])

    @staticmethod
    def received(client, stream):
        return sum(len(e.data) for e in client.events
                   if getattr(e, "stream_id", None) == stream and hasattr(e, "data"))

    def test_many(self):
        n = 20000
        self.load(n)
        records = self.records(n)
        self.assertEqual({(200, 1, True)},
                         {(r["status"], r["bytes"], r["complete"]) for r in records})
        streams = collections.Counter((r["shard"], r["connection"], r["stream"]) for r in records)
        self.assertEqual(n, len(streams), "a request has two lines")
        self.assertEqual(8, len({(r["shard"], r["connection"]) for r in records}))
        self.assertEqual([n, 0], [self.counted("access_written"), self.counted("access_lost")])

    def rename(self):
        self.renamed.append(f"{self.log}.{len(self.renamed) + 1}")
        os.rename(self.log, self.renamed[-1])

    def wait_reopened(self):
        until("the server created the log file again", lambda: os.path.exists(self.log))

    def test_rotation(self):
        for number in (signal.SIGUSR1, signal.SIGHUP, None):
            with self.subTest(signal=number):
                self.fetch("/one")
                self.wait_lines(2 * len(self.renamed) + 1)
                self.rename()
                if number:
                    self.server.signal(number)
                self.wait_reopened()
                self.fetch("/one")
                self.wait_lines(2 * len(self.renamed))
                self.assertGreater(os.path.getsize(self.log), 0)

    def test_rotation_under_load(self):
        n = 40000
        load = self.world.client_popen("h2load", "-n", str(n), "-c", "8", "-m", "16",
                                       self.world.url("/one"), stdout=subprocess.DEVNULL)
        while load.poll() is None:
            self.rename()
            self.server.signal(signal.SIGUSR1)
            self.wait_reopened()
        self.assertEqual(0, load.wait())
        self.assertGreater(len(self.renamed), 2)
        self.records(n)

    def stderr_lines(self, word):
        return [line for line in self.world.errors().splitlines() if word in line]

    @staticmethod
    def limit_files(pid, limit):
        """As the user of the server: root may lack CAP_SYS_RESOURCE, in a container."""
        subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "prlimit",
                        "--pid", str(pid), f"--fsize={limit}:"], check=True, timeout=time_limit())

    def test_full_disk(self):
        """RLIMIT_FSIZE emulates a full disk: a write is short at the limit, the next one fails."""
        pid, n, before = self.server.process.pid, 10000, len(self.stderr_lines("trying again"))
        end = os.path.getsize(self.log) + DISK_BYTES
        self.limit_files(pid, end)
        try:
            self.load(n)
            until("lines are lost", lambda: self.counted("access_lost") > 0)
            self.assertLessEqual(os.path.getsize(self.log), end)
            self.assertEqual(self.counted("access_written"), len(self.lines()))
            self.assertEqual(before + 1, len(self.stderr_lines("trying again")))
        finally:
            self.limit_files(pid, "unlimited")
        self.wait_logged(n)
        self.assertEqual(n, self.counted("requests"))
        self.assertEqual(self.counted("access_written"), len(self.lines()))
        self.fetch("/one")
        self.wait_logged(n + 1)
        json.loads(self.lines()[-1])
        self.assertTrue(self.stderr_lines("takes lines again"))


class Refused(LogCase):
    """The log has a line for each request that the policy refuses."""
    policy = """
[class forbidden]
path = /forbidden/
action = forbid

[class later]
path = /later/
action = later

[class reset]
path = /reset/
action = reset
"""

    options = ("--max-headers", "20")

    def test_refused(self):
        client = Client(self.world.connect())
        statuses = [client.get(path)[0] for path in ("/forbidden/x", "/later/x", "/reset/x")]
        statuses.append(client.get("/one", **{f"x-{i}": "1" for i in range(30)})[0])
        client.close()
        self.assertEqual([403, 429, 0, 431], statuses)
        records = [json.loads(line) for line in self.wait_lines(4)]
        self.assertEqual(
            [(403, "/forbidden/x", "forbidden", True), (429, "/later/x", "later", True),
             (0, "/reset/x", "reset", False)],
            [(r["status"], r["path"], r["class"], r["complete"]) for r in records[:3]])
        self.assertEqual([431, 7, "GET", "/one"],
                         [records[3][key] for key in ("status", "stream", "method", "path")])


class Combined(LogCase):
    log_format = "combined"
    lcores = 1  # the lines have the order of the requests

    def test_lines(self):
        self.fetch("/200KiB", "-A", 'a "b" \\ c')
        self.fetch("/absent", "-e", "http://example.org/")
        self.fetch("/200KiB", "-I")
        self.fetch("/200KiB", "-r", "0-9")
        found = [COMBINED.fullmatch(line.decode("ascii")) for line in self.wait_lines(4)]
        self.assertNotIn(None, found, self.text())
        self.assertEqual(
            [("GET /200KiB HTTP/2.0", "200", str(200 << 10), "-", r"a \x22b\x22 \x5C c"),
             ("GET /absent HTTP/2.0", "404"), ("HEAD /200KiB HTTP/2.0", "200", "0"),
             ("GET /200KiB HTTP/2.0", "206", "10")],
            [f.group("request", "status", "bytes", "referer", "agent")[:n]
             for f, n in zip(found, (5, 2, 3, 3))])
        self.assertEqual("http://example.org/", found[1]["referer"])
        self.assertEqual({("default", "complete", CLIENT_ADDR)},
                         {f.group("class", "end", "remote") for f in found})
        stamp = time.strptime(found[0]["time"], "%d/%b/%Y:%H:%M:%S %z")
        self.assertAlmostEqual(time.time(), time.mktime(stamp) - time.timezone + stamp.tm_gmtoff,
                               delta=100)


class OtherOutputs(unittest.TestCase):
    """Logs to standard output, a device and a FIFO. Each test starts its own server."""

    def world(self, log, *options):
        world = World("tap", lcores=1, options=["--access-log", log, *options])
        self.addCleanup(world.close)
        world.root = os.path.join(world.scratch, "site")
        os.mkdir(world.root)
        with open(os.path.join(world.root, "big"), "wb") as f:
            f.truncate(10 << 20)
        with open(os.path.join(world.root, "index.html"), "w") as f:
            f.write("nightjar\n")
        world.make_namespaces()
        return world

    def load(self, world, n):
        done = world.client("h2load", "-n", str(n), "-c", "4", "-m", "8", world.url("/"))
        self.assertIn(f"{n} succeeded, 0 failed", done.stdout)

    def test_path_that_cannot_be_opened(self):
        for path, why in (("/nonexistent/log", "No such file or directory"),
                          ("/run", "Is a directory")):
            with self.subTest(path=path):
                world = self.world(path)
                with self.assertRaises(Failed) as raised:
                    world.start()
                self.assertIn(f"nightjar: error: the access log {path} can't be written: {why}",
                              str(raised.exception))
                self.assertEqual(1, world.server.wait())

    def test_standard_output(self):
        world = self.world("-", "--log-format", "json")
        world.start()
        self.load(world, 100)
        self.assertEqual(0, world.stop())
        lines = world.server.output.splitlines()  # log lines only
        self.assertEqual(100, len([json.loads(line) for line in lines]))

    def test_full_device(self):
        world = self.world("/dev/full")
        world.start()
        self.load(world, 100)
        self.assertEqual(0, world.stop())
        self.assertIn("0 lines written, 100 requests not logged", world.errors())
        self.assertEqual(1, world.errors().count("trying again"))

    def test_fifo(self):
        """While the FIFO has no reader, the server keeps the lines for a later reader."""
        world = self.world("")
        fifo = os.path.join(world.scratch, "fifo")
        os.mkfifo(fifo)
        os.chmod(fifo, 0o666)
        world.options[world.options.index("--access-log") + 1] = fifo
        world.start()
        self.load(world, 100)
        fd = os.open(fifo, os.O_RDONLY)  # returns: the server retries open()
        with open(fd, "rb") as f:
            lines = [f.readline() for _ in range(100)]
        self.assertTrue(all(COMBINED.fullmatch(line.decode().rstrip("\n")) for line in lines))
        self.load(world, 10)
        self.assertEqual(0, world.stop())
        self.assertIn("100 lines written, 10 requests not logged", world.errors())

    def test_download_aborted_by_shutdown(self):
        world = self.world("", "--log-format", "json", "--drain-timeout", "200ms")
        log = os.path.join(world.scratch, "access.log")
        world.options[world.options.index("--access-log") + 1] = log
        world.start()
        client = Client(world.connect())
        client.acknowledge = lambda data: None
        client.request("/big")
        until("a window", lambda: client.read() and Json.received(client, 1) == 65535)
        self.assertEqual(0, world.stop())
        client.close()
        with open(log) as f:
            record, = map(json.loads, f)
        self.assertEqual([200, 65535, False], [record[k] for k in ("status", "bytes", "complete")])
