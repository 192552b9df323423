# SPDX-License-Identifier: BSD-3-Clause
"""During a flood of SYNs each real client gets its response, and memory hardly grows."""
from tests.netlab.case import ServerCase
from tests.netlab.flood import OPTIONS, Flood, Router, resident_kib, visit
from tests.netlab.priority import first_of
from tests.netlab.world import until

PLAIN_BUILD = "memory"
WITHOUT_SANITIZERS = True  # shadow memory is resident, too
VISITS = 50
# A machine with too few CPUs loses packets, and clients retransmit them, the SYN after a second.
# ./dev bench synflood measures the delay.
VISIT_SECONDS_MAX = 15
FLOOD_SECONDS_MAX = 100  # the test ends the flood after the visits
COOKIES_MIN = 20_000  # the server has touched all pages that a flood uses
GROWTH_KIB_MAX = 4096
# SYNs per second, enough to fill the backlogs of both shards at once. ./dev bench synflood sends at
# full rate: the ring of the device may overflow and lose packets of real clients, too. A server
# with sanitizers handles fewer SYNs.
RATE = 20_000


class SynFlood(ServerCase):
    alone = True  # its server has a high priority
    link = "veth"
    options = OPTIONS

    @classmethod
    def held(cls):
        """Without half-open connections, which end after a minute: tearDown() does not wait."""
        n_half_open = [cls.server.telemetry(f"/nightjar/memory,{i}")["syn_used"]
                       for i in range(len(cls.server.shards()))]
        return [{**shard, "connections": shard["connections"] - n}
                for shard, n in zip(super().held(), n_half_open)]

    def test_clients_get_responses(self):
        first_of(self.world.server_ns)
        with Router(self.world), Flood(self.world, FLOOD_SECONDS_MAX, RATE) as flood:
            until("a flood of cookies", lambda: self.counted("tcp_cookie_sent") >= COOKIES_MIN)
            before = resident_kib(self.server.process.pid)
            for number in range(VISITS):
                answered, seconds = visit(self.world, "/index.html", VISIT_SECONDS_MAX)
                self.assertTrue(answered, f"client {number + 1} of {VISITS}, {seconds:.3f} s")
            after = resident_kib(self.server.process.pid)
            self.assertTrue(flood.running(), "the flood ended before the visits")
        self.assertLess(after - before, GROWTH_KIB_MAX, "KiB more resident memory")
        # The first SYNs fill the backlog for a minute, so the clients' connections need cookies.
        self.assertGreaterEqual(self.counted("tcp_cookie_ok"), VISITS)
        self.assertEqual(0, self.counted("drop_tcp_backlog"))
