# SPDX-License-Identifier: BSD-3-Clause
"""
The cases of tests/http1, sent to nightjar: whole, in two segments, and byte by byte. Checked are
the responses, whether the connection ends, the lines of the access log, and the counter of each
reason.
"""
import collections
import itertools
import json
import os
import random
import re
import zlib

from tests.http1 import wire
from tests.http1.case import MARKER
from tests.http1.cases import CASES, GROUPS, counts
from tests.netlab.case import ServerCase
from tests.netlab.world import until

SEED = 38
AT_ONCE = 64  # connections
CUTS = 5      # places at which each case is cut
FIRST_PORT = 10_000  # of the clients
LONG = 4000   # bytes of a case that is not sent byte by byte
MARK = b"the marker"


def digest(body):
    """The response of /digest."""
    return b"%d %d\n" % (len(body), zlib.adler32(body))


def wrong(case, exchange):
    """What is not as the case says, as a text; "" if all is."""
    try:
        responses = exchange.responses()
    except ValueError as error:
        return str(error)
    finals = [response for response in responses if response.status >= 200]
    marked = bool(finals) and finals[-1].body == MARK
    if case.closes is not None and case.closes == marked:
        return f"marker answered: {marked}, {[r.status for r in finals]}"
    expected = case.answers + (200,) * marked
    if len(expected) != len(finals):
        return f"responses: {[r.status for r in finals]}"
    for want, got in zip(expected, finals):
        if isinstance(want, bytes):
            if (got.status, got.body) != (200, digest(want)):
                return f"{got.status} {got.body}, body {want[:40]}"
        elif got.status != want and not (isinstance(want, tuple) and got.status in want):
            return f"statuses: {[r.status for r in finals]}"
    says = [[v.lower() for v in response.fields.get("connection", [])] for response in finals]
    if ["close"] in says[:-1] or says[-1:] != [["close"]]:
        return f"Connection: {says}"
    interim = [response.status for response in responses if response.status < 200]
    if set(interim) - {100} or len(interim) > case.raw.lower().count(b"expect"):
        return f"interim responses: {interim}"
    return "reset" if exchange.reset else ""


class Cases(ServerCase):
    program = "nightjar-test-handlers"

    ports = itertools.count(FIRST_PORT)

    @classmethod
    def prepare(cls):
        cls.log = os.path.join(cls.world.scratch, "access.log")
        cls.world.options += ["--access-log", cls.log, "--log-format", "json"]
        with open(os.path.join(cls.root, "marker"), "wb") as f:
            f.write(MARK)

    def setUp(self):
        self.wait_for_log()  # lines of former tests must not count for this one
        super().setUp()
        self.n_log_bytes = os.path.getsize(self.log)
        self.random = random.Random(SEED)

    def lines(self):
        with open(self.log, encoding="utf-8") as f:
            f.seek(self.n_log_bytes)
            return [json.loads(line) for line in f]

    def talk(self, sent):
        """Sends (case, parts), each on a connection with a port that no other had. Returns the
        exchanges."""
        found = []
        for first in range(0, len(sent), AT_ONCE):
            found += [wire.Exchange(self.world.connect(source_port=next(self.ports)), parts, case)
                      for case, parts in sent[first:first + AT_ONCE]]
            wire.run(found[first:])
        return found

    def logged(self, n_requests):
        """{port: [statuses in order]}"""
        until(lambda: f"{n_requests} lines, but {self.counted('access_written')}",
              lambda: self.counted("access_written") >= n_requests)
        found = collections.defaultdict(list)
        for line in sorted(self.lines(), key=lambda line: line["stream"]):
            found[line["port"]].append(line["status"])
        return found

    def check(self, sent):
        found = self.talk(sent)
        failures = []
        for each in found:
            if text := wrong(each.about, each):
                failures.append(f"{each.about.group}: {each.about.name}: {text}")
        self.assertEqual([], failures[:20], f"seed {SEED}")
        statuses = [[r.status for r in each.responses() if r.status >= 200] for each in found]
        logged = self.logged(sum(map(len, statuses)))
        for each, seen in zip(found, statuses):
            if logged[each.port] != seen:
                failures.append(f"{each.about.group}: {each.about.name}: {seen}, logged "
                                f"{logged[each.port]}")
        self.assertEqual([], failures[:20], f"seed {SEED}")

    def test_there_are_twenty_of_each_group(self):
        self.assertGreaterEqual(len(CASES), 200)
        self.assertEqual([], [group.name for group in GROUPS if counts()[group.name] < 20])

    def test_whole(self):
        self.check([(case, [case.raw + MARKER]) for case in CASES])
        expected = {}
        for case in CASES:
            if case.counter:
                expected[case.counter] = expected.get(case.counter, 0) + 1
        self.assertEqual({}, {name: (n, self.counted(name)) for name, n in expected.items()
                              if self.counted(name) < n})

    def test_each_reason(self):
        """Each case that names a reason is counted once, under this reason."""
        reasons = {case.counter for case in CASES if case.counter}
        failures = []
        for case in CASES:
            if case.counter:
                before = self.server.stats()
                self.talk([(case, [case.raw + MARKER])])
                after = self.server.stats()
                grown = {name: after[name] - before[name] for name in reasons
                         if after[name] != before[name]}
                if grown != {case.counter: 1}:
                    failures.append(f"{case.group}: {case.name}: {case.counter}, but {grown}")
        self.assertEqual([], failures)

    def test_marker_in_its_own_segment(self):
        self.check([(case, [case.raw, MARKER]) for case in CASES])

    def test_in_two(self):
        sent = []
        for case in CASES:
            for at in self.random.sample(range(1, len(case.raw)), min(CUTS, len(case.raw) - 1)):
                sent.append((case, [case.raw[:at], case.raw[at:] + MARKER]))
        self.check(sent)

    def test_line_ends_in_two(self):
        """Each case is cut between a CR and what follows it, once."""
        sent = []
        for case in CASES:
            places = [match.end() for match in re.finditer(b"\r(?=.)", case.raw, re.S)]
            if places:
                at = self.random.choice(places)
                sent.append((case, [case.raw[:at], case.raw[at:] + MARKER]))
        self.check(sent)

    def test_byte_by_byte(self):
        short = [case for case in CASES if len(case.raw) < LONG]
        self.check([(case, [bytes((byte,)) for byte in case.raw] + [MARKER])
                    for case in self.random.sample(short, len(short) // 4)])
