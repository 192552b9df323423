# SPDX-License-Identifier: BSD-3-Clause
"""
The base class of end-to-end tests. Each subclass starts a server. After each test tearDown() checks
for leaks: the server must have as many objects in use as when it was idle before the tests.
"""
import hashlib
import os
import random
import signal
import unittest

from tests.netlab.world import Failed, World, until

# Gauges of a shard that are checked for leaks. `time_wait` is not among them: such a connection
# ends by its timer, and has no other object.
HELD = ("connections", "tls_handshakes_open", "h2_connections", "h2_bytes", "file_jobs",
        "exchanges", "tx_queued", "rx_mbufs_used", "tx_mbufs_used")
IDLE_STEPS = 2  # the first step may have begun before the first sample
FILES = {"empty": 0, "one": 1, "16KiB-1": (16 << 10) - 1, "200KiB": 200 << 10, "10MiB": 10 << 20}
GIB = 1 << 30


def counter_kinds():
    """{counter name: kind} from lib/telem/counters_*.def."""
    import glob
    import re
    from tests.netlab.world import REPO
    found = {}
    for path in glob.glob(os.path.join(REPO, "lib/telem/counters_*.def")):
        with open(path) as f:
            found |= {name: kind for kind, name in
                      re.findall(r"^NJ_COUNTER\((\w+),\s*(\w+),", f.read(), re.M)}
    return found


def held_of(shards):
    return [{name: shard[name] for name in HELD} for shard in shards]


def has_worked(first, last):
    """Did a shard have work between two samples?"""
    return (held_of(first) != held_of(last) or
            any(a["loops_busy"] != b["loops_busy"] for a, b in zip(first, last)))


def fill_site(folder):
    """Writes files of known lengths whose bytes depend on the offset. Returns {name: sha256}."""
    block = random.Random(1).randbytes((1 << 20) + 7)  # no power of two: repeats are not aligned
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
    policy = None  # text of the policy file at the start
    ipv6 = False  # for clients

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
        cls.world.client("ping", "-c1", "-W5", "198.18.0.2")  # ARP learns the MAC addresses
        cls.idle = cls.held_at_rest()

    @classmethod
    def prepare(cls):
        """Called before the server starts. Subclasses override it."""

    @classmethod
    def write_policy(cls, text):
        with open(cls.policy_path, "w") as f:
            f.write(text)

    def limits(self, params=""):
        return self.server.telemetry("/nightjar/limits" + params)

    def read_policy(self, text):
        """Writes the policy file and sends SIGHUP."""
        self.write_policy(text)
        self.server.signal(signal.SIGHUP)

    def change_policy(self, text):
        """The same; waits until the policy is in force, and returns the limits."""
        version = self.limits()["version"]
        self.read_policy(text)
        return until("the policy is in force",
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
        self.doCleanups()  # closes clients: an open connection would be a leak
        if self.server.process.poll() is not None:
            self.fail(f"the server died: {self.server.process.returncode}\n{self.world.errors()}")
        try:
            until("nothing in use", lambda: self.held() == self.idle)
        except Failed:
            first = self.server.shards()
            last = self.server.shards()
            steps = [b["loops_idle"] - a["loops_idle"] for a, b in zip(first, last)]
            self.fail(f"leak: in use when idle {self.idle}, now {held_of(last)}\n"
                      f"idle steps between two samples, per lcore: {steps}\n"
                      f"{self.world.errors()}")

    @classmethod
    def held(cls):
        return held_of(cls.server.shards())

    @classmethod
    def held_at_rest(cls):
        """
        The objects in use while the server is idle. A shard that the kernel does not schedule may
        still have a packet, and a later sample has one buffer less. Therefore two samples must be
        equal, and each shard must have made idle steps, and no others, between them.
        """
        first = None

        def at_rest():
            nonlocal first
            last = cls.server.shards()
            if not first or has_worked(first, last):
                first = last
            return all(b["loops_idle"] - a["loops_idle"] >= IDLE_STEPS
                       for a, b in zip(first, last)) and held_of(last)
        return until("all shards are idle", at_rest)

    def client(self, kind=None, source=None):
        """An HTTP/2 client, closed after the test. `kind`: its class; None: h2client.Client."""
        from tests.netlab.h2client import Client  # imports python3-h2; tests/nic does not need it
        client = (kind or Client)(self.world.connect(source=source))
        self.addCleanup(client.close)
        return client

    def counted(self, name):
        """The increase of a counter since the start of the test."""
        return self.server.stats()[name] - self.before[name]

    def wait_for_log(self):
        """Waits until each request so far has its line in the access log."""
        def written():
            stats = self.server.stats()
            return stats["access_written"] + stats["access_lost"] == stats["requests"]
        until("all requests are logged", written)

    def curl(self, *args, **more):
        done = self.world.client("curl", "-sS", "--http2-prior-knowledge", *args, **more)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout
