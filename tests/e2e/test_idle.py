# SPDX-License-Identifier: BSD-3-Clause
"""--idle: in each mode requests, downloads and timers go on after lcores had no work."""
from case import ServerCase
from h2client import Client
from world import until

RESTS = 3


class AfterARest:
    def test_requests_downloads_and_timers(self):
        client = Client(self.world.connect())
        for _ in range(RESTS):
            self.held_at_rest()
            self.assertEqual(200, client.get("/one")[0])
            self.curl("-o", "/dev/null", self.world.url("/10MiB"))
        until("the server closes silent connections", lambda: not client.read())
        client.close()
        for line in self.warnings:
            self.assertIn(line, self.world.errors())


class Sleep(AfterARest, ServerCase):
    options = ("--idle", "sleep", "--idle-timeout", "4s")
    warnings = ()


class Interrupt(AfterARest, ServerCase):
    """Of the tap's files."""
    options = ("--idle", "interrupt", "--idle-timeout", "4s")
    warnings = ()


class InterruptOfNobody(AfterARest, ServerCase):
    link = "veth"  # net_af_packet has none
    options = ("--idle", "interrupt", "--idle-timeout", "4s")
    warnings = ("--idle interrupt: net_af_packet0 (net_af_packet) has no receive interrupts: "
                "lcores sleep",)


class Pause(AfterARest, ServerCase):
    options = ("--idle", "pause", "--idle-timeout", "4s")
    warnings = ()


class Spin(AfterARest, ServerCase):
    options = ("--idle", "spin", "--idle-timeout", "4s")
    warnings = ()
