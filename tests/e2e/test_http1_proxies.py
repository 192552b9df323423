# SPDX-License-Identifier: BSD-3-Clause
"""
The cases of tests/http1, sent to HAProxy and to nginx in front of nightjar: what the front forwards
as one request is one request of nightjar's.
"""
import json
import os

from tests.http1 import wire
from tests.http1.case import MARKER
from tests.http1.cases import CASES
from tests.netlab.case import ServerCase
from tests.netlab.proxies import LAX, STRICT, Front
from tests.netlab.world import until

MARK = b"the marker"
AT_ONCE = 256
ERRORS = (400, 408, 414, 417, 421, 431, 501, 505)  # after which nightjar closes


class Proxies(ServerCase):
    program = "nightjar-test-handlers"

    @classmethod
    def prepare(cls):
        cls.log = os.path.join(cls.world.scratch, "access.log")
        cls.world.options += ["--access-log", cls.log, "--log-format", "json"]
        with open(os.path.join(cls.root, "marker"), "wb") as f:
            f.write(MARK)

    def setUp(self):
        super().setUp()
        self.n_log_bytes = os.path.getsize(self.log)

    def lines(self):
        """Those since the begin of the test, when all connections have ended."""
        until("the connections have ended",
              lambda: sum(shard["connections"] for shard in self.server.shards()) == 0)
        until("all are logged", lambda: self.counted("access_written") == self.counted("requests"))
        with open(self.log, encoding="utf-8") as f:
            f.seek(self.n_log_bytes)
            return [json.loads(line) for line in f]

    def send(self, front, port):
        """Sends all cases to a front. Returns how many got an answer to the marker."""
        marked = 0
        for first in range(0, len(CASES), AT_ONCE):
            batch = [wire.Exchange(front.connect(port), [case.raw + MARKER], case.name)
                     for case in CASES[first:first + AT_ONCE]]
            wire.run(batch)
            marked += sum(each.received.endswith(MARK) for each in batch)
        return marked

    def check(self, name, port):
        front = Front(self.world, name)
        self.addCleanup(front.close)
        marked = self.send(front, port)
        front.close()
        forwarded, lines = front.forwarded(), self.lines()
        tags = [line["user_agent"] for line in lines]
        known = [tag for tag in tags if tag in forwarded]
        # A request that is refused because of its head may have no User-Agent in the log, and that
        # of a long target is cut.
        others = [line for line in lines if line["user_agent"] not in forwarded]
        unseen = {tag: of for tag, of in forwarded.items() if tag not in tags}
        self.assertEqual(sorted(set(known)), sorted(known), "one forwarded request became two")
        self.assertEqual([], [line for line in others if not line["cut"] and (
            line["user_agent"] or line["status"] not in ERRORS)])
        self.assertEqual(sorted(status for status, gave_up, _ in unseen.values() if not gave_up),
                         sorted(str(line["status"]) for line in others), (unseen, others))
        self.assertGreater(marked, len(CASES) // 10)
        self.assertGreaterEqual(len(known), marked)

    def test_haproxy(self):
        self.check("haproxy", STRICT)

    def test_haproxy_that_accepts_invalid_requests(self):
        self.check("haproxy", LAX)

    def test_nginx(self):
        self.check("nginx", STRICT)

    def test_nginx_that_accepts_invalid_requests(self):
        self.check("nginx", LAX)
