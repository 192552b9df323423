# SPDX-License-Identifier: BSD-3-Clause
"""In a flood of SYNs, every real client is answered, and memory stays flat."""
from tests.netlab.case import ServerCase
from tests.netlab.flood import OPTIONS, Flood, Router, resident_kib, visit
from tests.netlab.priority import first_of
from tests.netlab.world import SANITIZED, until

VISITS = 50
# How soon is for ./dev bench synflood: a machine that is short of CPUs loses packets, and a client
# sends them again, the SYN after a second.
VISIT_SECONDS_MAX = 15
FLOOD_SECONDS_MAX = 100  # it is ended when the visits are over
COOKIES_MIN = 20_000  # what a flood makes the server touch has been touched after so many
GROWTH_KIB_MAX = 32768 if SANITIZED else 4096  # shadow memory, and what was freed is kept
# Enough to fill the backlog of both shards in a moment. Full rate is the business of ./dev bench
# synflood: it can be more than the device's ring takes, and then it is chance whose packets are
# lost. A sanitized server can't follow either.
RATE = 5_000 if SANITIZED else 20_000


class SynFlood(ServerCase):
    link = "veth"
    options = OPTIONS

    @classmethod
    def held(cls):
        """Half-open connections are given up after a minute; nobody has to wait for that."""
        n_half_open = [cls.server.telemetry(f"/nightjar/memory,{i}")["syn_used"]
                       for i in range(len(cls.server.shards()))]
        return [{**shard, "connections": shard["connections"] - n}
                for shard, n in zip(super().held(), n_half_open)]

    def test_clients_are_answered(self):
        first_of(self.world.server_ns)
        with Router(self.world), Flood(self.world, FLOOD_SECONDS_MAX, RATE) as flood:
            until("a flood of cookies", lambda: self.counted("tcp_cookie_sent") >= COOKIES_MIN, 30)
            before = resident_kib(self.server.process.pid)
            for number in range(VISITS):
                answered, seconds = visit(self.world, "/index.html", VISIT_SECONDS_MAX)
                self.assertTrue(answered, f"client {number + 1} of {VISITS}, {seconds:.3f} s")
            after = resident_kib(self.server.process.pid)
            self.assertTrue(flood.running(), "the flood ended before the visits did")
        self.assertLess(after - before, GROWTH_KIB_MAX, "KiB more resident memory")
        # The backlog stays full of the first SYNs for a minute: these clients had no place there.
        self.assertGreaterEqual(self.counted("tcp_cookie_ok"), VISITS)
        self.assertEqual(0, self.counted("drop_tcp_backlog"))
