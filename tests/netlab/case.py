# SPDX-License-Identifier: BSD-3-Clause
"""
The base of the end-to-end tests: a server for each class, and after each test the question whether
anything leaked: whatever was in use when the server stood idle must be in use again, no more.
"""
import hashlib
import os
import random
import signal
import unittest

from tests.netlab.world import Failed, World, until

# Per shard, telemetry's words for what may leak. `time_wait` is not among them: it goes when its
# time has come, and holds nothing but its place.
HELD = ("connections", "h2_connections", "h2_bytes", "file_jobs", "exchanges", "tx_queued",
        "rx_mbufs_used", "tx_mbufs_used")
IDLE_STEPS = 2  # the first of them may have begun before the first glance
FILES = {"empty": 0, "one": 1, "16KiB-1": (16 << 10) - 1, "200KiB": 200 << 10, "10MiB": 10 << 20}
GIB = 1 << 30


def counter_kinds():
    """{counter name: kind} from lib/telem/counters.def."""
    import re
    from tests.netlab.world import REPO
    with open(os.path.join(REPO, "lib/telem/counters.def")) as f:
        return {name: kind for kind, name in
                re.findall(r"^NJ_COUNTER\((\w+),\s*(\w+),", f.read(), re.M)}


def held_of(shards):
    return [{name: shard[name] for name in HELD} for shard in shards]


def moved(first, last):
    """Did any shard do something between two glances?"""
    return (held_of(first) != held_of(last) or
            any(a["loops_busy"] != b["loops_busy"] for a, b in zip(first, last)))


def fill_site(folder):
    """Files of known length whose bytes depend on where they stand. Returns {name: sha256}."""
    block = random.Random(1).randbytes((1 << 20) + 7)  # no power of two: no repeat is aligned
    sums = {}
    for name, n_bytes in FILES.items():
        data = (block * (n_bytes // len(block) + 1))[:n_bytes]
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
        sums[name] = hashlib.sha256(data).hexdigest()
    os.mkdir(os.path.join(folder, "folder"))
    with open(os.path.join(folder, "index.html"), "w") as f:
        f.write("<title>nightjar</title>\n")
    return sums


class ServerCase(unittest.TestCase):
    link = "tap"
    program = "nightjar"
    lcores = 2
    vlan = None
    options = ()
    policy = None  # the text of a policy file to start with
    ipv6 = False  # of the clients
    idle_seconds = 10  # within which everything a test used must be free again

    @classmethod
    def setUpClass(cls):
        cls.world = World(cls.link, lcores=cls.lcores, options=cls.options, ipv6=cls.ipv6,
                          vlan=cls.vlan, program=cls.program)
        cls.addClassCleanup(cls.world.close)
        cls.root = os.path.join(cls.world.scratch, "site")
        os.mkdir(cls.root)
        cls.sums = fill_site(cls.root)
        cls.world.root = cls.root
        cls.policy_path = os.path.join(cls.world.scratch, "policy.conf")
        if cls.policy is not None:
            cls.write_policy(cls.policy)
            cls.world.options += ["--config", cls.policy_path]
        cls.prepare()
        cls.world.make_namespaces()
        cls.world.start()
        cls.server = cls.world.server
        cls.world.client("ping", "-c1", "-W5", "198.18.0.2")  # ARP is known from here on
        cls.idle = cls.held_at_rest()

    @classmethod
    def prepare(cls):
        """What a class needs before the server starts."""

    @classmethod
    def write_policy(cls, text):
        with open(cls.policy_path, "w") as f:
            f.write(text)

    def limits(self, params=""):
        return self.server.telemetry("/nightjar/limits" + params)

    def read_policy(self, text):
        """Another policy file, by SIGHUP."""
        self.write_policy(text)
        self.server.signal(signal.SIGHUP)

    def change_policy(self, text):
        """The same, and the limits once it is in force."""
        version = self.limits()["version"]
        self.read_policy(text)
        return until("another policy",
                     lambda: (now := self.limits())["version"] > version and now)

    @classmethod
    def tearDownClass(cls):
        status = cls.world.stop()
        if status:
            raise Failed(f"the server's exit status was {status} after SIGTERM\n"
                         f"{cls.world.errors()}")

    def setUp(self):
        if self.server.process.poll() is not None:
            self.fail(f"the server is dead: {self.server.process.returncode}\n"
                      f"{self.world.errors()}")
        self.before = self.server.stats()

    def tearDown(self):
        if self.server.process.poll() is not None:
            self.fail(f"the server died: {self.server.process.returncode}\n{self.world.errors()}")
        try:
            until("nothing in use", lambda: self.held() == self.idle, self.idle_seconds)
        except Failed:
            first = self.server.shards()
            last = self.server.shards()
            turns = [b["loops_idle"] - a["loops_idle"] for a, b in zip(first, last)]
            self.fail(f"leaked: in use when idle {self.idle}, now {held_of(last)}\n"
                      f"each lcore's steps between two glances: {turns}\n{self.world.errors()}")

    @classmethod
    def held(cls):
        return held_of(cls.server.shards())

    @classmethod
    def held_at_rest(cls):
        """
        What is held when nothing is under way. A shard that the kernel keeps from running has a
        packet in its hands or in its ring, and a later glance finds one buffer less. So two glances
        have to agree, between which each shard looked for packets and found none.
        """
        first = None

        def at_rest():
            nonlocal first
            last = cls.server.shards()
            if not first or moved(first, last):
                first = last
            return all(b["loops_idle"] - a["loops_idle"] >= IDLE_STEPS
                       for a, b in zip(first, last)) and held_of(last)
        return until("every shard at rest", at_rest)

    def client(self, kind=None, source=None):
        """A client of HTTP/2, closed after the test. `kind`: its class; None: h2client.Client."""
        from tests.netlab.h2client import Client  # of python3-h2, which tests/nic does without
        client = (kind or Client)(self.world.connect(source=source))
        self.addCleanup(client.close)
        return client

    def counted(self, name):
        """How far a counter got since the test began."""
        return self.server.stats()[name] - self.before[name]

    def curl(self, *args, **more):
        done = self.world.client("curl", "-sS", "--http2-prior-knowledge", *args, **more)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout
