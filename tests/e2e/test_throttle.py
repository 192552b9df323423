# SPDX-License-Identifier: BSD-3-Clause
"""
Rate limits, as clients see them: the limited downloads complete, and the server never sends more
than a rate allows.

At each time t after the start of the clients at most burst + rate * t bytes have arrived. This
holds on a machine of any speed, because bytes can be late and never early. How much of a rate is
used, and in which shares, is tested in virtual time (unit tests shape_*, simulator) and measured by
`./dev bench downloads`.
"""
import itertools
import os
import time

from tests.netlab.case import FILES, ServerCase
from tests.netlab.downloader import Downloads
from tests.netlab.world import CLIENT_ADDR, PREFIX_BITS, ip, until

KIB, MIB = 1 << 10, 1 << 20
BURST_SECONDS, BURST_MIN = 0.05, 2 * 2920  # lib/shape/rate_limit.h
OTHER_ADDR = "198.18.0.3"  # of another client


def burst_of(rate):
    return max(rate * BURST_SECONDS, BURST_MIN)


class Throttled(ServerCase):
    """Clients at two addresses download the files of FILES."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        ip("-n", cls.world.client_ns, "addr", "add", f"{OTHER_ADDR}/{PREFIX_BITS}", "dev", "nj0")

    def downloads(self, *options, paths=("/10MiB",), **more):
        d = Downloads(self.world, *options, paths=paths, **more)
        self.addCleanup(d.kill)
        return d

    def each_once(self, n, *options, paths=("/200KiB",)):
        """Starts `n` downloads, which end when they are complete."""
        return self.downloads("--downloads", n, "--repeat", 1, "--hold", 60, *options, paths=paths)

    def assert_never_above(self, rate, result, what=""):
        bin_seconds = result["bin_ns"] / 1e9
        totals = itertools.accumulate(map(sum, zip(*result["bins"])))
        for i, total in enumerate(totals, 1):
            self.assertLessEqual(total, burst_of(rate) + rate * i * bin_seconds,
                                 f"{what}: after {i * bin_seconds:.2f} s, at {rate} bytes/s")

    def assert_each_takes(self, rate, result):
        """No response is faster than its own rate."""
        for row in result.rows:
            self.assertLessEqual(row.n_bytes, burst_of(rate) + rate * row.total, row)

    def assert_whole(self, result, n):
        """All `n` downloads are complete, and each byte is right."""
        self.assertEqual(0, result["mismatch"], "wrong bytes")
        self.assertEqual((n, 0, 0), tuple(result[x] for x in ("done", "reset", "other_status")))


class NoLimit(Throttled):
    """Tests of nj-downloads, with a server without limits."""

    def test_every_byte_is_compared_and_counted(self):
        path = os.path.join(self.root, "200KiB")
        result = self.downloads("--downloads", 50, "--connections", 5, "--ramp", 2, "--repeat", 3,
                                "--check", path, "--hold", 60, paths=("/200KiB",)).end()
        self.assert_whole(result, 150)
        self.assertEqual(150 * FILES["200KiB"], result["payload_bytes"])
        self.assertEqual([FILES["200KiB"]] * 150, [row.n_bytes for row in result.rows])
        self.assertEqual(set(range(1, 51)), {row.slot + 1 for row in result.rows})
        self.assertEqual(150, self.counted("requests"))

    def test_wrong_bytes_are_counted(self):
        path = os.path.join(self.root, "16KiB-1")
        result = self.downloads("--repeat", 1, "--check", path, paths=("/200KiB",)).end()
        self.assertGreater(result["mismatch"], 0)

    def test_the_window_is_part_of_the_run(self):
        result = self.downloads("--downloads", 4, "--settle", 0.2, "--hold", 0.5).end()
        self.assertEqual(result["window_total"], sum(result["window_bytes"]))
        self.assertLess(result["window_total"], result["payload_bytes"])
        self.assertEqual(result["payload_bytes"], sum(map(sum, result["bins"])))
        self.assertLessEqual(result["max_100ms"], result["window_total"])
        self.assertGreaterEqual(result["max_100ms"], result["window_total"] / 6)


class PerRequest(Throttled):
    RATE = 200 * KIB
    options = ("--rate-per-request", "200KiB/s")

    def test_rate_of_each_response(self):
        result = self.each_once(20, "--connections", 4).end()
        self.assert_whole(result, 20)
        self.assert_each_takes(self.RATE, result)
        self.assertGreater(self.counted("shape_throttled"), 20)

    def test_heads_and_small_responses_are_not_throttled(self):
        with self.downloads("--downloads", 20, "--connections", 4, "--hold", 60) as crowd:
            crowd.steady()
            for name in ("one", "empty"):
                self.curl("-o", "/dev/null", self.world.url("/" + name))
            self.curl("-I", self.world.url("/10MiB"))
        self.tearDown()  # no download is open
        before = self.server.stats()["shape_throttled"]
        for _ in range(10):
            self.curl("-I", self.world.url("/10MiB"))
            self.curl("-o", "/dev/null", self.world.url("/one"))
        self.assertEqual(before, self.server.stats()["shape_throttled"])

    def test_charged_bytes_are_the_received_bytes(self):
        files = [os.path.join(self.root, name) for name in ("200KiB", "16KiB-1")]
        options = [word for path in files for word in ("--check", path)]
        n = 40
        result = self.downloads("--downloads", n, "--connections", 8, "--repeat", 2, "--hold", 60,
                                *options, paths=("/200KiB", "/16KiB-1")).end()
        self.assert_whole(result, 2 * n)
        sent = n * (FILES["200KiB"] + FILES["16KiB-1"])
        self.assertEqual(sent, result["payload_bytes"])
        until("all responses are counted", lambda: self.counted("responses") == 2 * n)
        self.assertEqual((sent, sent), (self.counted("body_bytes"), self.counted("shape_bytes")))


class LimitBelowMinimum(Throttled):
    """A response that the server itself limits below --min-rate is not reset."""
    options = ("--rate-per-request", "1KiB/s", "--min-rate", "100KiB/s", "--send-timeout", "2s")

    def test_paced_downloads_continue(self):
        # The server sends two full segments every 2.9 s, which is longer than --send-timeout.
        n = 20
        with self.downloads("--downloads", n, "--connections", 4, "--hold", 600):
            until("the third quantum of each", lambda: self.counted("shape_bytes") >=
                  n * (BURST_MIN + 2 * 2920))
            self.assertEqual((0, 0, n), (self.counted("h2_reset_out"), self.counted("tcp_closed"),
                                         self.server.stats()["shape_responses"]))


class PerClient(Throttled):
    """The limit is for all connections and streams of a client, on both lcores together."""
    RATE = 2 * MIB
    options = ("--rate-per-client", "2MiB/s")

    def test_many_connections_streams_and_ranges(self):
        many = self.each_once(128, "--connections", 8, "--range", 24 * KIB, paths=("/10MiB",))
        other = self.each_once(10, "--from", OTHER_ADDR)
        for what, n, result in (("many", 128, many.end()), ("other", 10, other.end())):
            self.assert_whole(result, n)
            self.assert_never_above(self.RATE, result, what)

    def test_connections_on_both_lcores(self):
        before = self.server.shards()
        result = self.each_once(16).end()
        self.assert_whole(result, 16)
        self.assert_never_above(self.RATE, result)
        for old, new in zip(before, self.server.shards()):
            self.assertGreater(new["requests"], old["requests"], "an lcore without requests")

    def test_after_aborted_downloads(self):
        """They return credit that they do not use, and no more than that."""
        for _ in range(5):
            self.downloads("--downloads", 64, "--connections", 8, "--settle", 0, "--hold",
                           0.1).end()
        result = self.each_once(10).end()
        self.assert_whole(result, 10)
        self.assert_never_above(self.RATE, result)


class WholeServer(Throttled):
    RATE = 4 * MIB
    options = ("--rate", "4MiB/s")

    def test_many_clients(self):
        result = self.each_once(64, "--connections", 16, "--from", CLIENT_ADDR, "--from",
                                OTHER_ADDR, "--range", 64 * KIB, paths=("/10MiB",)).end()
        self.assert_whole(result, 64)
        self.assert_never_above(self.RATE, result)

    def test_one_download(self):
        result = self.each_once(1, paths=("/10MiB",)).end()
        self.assert_whole(result, 1)
        self.assert_never_above(self.RATE, result)

    def test_no_download_starves(self):
        """Downloads that never end leave a share to those that do."""
        with self.downloads("--downloads", 100, "--connections", 10, "--hold", 60) as crowd:
            crowd.steady()
            self.assert_whole(self.each_once(10).end(), 10)


CLASSES = """
[server]
rate = {rate}

[class three]
path = /three-parts/
rate = 3MiB/s
ceiling = 4MiB/s

[class one]
path = /one-part/
rate = 1MiB/s
ceiling = 4MiB/s

[class later]
path = /after/
request_rate = 10KiB/s
rate_after = 256KiB

[class trickle]
path = /trickle/
rate = 20KiB/s
"""


class Classes(Throttled):
    RATE = 4 * MIB
    policy = CLASSES.format(rate="4MiB/s")

    @classmethod
    def prepare(cls):
        for folder in ("three-parts", "one-part", "after", "trickle"):
            os.mkdir(os.path.join(cls.root, folder))
            for name in FILES:
                os.link(os.path.join(cls.root, name), os.path.join(cls.root, folder, name))

    def test_two_classes(self):
        """Their rates are guarantees, and together the rate of the server."""
        result = self.each_once(16, "--connections", 8,
                                paths=("/three-parts/200KiB", "/one-part/200KiB")).end()
        self.assert_whole(result, 16)
        self.assert_never_above(self.RATE, result)

    def test_one_class_alone(self):
        """Its ceiling is the rate of the server."""
        result = self.each_once(1, paths=("/one-part/10MiB",)).end()
        self.assert_whole(result, 1)
        self.assert_never_above(self.RATE, result)

    def test_first_bytes_are_not_limited(self):
        d = self.downloads("--hold", 60, "--repeat", 5, paths=("/after/200KiB",))
        self.assert_whole(d.end(), 5)  # at 10 KiB/s each takes 20 s
        result = self.downloads("--settle", 0, "--hold", 1, paths=("/after/10MiB",)).end()
        row, = result.rows
        self.assertLessEqual(row.n_bytes, 256 * KIB + burst_of(10 * KIB) + 10 * KIB * row.total)

    def test_trickle(self):
        result = self.each_once(3, paths=("/trickle/16KiB-1",)).end()
        self.assert_whole(result, 3)
        self.assert_never_above(20 * KIB, result)


class ClassWithoutLimit(Throttled):
    """Requests with a certain header field have no limit."""
    policy = """
[class gold]
header = x-key: gold
client_rate = none

[class default]
client_rate = 64KiB/s
"""

    def test_no_limit(self):
        others = self.each_once(4, paths=("/16KiB-1",))
        gold = self.each_once(1, "--field", "x-key: gold", "--check",
                              os.path.join(self.root, "10MiB"), paths=("/10MiB",)).end()
        self.assert_whole(gold, 1)  # 160 s at the limit of the other class
        result = others.end()
        self.assert_whole(result, 4)
        self.assert_never_above(64 * KIB, result)


class Changed(Throttled):
    """The limit changes during downloads."""
    FIRST, SECOND = 4 * MIB, 1 * MIB
    policy = CLASSES.format(rate="4MiB/s")

    def check_after(self, change):
        self.addCleanup(self.change_policy, self.policy)
        with self.downloads("--downloads", 16, "--connections", 4, "--hold", 60) as crowd:
            crowd.steady()
            change()
            began, before = time.monotonic(), self.server.stats()["shape_bytes"]
            self.assert_whole(self.each_once(1).end(), 1)
            sent, seconds = self.server.stats()["shape_bytes"] - before, time.monotonic() - began
        self.assertLessEqual(sent, burst_of(self.FIRST) + self.SECOND * seconds)

    def test_change_by_telemetry(self):
        self.check_after(lambda: self.assertNotIn("error", self.limits(",rate=1MiB/s")))

    def test_change_by_sighup(self):
        self.check_after(lambda: self.change_policy(CLASSES.format(rate="1MiB/s")))
