# SPDX-License-Identifier: BSD-3-Clause
"""
The servers that ./dev bench peers compares, and the values of one measurement:

    rate       requests per second
    ns         CPU time of the server per request: the value compared
    device_ns  of nightjar: the part of ns in the transmit function of its device
    busy_ns    of a peer: time per request in which its CPU was not idle
    full       requests per second of the server's core
    bytes, bytes_full     the same of the bodies' bytes
    busy, client_busy     shares of the two CPUs
    p50, p99   latency in nanoseconds
"""
import contextlib
import os
import re
import signal
import time

from perf.bench import serve
from perf.bench.lab import cpus
from perf.bench.pair import FILES, STAGES
from perf.bench.peers_worlds import KERNEL_PEERS, Nightjar, connections_of, cpu_seconds, family
from tests.netlab.priority import FIRST
from tests.netlab.world import Failed, until

LATENCY_SECONDS = 0.3
TICK = os.sysconf("SC_CLK_TCK")
VETH, VETH_TSO, MEMIF = "veth", "veth+tso", "memif"
TLS, HTTP1 = "+tls", "+http1"  # these are appended


def idle_seconds(cpu):
    """Seconds in which a CPU was idle, or stolen by the host. A kernel with a dynamic tick measures
    them in nanoseconds and reports hundredths of a second."""
    with open("/proc/stat") as f:
        fields = next(line.split() for line in f if line.startswith(f"cpu{cpu} "))
    return sum(int(fields[i]) for i in (4, 5, 8)) / TICK  # idle, iowait, steal


class Contender:
    """A server that is stopped except during its turn. `stack` ends it."""
    name, link = "", VETH

    def __init__(self, stack, world):
        self.world = world
        stack.enter_context(world)
        stack.callback(self.let_go)  # called first: a stopped server cannot end
        self.signal(signal.SIGSTOP)

    def signal(self, number):
        for pid in family(self.world.server.process.pid):
            os.kill(pid, number)

    def let_go(self):
        with contextlib.suppress(OSError):  # it has ended already
            self.signal(signal.SIGCONT)

    def awake(self):
        """True when the counters from now on cover only this turn."""
        return True

    def turn(self, work, *args):
        self.signal(signal.SIGCONT)
        try:
            until("it runs again", self.awake)
            return work(*args)
        finally:
            with contextlib.suppress(OSError):  # it has ended, which the work has reported
                self.signal(signal.SIGSTOP)

    def links(self, _bulk):
        return [self.link]

    def run(self, shape, link, seconds):
        return self.turn(self.measure, shape, link, seconds)

    def warm(self, shape, seconds):
        self.turn(self.measure, shape, self.link, seconds)


class Nightjars(Contender):
    name = "nightjar"

    def awake(self):
        """The lcore's step during the stop has ended and counted the stopped time as idle."""
        idle = lambda: self.world.server.stats()["cycles_idle"]  # noqa: E731
        was = idle()
        return until("its lcore runs again", lambda: idle() != was)


class OverVeth(Nightjars):
    """nightjar over veth, loaded with h2load."""

    def __init__(self, stack, root, tls=False, http1=False):
        self.tls, self.http1 = tls, http1
        self.variant = TLS if tls else HTTP1 if http1 else ""
        self.link += self.variant
        super().__init__(stack, self.make(root))

    def make(self, root):
        return Nightjar(root=root, tls=self.tls)

    # --- overridden for peers -------------------------------------------------------------------

    def connections(self):
        return self.world.server.stats()["connections"]

    def look(self):
        return self.world.server.telemetry("/nightjar/stages")

    @staticmethod
    def cost(before, after, _passed, _not_idle):
        """{"cpu": seconds, "busy": share of the server's CPU, "device": share of the CPU time that
        went into the device's transmit function: system calls here}"""
        d = {name: after[name] - before[name] for name in after}
        measured = sum(d[stage] for stage in STAGES)
        return {"cpu": d["cycles_busy"] / after["tsc_hz"],
                "busy": d["cycles_busy"] / (d["cycles_busy"] + d["cycles_idle"]),
                "device": d["tx"] / measured if measured else 0}

    # --- common to nightjar and peers -----------------------------------------------------------

    def check(self):
        self.turn(self.compare)

    def compare(self):
        """Checks that the server returns each file unchanged, with its length."""
        for name, n_bytes in FILES.items():
            path = os.path.join(self.world.scratch, "got")
            done = self.world.client("curl", "-sS", "-f", "--max-time", "20",
                                     "-k" if self.tls else "--http1.1" if self.http1 else
                                     "--http2-prior-knowledge",
                                     "-D", "-", "-o", path,
                                     self.world.url("/" + name))
            with open(os.path.join(self.world.root, name), "rb") as wanted:
                same = done.returncode == 0 and open(path, "rb").read() == wanted.read()
            if not same or not re.search(rf"(?im)^content-length: {n_bytes}$", done.stdout):
                raise Failed(f"{self.name}: /{name} was altered: {done.stdout[-300:]} "
                             f"{done.stderr[-300:]}")

    def h2load(self, shape, seconds, *more):
        url, options = serve.SHAPES[shape]
        more += ("--h1",) if self.http1 else ()
        return self.world.client("taskset", "-c", str(cpus()[0]), "h2load", *map(str, options),
                                 "-D", f"{round(seconds * 1e3)}ms", *more, self.world.url(url),
                                 seconds=seconds + 20, **FIRST)

    def measure(self, shape, _link, seconds):
        before, began = self.look(), time.monotonic()
        idle = [idle_seconds(cpu) for cpu in cpus()]
        done = self.h2load(shape, seconds)
        passed = time.monotonic() - began
        idle = [min(passed, idle_seconds(cpu) - was) for cpu, was in zip(cpus(), idle)]
        until("the connections have ended", lambda: not self.connections(), 60)
        cost = self.cost(before, self.look(), passed, passed - idle[1])
        n_bytes, took = self.carried(shape, done)
        n = n_bytes / FILES[serve.SHAPES[shape][0][1:]]
        values = {"rate": n / took, "bytes": n_bytes / took, "ns": cost["cpu"] / n * 1e9,
                  "full": n / cost["cpu"], "bytes_full": n_bytes / cost["cpu"],
                  "busy": cost["busy"], "client_busy": 1 - idle[0] / passed}
        if "not_idle" in cost:
            values["busy_ns"] = cost["not_idle"] / n * 1e9
        if "device" in cost:
            values["device_ns"] = values["ns"] * cost["device"]
        return values

    def carried(self, shape, done):
        """(bytes of bodies, including downloads that were unfinished at the end, and seconds).
        h2load may run for longer than requested."""
        data = re.search(r"\((\d+)\) data", done.stdout)
        took = re.search(r"finished in ([\d.]+)(us|ms|s)", done.stdout)
        fine = " 0 failed, 0 errored, 0 timeout" in done.stdout
        if not fine or not took or not data or not int(data[1]):
            raise Failed(f"{self.name}, {shape}: h2load: {done.stdout[-600:]}{done.stderr[-300:]}")
        return int(data[1]), float(took[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1}[took[2]]

    def latency(self, shape):
        path = os.path.join(self.world.scratch, "log")
        with open(path, "w"):
            pass
        self.carried(shape, self.h2load(shape, LATENCY_SECONDS, f"--log-file={path}"))
        with open(path) as f:
            took = sorted(int(line.split()[2]) for line in f)
        until("the connections have ended", lambda: not self.connections(), 60)
        return {name: took[int(len(took) * share)] * 1e3
                for name, share in (("p50", 0.5), ("p99", 0.99))}

    def run(self, shape, link, seconds):
        values = super().run(shape, link, seconds)
        if serve.SHAPES[shape][0] == "/128":
            values |= self.turn(self.latency, shape)
        return values


class OverKernel(OverVeth):
    def __init__(self, stack, root, name, tls=False, http1=False):
        self.name = name
        super().__init__(stack, root, tls, http1)

    def make(self, root):
        return KERNEL_PEERS[self.name](root=root, tls=self.tls, http1=self.http1)

    awake = Contender.awake

    def links(self, bulk):
        links = (VETH, VETH_TSO) if bulk else (VETH,)
        return [link + self.variant for link in links]

    def connections(self):
        return connections_of(self.world.server.process.pid)

    def look(self):
        return cpu_seconds(self.world.server.process.pid)

    @staticmethod
    def cost(before, after, passed, not_idle):
        return {"cpu": after - before, "not_idle": not_idle, "busy": not_idle / passed}

    def measure(self, shape, link, seconds):
        if not link.startswith(VETH_TSO):
            return super().measure(shape, link, seconds)
        self.world.offloads(True)
        try:
            return super().measure(shape, link, seconds)
        finally:
            self.world.offloads(False)


class Memif(Nightjars):
    """nightjar and nightjar-load over memif, as in bench serve. One server speaks HTTP/2 and, if
    asked to, HTTP/1.1 in the next turn."""
    link = MEMIF
    VALUES = ("rate", "bytes", "ns", "full", "bytes_full", "client_busy", "p50", "p99")

    def __init__(self, stack, _root, tls=False, http1=False):
        self.http1 = http1
        if tls:
            self.link += TLS
        super().__init__(stack, serve.Pair(tls=tls))

    def links(self, _bulk):
        return [self.link, self.link + HTTP1] if self.http1 else [self.link]

    def check(self):
        """Not necessary: Pair fails if nightjar-load counts an incomplete response or status."""

    def warm(self, _shape, _seconds):
        """Not necessary: each run of nightjar-load has a warm-up."""

    def measure(self, shape, link, seconds):
        found = self.world.measure(shape, seconds, *(("--http1",) if HTTP1 in link else ()))
        return {name: found[name] for name in self.VALUES} | {
            "busy": found["rate"] * found["ns"] / 1e9}  # not before the generator starts, or after
