# SPDX-License-Identifier: BSD-3-Clause
"""
Slow-read denial of service: a thousand bots that ask for 10 MiB each and do not read.

What they cost is bounded: of each at most NJ_SENDQ_BYTES_MIN is in a send queue, which refers to
the file's bytes and does not copy them, and the rest of a connection is small; and of files there
is never more than the cache and the budget of chunks. Others are served meanwhile. And the bots are
gone some time after the time that a response may stand still.
"""
import collections
import os
import re
import time
import unittest

from tests.netlab.case import ServerCase
from tests.netlab.downloader import Downloads
from tests.netlab.flood import resident_kib
from tests.netlab.world import REPO, SANITIZED, SLOW, until

BOTS = 1000
SEND_TIMEOUT_SECONDS = 4
GONE_SECONDS = 40  # the timer, and as long again for a busy machine
VISITS = 200


def limit(name):
    """A number of lib/base/limits.h."""
    with open(os.path.join(REPO, "lib/base/limits.h")) as f:
        found = re.search(rf"^#define {name}\s+\(?([\du* ]+)\)?", f.read(), re.M)
    product = 1
    for factor in found[1].replace("u", "").split("*"):
        product *= int(factor)
    return product


# A connection with a session of HTTP/2 and a request takes far less than the second part of it.
BOT_BYTES_MAX = limit("NJ_SENDQ_BYTES_MIN") + 64 * 1024
MIB = 1 << 20
LARGE_PAGES = 8 * MIB  # the flow table, and the last ones of pools, of which not all is used
SANITIZERS = 64 * MIB if SANITIZED else 0  # what was freed is kept aside for a while (../all.py)


class NothingRead(ServerCase):
    lcores = 1
    kind = "stop"
    path = "/10MiB"
    files_bytes = 32 * MIB  # /10MiB and those that visitors read, held once for all
    more = ()
    options = ("--send-timeout", f"{SEND_TIMEOUT_SECONDS * SLOW}s")
    idle_seconds = 60

    def visit(self):
        """Closed loops of an ordinary client. Returns steps with work of the lcore for each."""
        before = self.server.stats()
        with Downloads(self.world, "--downloads", 2, "--repeat", VISITS // 2, "--hold", 60,
                       paths=["/200KiB"]) as client:
            result = client.end()
        self.assertEqual((VISITS, 0, 0), (result["done"], result["reset"], result["closed"]))
        return self.server.stats()["loops_busy"] - before["loops_busy"]

    def calm(self):
        """The bots have what they can hold: little has gone out since the last glance, if any."""
        now, out = time.monotonic(), self.server.stats()["body_bytes"]
        if now - self.glance[0] < 0.2:
            return False
        little = out - self.glance[1] < 100 * BOTS
        self.glance = now, out
        return little

    def test_bots(self):
        pid = self.server.process.pid
        self.visit()
        rss, alone = resident_kib(pid), self.visit()
        with Downloads(self.world, "--downloads", BOTS, "--never-read", self.kind, "--hold",
                       GONE_SECONDS * SLOW, "--settle", 0, *self.more, paths=[self.path]) as bots:
            until("all have asked", lambda: self.counted("requests") >= BOTS + 2 * VISITS, 20)
            self.glance = 0, 0
            until("they have what they can hold", self.calm, 20)
            within = self.visit()
            stats = self.server.stats()
            grown = (resident_kib(pid) - rss) << 10
            self.assertLess(grown, BOTS * BOT_BYTES_MAX + self.files_bytes + LARGE_PAGES
                            + SANITIZERS)
            self.assertEqual(0, stats["mbuf_none"])
            result = bots.end(GONE_SECONDS + 30)
        how = collections.Counter(row.how for row in result.rows)
        self.assertEqual(0, how["open"], how)
        self.assertEqual(BOTS, sum(how.values()))
        self.assertEqual(0, how["done"], how)
        print(f"{self.kind}: {grown >> 10} KiB more; {within} busy steps for {VISITS} visits, "
              f"{alone} alone; {how}")
        # What they cost the lcore meanwhile: probes of zero windows, and being thrown out.
        self.assertLess(within, 20 * alone + 10 * BOTS)


class NoStreamWindow(NothingRead):
    kind = "stream"


class NoConnectionWindow(NothingRead):
    kind = "connection"


class WindowOfOneByte(NothingRead):
    """There is progress, a byte at a time."""
    kind = "dribble"
    more = ("--every", 200)
    options = (*NothingRead.options, "--min-rate", "1KiB/s")


class ReadsOfSixteenBytes(WindowOfOneByte):
    kind = "sip"
    more = ("--every", 200, "--sip", 16)


class SmallReceiveBuffer(NothingRead):
    """The smallest a socket can have."""
    more = ("--rcvbuf", 2048)


class DistinctRanges(NothingRead):
    """
    None wants the bytes that another wants, so nothing they hold is shared. Chunks become small,
    and send queues hold many of them: mbufs would run short if each took what it may.
    """
    path = "/wide"
    more = ("--range", 1 << 20)
    options = (*NothingRead.options, "--cache", "32MiB")
    files_bytes = 32 * MIB + 128 * MIB  # the cache, and four times as much of chunks (NJ__CHUNK_*)

    @classmethod
    def prepare(cls):
        with open(os.path.join(cls.root, "wide"), "wb") as f:
            f.truncate(BOTS << 20)  # takes no space


def load_tests(loader, tests, _):
    """Sanitizers, with which a time-out takes four times as long, see what differs most."""
    chosen = map(loader.loadTestsFromTestCase, [ReadsOfSixteenBytes, DistinctRanges])
    return unittest.TestSuite(chosen) if SANITIZED else tests
