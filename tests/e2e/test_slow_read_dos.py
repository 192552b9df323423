# SPDX-License-Identifier: BSD-3-Clause
"""
Slow-read denial of service: 1,000 bots request 10 MiB each, and read nothing or very slowly.

Their cost is bounded. At most NJ_SENDQ_BYTES_MIN of each response is in a send queue, which refers
to the bytes of the file and does not copy them. The other memory of a connection is small. File
contents take at most the cache and the budget of chunks. Other clients get complete responses at
the same time. The server ends the responses of all bots by the send time-out or the minimum rate.
"""
import collections
import os
import re
import time

from tests.netlab.case import ServerCase
from tests.netlab.downloader import Downloads
from tests.netlab.flood import resident_kib
from tests.netlab.world import REPO, until

PLAIN_BUILD = "memory"
WITHOUT_SANITIZERS = True  # shadow memory is resident, too
BOTS = 1000
SEND_TIMEOUT_SECONDS = 4
GONE_SECONDS = 600  # the bots wait so long for the server to end their responses
VISITS = 200


def limit(name):
    """A number of lib/base/limits.h."""
    with open(os.path.join(REPO, "lib/base/limits.h")) as f:
        found = re.search(rf"^#define {name}\s+\(?([\du* ]+)\)?", f.read(), re.M)
    product = 1
    for factor in found[1].replace("u", "").split("*"):
        product *= int(factor)
    return product


# The second term is far above the memory of a connection with its session and its request.
BOT_BYTES_MAX = limit("NJ_SENDQ_BYTES_MIN") + 64 * 1024
MIB = 1 << 20
LARGE_PAGES = 8 * MIB  # of the flow table; and the last pages of pools, which are partly used


class NothingRead(ServerCase):
    lcores = 1
    kind = "stop"
    path = "/10MiB"
    files_bytes = 32 * MIB  # /10MiB and /200KiB, which all clients share
    more = ()
    options = ("--send-timeout", f"{SEND_TIMEOUT_SECONDS}s")

    def visit(self):
        """VISITS downloads of an ordinary client, two at a time. Returns the lcore's busy steps."""
        before = self.server.stats()
        with Downloads(self.world, "--downloads", 2, "--repeat", VISITS // 2, "--hold", 60,
                       paths=["/200KiB"]) as client:
            result = client.end()
        self.assertEqual((VISITS, 0, 0), (result["done"], result["reset"], result["closed"]))
        return self.server.stats()["loops_busy"] - before["loops_busy"]

    def is_steady(self):
        """Did the server send under 100 bytes per bot since the last sample, 200 ms ago or more?"""
        now, sent = time.monotonic(), self.server.stats()["body_bytes"]
        if now - self.sample[0] < 0.2:
            return False
        steady = sent - self.sample[1] < 100 * BOTS
        self.sample = now, sent
        return steady

    def test_bots(self):
        pid = self.server.process.pid
        self.visit()
        rss, steps_before = resident_kib(pid), self.visit()
        with Downloads(self.world, "--downloads", BOTS, "--never-read", self.kind, "--hold",
                       GONE_SECONDS, "--settle", 0, *self.more, paths=[self.path]) as bots:
            until("a request of each bot",
                  lambda: self.counted("requests") >= BOTS + 2 * VISITS)
            self.sample = 0, 0
            until("the server sends no more to the bots", self.is_steady)
            steps_with_bots = self.visit()
            stats = self.server.stats()
            grown = (resident_kib(pid) - rss) << 10
            self.assertLess(grown, BOTS * BOT_BYTES_MAX + self.files_bytes + LARGE_PAGES)
            self.assertEqual(0, stats["mbuf_none"])
            result = bots.end(GONE_SECONDS)
        how = collections.Counter(row.how for row in result.rows)
        self.assertEqual(0, how["open"], how)
        self.assertEqual(BOTS, sum(how.values()))
        self.assertEqual(0, how["done"], how)
        print(f"{self.kind}: {grown >> 10} KiB more; {steps_with_bots} busy steps for {VISITS} "
              f"visits, {steps_before} without bots; {how}")
        # Bots cost the lcore zero-window probes, and the end of their responses.
        self.assertLess(steps_with_bots, 20 * steps_before + 10 * BOTS)


class NoStreamWindow(NothingRead):
    kind = "stream"


class NoConnectionWindow(NothingRead):
    kind = "connection"


class WindowOfOneByte(NothingRead):
    """A WINDOW_UPDATE of one byte per stream, every 200 ms."""
    kind = "dribble"
    more = ("--every", 200)
    options = (*NothingRead.options, "--min-rate", "1KiB/s")


class ReadsOfSixteenBytes(WindowOfOneByte):
    kind = "sip"
    more = ("--every", 200, "--sip", 16)


class SmallReceiveBuffer(NothingRead):
    """SO_RCVBUF of the sockets is 2,048 bytes."""
    more = ("--rcvbuf", 2048)


class DistinctRanges(NothingRead):
    """
    Each bot requests another range, so bots share no chunks. Chunks become small, and send queues
    hold many of them. With full send queues of all bots the server would have too few mbufs.
    """
    path = "/wide"
    more = ("--range", 1 << 20)
    options = (*NothingRead.options, "--cache", "32MiB")
    files_bytes = 32 * MIB + 128 * MIB  # the cache; the budget of chunks (NJ__CHUNK_BUDGET_MIN)

    @classmethod
    def prepare(cls):
        with open(os.path.join(cls.root, "wide"), "wb") as f:
            f.truncate(BOTS << 20)  # a sparse file
