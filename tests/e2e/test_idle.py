# SPDX-License-Identifier: BSD-3-Clause
"""--idle: in each mode the server handles requests, downloads and timers after an idle period."""
import time
import unittest

from tests.netlab.case import ServerCase
from tests.netlab.h2client import Client
from tests.netlab.world import World, until

PLAIN_BUILD = "start"
RESTS = 3
LOOPS_PER_SECOND_MAX = 100  # of a sleeping lcore: one per 50 ms, and its timers


class AfterARest:
    def test_requests_downloads_and_timers(self):
        for _ in range(RESTS):
            client = Client(self.world.connect())
            self.held_at_rest()
            self.assertEqual(200, client.get("/one")[0])
            self.curl("-o", "/dev/null", self.world.url("/10MiB"))
            until("the server closes the silent connection", lambda: not client.read())
            client.close()


class Asleep:
    """Lcores do not poll while idle if the driver can wake them for a packet."""

    def loops(self):
        return [shard["loops_idle"] + shard["loops_busy"] for shard in self.server.shards()]

    def test_lcores_sleep_until_a_packet_comes(self):
        def sleeps():
            before, began = self.loops(), time.monotonic()
            time.sleep(0.5)  # the measured period
            loops_max = LOOPS_PER_SECOND_MAX * (time.monotonic() - began)
            return all(b - a < loops_max for a, b in zip(before, self.loops()))
        for _ in range(RESTS):
            self.curl("-o", "/dev/null", self.world.url("/one"))
            until("every lcore asleep", sleeps)


class Sleep(Asleep, AfterARest, ServerCase):
    """Lcores wait until the file descriptor of the tap is readable."""
    options = ("--idle-timeout", "2s")


class SleepOnSockets(Asleep, AfterARest, ServerCase):
    """Lcores wait until a socket of net_af_packet is readable."""
    link = "veth"
    options = ("--idle", "sleep", "--idle-timeout", "2s")


class SleepWithoutQueue(Asleep, AfterARest, ServerCase):
    """Two of three lcores have no queue: the third receives and sends their packets."""
    link = "veth"
    lcores = 3
    options = ("--idle", "sleep", "--idle-timeout", "2s")


class InterruptOnTap(Asleep, ServerCase):
    """A tap has no interrupts: the mode is the same as sleep."""
    options = ("--idle", "interrupt", "--idle-timeout", "2s")


class InterruptWithoutSupport(unittest.TestCase):
    def test_warning(self):
        with World("null", root="/run", options=["--idle", "interrupt"]) as world:
            until("a warning", lambda: "--idle interrupt: net_null0 (net_null) has no receive "
                                       "interrupts: lcores sleep" in world.errors())


class Pause(AfterARest, ServerCase):
    options = ("--idle", "pause", "--idle-timeout", "2s")


class Spin(AfterARest, ServerCase):
    options = ("--idle", "spin", "--idle-timeout", "2s")
