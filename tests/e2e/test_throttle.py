# SPDX-License-Identifier: BSD-3-Clause
"""
Rate limits, measured by clients: the rate never exceeds the limit, and reaches most of it.

The upper bound is exact except for bytes in flight when a window begins: the server sent them
before, and the client reads them late. The lower bound has a wide margin, because the machine may
be busy. A test that measures less than the lower bound runs a second time.
"""
import functools
import os
import time
import unittest

from tests.netlab.case import FILES, ServerCase
from tests.netlab.downloader import Downloads
from tests.netlab.world import CLIENT_ADDR, PREFIX_BITS, SANITIZED, SLOW, ip, until

KIB, MIB = 1 << 10, 1 << 20
LATE_SECONDS = 0.5 * SLOW  # in flight to a client that gets no CPU
LEAST = 0.7                # part of a rate that a test requires
BURST_SECONDS, BURST_MIN = 0.05, 2 * 2920  # lib/shape/rate_limit.h
OTHER_ADDR = "198.18.0.3"  # of another client
HOLD = 3  # seconds; not longer under sanitizers, because the rate is the same


def burst_of(rate):
    return max(rate * BURST_SECONDS, BURST_MIN)


class AboveLimit(AssertionError):
    pass


RETRIES_MAX = 4  # tests of a run that run a second time


def retry_below_limit(test):
    @functools.wraps(test)
    def run(self):
        self.below_limit = []
        try:
            test(self)
        except AssertionError as e:
            if isinstance(e, AboveLimit) or not self.below_limit:
                raise
        if not self.below_limit:
            return
        print(f"{self.id()} runs again: {'; '.join(self.below_limit)}", flush=True)
        Throttled.n_retries += 1
        self.assertLessEqual(Throttled.n_retries, RETRIES_MAX, "too many tests run a second time")
        self.doCleanups()
        self.tearDown()
        self.setUp()
        self.below_limit = []
        test(self)
        self.assertEqual([], self.below_limit)
    return run


class Throttled(ServerCase):
    """Clients at two addresses download the files of FILES."""
    n_retries = 0

    def __init_subclass__(cls, **more):
        super().__init_subclass__(**more)
        for name, test in list(vars(cls).items()):
            if name.startswith("test_"):
                setattr(cls, name, retry_below_limit(test))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        ip("-n", cls.world.client_ns, "addr", "add", f"{OTHER_ADDR}/{PREFIX_BITS}", "dev", "nj0")

    def downloads(self, *options, paths=("/10MiB",), **more):
        d = Downloads(self.world, *options, paths=paths, **more)
        self.addCleanup(d.kill)
        return d

    def timed_downloads(self, *options, **more):
        """Starts downloads that continue for HOLD seconds."""
        return self.downloads("--hold", HOLD, *options, **more)

    def assert_rate(self, rate, n_bytes, seconds, what=""):
        most = rate * (seconds + LATE_SECONDS) + burst_of(rate)
        if n_bytes > most:
            raise AboveLimit(f"{what}: {n_bytes} bytes in {seconds} s, more than {rate}/s")
        self.assert_most_of(rate, n_bytes, seconds, what)

    def assert_most_of(self, rate, n_bytes, seconds, what="", least=LEAST):
        if n_bytes < rate * seconds * least:
            self.below_limit.append(f"{what}: {n_bytes} bytes in {seconds} s, of {rate}/s")

    def assert_never_above(self, rate, result, what=""):
        """Checks each period of one second."""
        most = result.most_in(1, *result.window)
        if most > rate * (1 + LATE_SECONDS) + burst_of(rate):
            raise AboveLimit(f"{what}: {most} bytes in a second, more than {rate}")

    def assert_whole(self, result, n):
        """All `n` downloads are complete, and each byte is right."""
        self.assertEqual((n, 0, 0, 0), tuple(result[x] for x in ("done", "mismatch", "reset",
                                                                 "other_status")))


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
        result = self.timed_downloads("--downloads", 20, "--connections", 4).end()
        for i, rate in enumerate(result.rates()):
            self.assert_rate(self.RATE, rate * result.seconds, result.seconds, f"download {i}")
        self.assertGreater(self.counted("shape_throttled"), 20)

    def test_heads_and_small_responses_are_not_throttled(self):
        crowd = self.timed_downloads("--downloads", 20, "--connections", 4)
        crowd.steady()
        for name in ("one", "empty"):
            self.curl("-o", "/dev/null", self.world.url("/" + name))
        self.curl("-I", self.world.url("/10MiB"))
        crowd.end()
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
    options = ("--rate-per-request", "1KiB/s", "--min-rate", "100KiB/s", "--send-timeout",
               f"{2 * SLOW}s")

    def test_paced_downloads_continue(self):
        # The server sends two full segments every 2.9 s, which is longer than --send-timeout.
        result = self.downloads("--downloads", 20, "--connections", 4, "--settle", 0, "--hold",
                                8 * SLOW).end()
        self.assertEqual((0, 0, 0), (result["reset"], result["closed"], result["gone"]))
        self.assertGreater(min(row.n_bytes for row in result.rows), BURST_MIN)
        self.assertEqual({"open"}, {row.how for row in result.rows})


class PerClient(Throttled):
    """The limit is for all connections and streams of a client, on both lcores together."""
    RATE = 2 * MIB
    options = ("--rate-per-client", "2MiB/s")

    def test_many_connections_streams_and_ranges(self):
        many = self.timed_downloads("--downloads", 128, "--connections", 8, "--range", 64 * KIB)
        other = self.timed_downloads("--from", OTHER_ADDR)
        for what, result in (("many", many.end()), ("one", other.end())):
            self.assert_rate(self.RATE, result["window_total"], result.seconds, what)
            self.assert_never_above(self.RATE, result, what)

    def test_connections_on_both_lcores(self):
        before = self.server.shards()
        result = self.timed_downloads("--downloads", 16).end()
        self.assert_rate(self.RATE, result["window_total"], result.seconds)
        self.assert_never_above(self.RATE, result)
        for old, new in zip(before, self.server.shards()):
            self.assertGreater(new["requests"], old["requests"], "an lcore without requests")

    def test_unused_credit_is_returned(self):
        """Aborted downloads return credit, so later downloads do not wait for it."""
        for _ in range(5):
            self.downloads("--downloads", 64, "--connections", 8, "--settle", 0, "--hold",
                           0.3).end()
        result = self.timed_downloads().end()
        self.assert_rate(self.RATE, result["window_total"], result.seconds)


class WholeServer(Throttled):
    RATE = 4 * MIB
    options = ("--rate", "4MiB/s")

    def test_many_clients(self):
        result = self.timed_downloads("--downloads", 64, "--connections", 16, "--from",
                                      CLIENT_ADDR, "--from", OTHER_ADDR).end()
        self.assert_rate(self.RATE, result["window_total"], result.seconds)
        self.assert_never_above(self.RATE, result)

    def test_one_download_gets_the_whole_rate(self):
        result = self.timed_downloads().end()
        self.assert_rate(self.RATE, result["window_total"], result.seconds)

    def test_every_download_gets_a_share(self):
        result = self.timed_downloads("--downloads", 100, "--connections", 10).end()
        least, fair = min(result["window_bytes"]), self.RATE / 100
        self.assertGreater(least, fair * result.seconds / 20)
        self.assert_most_of(fair, least, result.seconds, least=0.25)


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
            for name in ("10MiB", "200KiB"):
                os.link(os.path.join(cls.root, name), os.path.join(cls.root, folder, name))

    def test_guaranteed_rates(self):
        """
        Each class gets most of its guaranteed rate. Unit tests check the ratio of 3 : 1: here a
        class gets the rate that the other does not use while its lcore has no CPU.
        """
        result = self.timed_downloads("--downloads", 16, "--connections", 8,
                                      paths=("/three-parts/10MiB", "/one-part/10MiB")).end()
        took = result["window_bytes"]
        self.assert_rate(self.RATE, result["window_total"], result.seconds)
        self.assert_most_of(3 * MIB, sum(took[0::2]), result.seconds, "three", least=0.8)
        self.assert_most_of(1 * MIB, sum(took[1::2]), result.seconds, "one")

    def test_unused_rate_goes_to_the_other_class(self):
        result = self.timed_downloads(paths=("/one-part/10MiB",)).end()
        self.assert_rate(self.RATE, result["window_total"], result.seconds)

    def test_first_bytes_are_not_limited(self):
        d = self.downloads("--hold", HOLD, "--repeat", 5, paths=("/after/200KiB",))
        self.assert_whole(d.end(), 5)  # at 10 KiB/s each takes 20 s
        result = self.timed_downloads(paths=("/after/10MiB",)).end()
        took = result.window[1] - result.began
        self.assertGreaterEqual(result["payload_bytes"], 256 * KIB)
        self.assertLessEqual(result["payload_bytes"], 256 * KIB + 10 * KIB * (took + LATE_SECONDS)
                             + burst_of(10 * KIB))

    def test_trickle(self):
        result = self.timed_downloads("--downloads", 8, paths=("/trickle/10MiB",)).end()
        self.assert_rate(20 * KIB, result["window_total"], result.seconds)


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
        others = self.timed_downloads("--downloads", 4)
        gold = self.downloads("--field", "x-key: gold", "--repeat", 1, "--hold", 60, "--check",
                              os.path.join(self.root, "10MiB")).end()
        self.assert_whole(gold, 1)  # 160 s at the limit of the other class
        result = others.end()
        self.assert_rate(64 * KIB, result["window_total"], result.seconds)


class Changed(Throttled):
    """The limit changes during downloads. The tests measure the rates before and after."""
    FIRST, SECOND = 4 * MIB, 1 * MIB
    policy = CLASSES.format(rate="4MiB/s")

    def running(self, change):
        """Calls `change` during downloads, after 3 s. Returns (result, time after the change)."""
        d = self.downloads("--downloads", 16, "--connections", 4, "--hold", 6 * SLOW + 2,
                           paths=("/10MiB",))
        began = d.steady()
        until("3 s of downloads", lambda: time.monotonic() > began + 3 * SLOW, 30)
        change()
        changed = time.monotonic()
        return d.end(), changed

    def assert_changed(self, result, at, first, second):
        start, end = result.window
        self.assert_rate(first, result.between(start, at - 0.5), at - 0.5 - start, "before")
        self.assert_rate(second, result.between(at + 0.5, end), end - at - 0.5, "after")

    def test_change_by_telemetry(self):
        self.addCleanup(self.change_policy, self.policy)
        result, at = self.running(lambda: self.assertNotIn("error", self.limits(",rate=1MiB/s")))
        self.assert_changed(result, at, self.FIRST, self.SECOND)

    def test_change_by_sighup(self):
        self.addCleanup(self.change_policy, self.policy)
        result, at = self.running(lambda: self.change_policy(CLASSES.format(rate="1MiB/s")))
        self.assert_changed(result, at, self.FIRST, self.SECOND)


def load_tests(loader, tests, _):
    """Under sanitizers a part of the tests runs: rates do not depend on sanitizers."""
    chosen = [*map(loader.loadTestsFromTestCase, [NoLimit, PerRequest]),
              Changed("test_change_by_sighup")]
    return unittest.TestSuite(chosen) if SANITIZED else tests
