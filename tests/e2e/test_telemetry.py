# SPDX-License-Identifier: BSD-3-Clause
"""Telemetry agrees with the requests and responses of the clients."""
import os
import subprocess

from tests.netlab.case import GIB, ServerCase
from tests.netlab.h2client import Client
from tests.netlab.limits import time_limit
from tests.netlab.world import CLIENT_ADDR, until, version

CLASS_KEYS = {"name", "requests", "refused", "open", "waiting", "bytes", "throttled_ms",
              "requests_per_s", "bytes_per_s"}
CLIENT_KEYS = {"client", "key", "connections", "streams", "requests", "refused", "bytes",
               "throttled_ms"}
LATENCY_KEYS = ["count", "mean_us", "p50_us", "p90_us", "p99_us", "p999_us", "max_us"]
RATE = 512 << 10  # bytes per second of a response


class TelemetryCase(ServerCase):
    def total(self, command, of):
        """The sum of a field over all entries of /nightjar/classes or /nightjar/clients."""
        return sum(one[of] for one in self.server.telemetry(command).values())

    def fetch(self, path, *more):
        self.curl("-o", os.devnull, *more, self.world.url(path))


class Unlimited(TelemetryCase):
    def test_classes(self):
        requests, n_bytes = (self.total("/nightjar/classes", of) for of in ("requests", "bytes"))
        for _ in range(3):
            self.fetch("/200KiB")
        classes = self.server.telemetry("/nightjar/classes")
        self.assertEqual(["class0"], list(classes))
        self.assertEqual(CLASS_KEYS, set(classes["class0"]))
        self.assertEqual("default", classes["class0"]["name"])
        until("three requests", lambda: self.total("/nightjar/classes", "open") == 0)
        self.assertEqual(requests + 3, self.total("/nightjar/classes", "requests"))
        self.assertEqual(n_bytes + 3 * (200 << 10), self.total("/nightjar/classes", "bytes"))
        self.assertEqual(0, self.total("/nightjar/classes", "throttled_ms"))
        self.assertIsNone(self.server.telemetry("/nightjar/classes,0"))

    def test_rates_of_the_last_second(self):
        load = self.world.client_popen("h2load", "-D", "60", "-c", "4", "-m", "8",
                                       self.world.url("/200KiB"), stdout=subprocess.DEVNULL)
        try:
            until("a rate", lambda: self.total("/nightjar/classes", "bytes_per_s") > 0)
            self.assertGreater(self.total("/nightjar/classes", "requests_per_s"), 0)
        finally:
            load.kill()
            load.wait(time_limit())
        until("no rate", lambda: self.total("/nightjar/classes", "bytes_per_s") == 0)

    def test_open_responses_and_clients(self):
        client = Client(self.world.connect())
        client.acknowledge = lambda data: None
        streams = [client.request("/10MiB") for _ in range(3)]
        until("three open", lambda: self.total("/nightjar/classes", "open") == len(streams))
        clients = self.server.telemetry("/nightjar/clients")
        for one in clients.values():
            self.assertEqual(CLIENT_KEYS, set(one))
            self.assertEqual(CLIENT_ADDR, one["client"])
        self.assertEqual(3, self.total("/nightjar/clients", "streams"))
        self.assertEqual(3, self.total("/nightjar/clients,1,by=streams", "streams"))
        client.close()
        until("none open", lambda: self.total("/nightjar/clients", "streams") == 0)

    def test_clients_in_order(self):
        self.fetch("/10MiB")
        clients = self.server.telemetry("/nightjar/clients,64")
        amounts = [one["bytes"] for one in clients.values()]
        self.assertEqual(sorted(amounts, reverse=True), amounts)
        self.assertGreaterEqual(amounts[0], 10 << 20)
        self.assertEqual({"client0"}, set(self.server.telemetry("/nightjar/clients,1")))
        for params in ("0", "65", "x", "1,2", "1,", "by=x", "by=streams,1"):
            self.assertIsNone(self.server.telemetry(f"/nightjar/clients,{params}"))

    def test_latency(self):
        before = self.server.telemetry("/nightjar/latency")
        self.assertEqual(["ttfb", "total", "throttled", "step", "tls_step", "tls_task"],
                         list(before))
        for _ in range(5):
            self.fetch("/200KiB")
        until("five more", lambda: self.server.telemetry("/nightjar/latency")["total"]["count"] ==
              before["total"]["count"] + 5)
        after = self.server.telemetry("/nightjar/latency")
        for name in ("ttfb", "total"):
            one = after[name]
            self.assertEqual(LATENCY_KEYS, list(one))
            rising = [one[key] for key in LATENCY_KEYS[2:]]
            self.assertEqual(sorted(rising), rising)
            self.assertTrue(0 < one["mean_us"] <= one["max_us"])
        self.assertEqual(after["ttfb"]["count"], after["total"]["count"])
        self.assertEqual(0, after["throttled"]["count"])
        shards = [self.server.telemetry(f"/nightjar/latency,{i}") for i in range(self.lcores)]
        self.assertEqual(after["total"]["count"], sum(one["total"]["count"] for one in shards))
        self.assertEqual(after["total"]["max_us"], max(one["total"]["max_us"] for one in shards))
        self.assertIsNone(self.server.telemetry("/nightjar/latency,2"))

    def test_version(self):
        answer = self.server.telemetry("/nightjar/version")
        self.assertEqual({"version", "dpdk", "started"}, set(answer))
        self.assertEqual(version(), answer["version"])

    def test_files(self):
        for _ in range(3):
            self.fetch("/16KiB-1")
        files = self.server.telemetry("/nightjar/files")
        self.assertGreaterEqual(files["hits"] + files["shard_hits"], 2)
        self.assertGreaterEqual(files["misses"], 1)
        self.assertGreaterEqual(files["cached_bytes"], (16 << 10) - 1)
        self.assertGreaterEqual(files["cached_files"], 1)

    def test_workers(self):
        before = self.server.telemetry("/nightjar/workers")["files"]["done"]
        for _ in range(3):
            self.fetch("/10MiB")
        workers = self.server.telemetry("/nightjar/workers")
        self.assertEqual(workers["threads"], sum(workers[k]["max"] for k in ("files", "handlers")))
        self.assertGreater(workers["files"]["done"], before)
        until("no open file task",
              lambda: self.server.telemetry("/nightjar/workers")["files"]["out"] == 0)
        self.assertEqual(0, workers["handlers"]["done"])
        self.assertGreaterEqual(workers["recruits_sent"], workers["recruits_useful"])
        self.assertIsNone(self.server.telemetry("/nightjar/workers,0"))

    def test_no_answer_is_truncated(self):
        """A truncated answer is not valid JSON, so that telemetry() would fail."""
        for command in ("stats", "shards", "classes", "clients,64", "shaping", "latency", "memory",
                        "files", "workers"):
            self.assertTrue(self.server.telemetry("/nightjar/" + command))


class Limited(TelemetryCase):
    options = ("--rate-per-request", "512KiB/s", "--rate-after", "4KiB",
               "--connections-per-client", "2")

    def test_connections_of_clients(self):
        def connections():
            return self.total("/nightjar/clients", "connections")
        clients = [Client(self.world.connect()) for _ in range(2)]
        for client in clients:
            client.ping()
        self.assertEqual(2, connections())
        refused = self.world.client("curl", "-sS", "--http2-prior-knowledge", self.world.url("/"))
        self.assertNotEqual(0, refused.returncode)
        for client in clients:
            client.close()
        until("none connected", lambda: connections() == 0)

    def test_waiting_responses_are_counted(self):
        client = Client(self.world.connect(), window_bytes=GIB)
        before = self.server.telemetry("/nightjar/shaping")
        for _ in range(8):
            client.request("/10MiB")
        until("eight wait", lambda: client.read() and
              self.total("/nightjar/classes", "waiting") == 8)
        self.assertEqual(8, self.total("/nightjar/classes", "open"))
        client.close()
        until("none waits", lambda: self.total("/nightjar/classes", "waiting") == 0)
        client = Client(self.world.connect(), window_bytes=GIB)
        self.assertEqual(200 << 10, len(client.get("/200KiB")[2]))
        client.close()
        until("none is open", lambda: self.total("/nightjar/classes", "open") == 0)
        after = self.server.telemetry("/nightjar/shaping")
        self.assertEqual(self.counted("body_bytes"), after["shape_bytes"] - before["shape_bytes"])
        self.assertGreater(after["shape_wakes"], before["shape_wakes"])
        self.assertEqual(after["shape_wakes_empty"] * 1000000 // after["shape_wakes"],
                         after["wakes_empty_ppm"])
        until("no response waits",
              lambda: self.server.telemetry("/nightjar/shaping")["shape_waiting"] == 0)

    def test_throttled_time(self):
        self.fetch("/200KiB")
        until("a throttled response is complete",
              lambda: self.server.telemetry("/nightjar/latency")["throttled"]["count"] > 0)
        latency = self.server.telemetry("/nightjar/latency")
        # The bytes after --rate-after wait for credit, except the first burst of 50 ms. The test
        # expects at least half of this time.
        at_least = ((196 << 10) - RATE // 20) * 1000000 // RATE // 2
        self.assertGreater(latency["throttled"]["max_us"], at_least)
        self.assertGreater(self.total("/nightjar/classes", "throttled_ms"), at_least // 1000)
        self.assertGreater(self.total("/nightjar/clients", "throttled_ms"), at_least // 1000)
        self.assertLess(latency["ttfb"]["p50_us"], at_least)
