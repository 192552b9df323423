# SPDX-License-Identifier: BSD-3-Clause
"""
A server on one CPU and nightjar-load on another, connected by one of two links without the kernel:

  memif   both ends are net_memif; packets of the MTU, checksums by software
  virtio  the server has net_virtio_user, as in a virtual machine, the generator is its host
          (net_vhost): packets have no checksums, and 64 KiB are one segment (TSO)

The host copies each packet on its own CPU, in both directions. Over memif each end copies the
packets that it receives. With hugepages the generator shares its buffers; then the server copies
in both directions and the generator in none.
"""
import os
import time

from tests.netlab import generator
from tests.netlab.priority import FIRST, first_of
from tests.netlab.world import Failed, until

FILES = {"128": 128, "200KiB": 200 << 10, "10MiB": 10 << 20}
ADDRESSES = ["198.18.0.1", *(f"198.18.0.{i}" for i in range(5, 8))]  # of 32,768 connections each
SHAPES = {
    "1x1": ("/128", ["-c", 1, "-m", 1]),
    "1x100": ("/128", ["-c", 1, "-m", 100]),
    "16x32": ("/128", ["-c", 16, "-m", 32]),
    "half": ("/128", ["-c", 16, "-m", 32]),  # at a rate that the caller passes
    "1000x1": ("/128", ["-c", 1000, "-m", 1]),
    "100kx1": ("/128", ["-c", 100_000, "-m", 1, "--in-flight", 1000]),
    "100k": ("/128", ["-c", 100_000, "-m", 1, "-r", 50_000]),
    "200KiB": ("/200KiB", ["-c", 16, "-m", 4]),
    "10MiB": ("/10MiB", ["-c", 8, "-m", 1]),
}
CROWDS = ("100kx1", "100k")  # each needs a server of its own; the bench also measures its memory
STAGES = ("rx", "tcp", "h2", "handler", "tx")
LINKS = ("memif", "virtio")
OPEN_SECONDS, WARM_SECONDS, SPARE_SECONDS = 90, 1.0, 60


def cpus():
    """(the generator's CPU, the server's CPU)"""
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < 2:
        raise Failed("the server and the generator need a CPU each, and there is only one CPU")
    return mine[0], mine[-1]


def device(link, role, socket, huge):
    """The EAL argument of the device. vhost passes large segments on, each in one buffer, because
    the stack does not accept packets in several buffers."""
    if link == "memif":
        copies = ",zero-copy=yes" if huge and role == "client" else ""
        return f"--vdev=net_memif0,role={role},socket={socket},socket-abstract=no{copies}"
    if role == "server":
        return f"--vdev=virtio_user0,path={socket},queue_size=1024"
    return f"--vdev=net_vhost0,iface={socket},tso=1,linear-buffer=1,ext-buffer=1"


def listens(world, socket):
    """Whether a process listens on the socket. The socket's file exists before that."""
    return socket in world.run_in(world.server_ns, "ss", "-xlH").stdout


class Pair(generator.Pair):
    """`memory` is a hugepages.Memory. Over virtio a Pair serves one run: the host must start before
    the guest and end with it. The same applies to the shapes of CROWDS."""
    # As the server: beside its polling lcore, which has the lowest nice value, a thread of the
    # generator with an ordinary one may not run for a minute.
    priority = FIRST

    def __init__(self, link="memif", memory=None, tls=False):
        self.kind, self.huge = link, memory is not None and memory.huge
        eal = memory.eal if memory else generator.NO_HUGEPAGES
        super().__init__(lcores=f"0@{cpus()[1]}", memory=eal, options=[
            "--busy-poll", "--max-connections", "131072", "--preface-timeout", "10m",
            "--idle-timeout", "10m"])
        if tls:
            self.serve_tls()
        self.root = os.path.join(self.scratch, "site")
        os.mkdir(self.root)
        for name, n_bytes in FILES.items():
            with open(os.path.join(self.root, name), "wb") as f:
                f.write(os.urandom(n_bytes))

    def __enter__(self):
        try:
            self.make_namespaces()
            if self.kind != "virtio":
                self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        """Kills the server: an orderly end is not necessary for the remaining connections."""
        if self.server:
            self.server.process.kill()
            self.server.process.wait()
        self.close()

    def device(self, role):
        return device(self.kind, role, self.socket(), self.huge)

    def socket(self):
        return f"{self.scratch}/link"

    def start(self):
        super().start()
        first_of(self.server_ns)

    def start_load(self, *options, urls):
        """Starts the generator. Over virtio it also starts the server, after the generator."""
        process = self.load_popen("-q", *options, urls=urls, lcores=f"0@{cpus()[0]}",
                                  addresses=ADDRESSES)
        if self.kind != "virtio":
            return process
        self.reaper.will_make("prefix", self.prefix)
        try:
            until("the generator listens for the server",
                  lambda: listens(self, self.socket()) or process.poll() is not None)
            if process.poll() is not None:
                generator.finish(process, 1)
            self.start()
        except BaseException:
            process.kill()
            process.communicate()
            raise
        return process

    def look(self):
        return {**self.server.telemetry("/nightjar/stages"), "at": time.monotonic(),
                "body_bytes": self.server.stats()["body_bytes"]}

    def nonzero(self):
        """The server's counters that are not 0, for a message."""
        return {name: n for name, n in self.server.stats().items() if n}

    def all_open(self, process, n):
        """Whether n connections are open and have had a request each. Raises the generator's error
        if it has ended."""
        if process.poll() is not None:
            generator.finish(process, 1)
            raise Failed("nightjar-load ended too early")
        stats = self.server.stats()
        return stats["connections"] == n and stats["requests"] - self.asked_before >= n

    def measure(self, shape, seconds, *more):
        """Measures an interval in which all connections are open, have had a request and stay open.
        The generator's interval has `seconds`. The server's begins 2 s earlier and ends slightly
        later: reading its counters takes time of these CPUs, which must not affect the latencies.
        `more` are further options of nightjar-load."""
        url, options = SHAPES[shape]
        connections = options[options.index("-c") + 1]
        if self.server:
            until("the connections of the run before have ended",
                  lambda: not self.server.stats()["connections"])
        self.asked_before = self.server.stats()["requests"] if self.server else 0
        memory = self.memory()["anonymous"] if self.server else 0
        process = self.start_load(
            *options, *more, "-w", f"{3 * WARM_SECONDS}s", "-d", f"{seconds + SPARE_SECONDS}s",
            "--timeout", "60s", urls=[url])
        try:
            until(lambda: f"{connections:,} connections, and a request over each; the server has "
                  f"{self.nonzero()}",
                  lambda: self.all_open(process, connections), OPEN_SECONDS)
            time.sleep(WARM_SECONDS)
            grown = self.memory()["anonymous"] - memory
            before = self.look()
            time.sleep(2 * WARM_SECONDS + seconds)
            process.terminate()  # it then reports its values; no connection ended before
            after = self.look()
            found = generator.finish(process, 120)
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
        lost = {name: found["in_all"][name] for name in ("reset", "timeout", "lost", "broken")}
        if any(lost.values()) or found["in_all"]["status_2"] != found["in_all"]["done"]:
            raise Failed(f"not all requests were answered: {found['in_all']}")
        return figures(found, before, after, FILES[url[1:]],
                       grown / connections if shape in CROWDS and memory else None)


def figures(found, before, after, file_bytes, connection_bytes):
    d = {name: after[name] - before[name] for name in before if name != "tsc_hz"}
    hz = after["tsc_hz"]
    n = d["body_bytes"] / file_bytes  # requests; the completed part of long ones
    if not n:
        raise Failed("nothing was served")
    measured = sum(d[stage] for stage in STAGES)
    cost, latency = d["cycles_busy"] / n, found["latency_ns"]
    busy = d["cycles_busy"] / (d["cycles_busy"] + d["cycles_idle"])
    values = {"rate": n / d["at"], "full": hz / cost, "ns": cost / hz * 1e9, "cycles": cost,
              **{stage: cost * d[stage] / measured / hz * 1e9 if measured else None
                 for stage in STAGES},
              "busy": busy, "idle": 1 - busy, "steps": d["loops_busy"] / n,
              "rx_packets": d["rx_packets"] / n, "tx_packets": d["tx_packets"] / n,
              "bytes_full": file_bytes * hz / cost, "bytes": d["body_bytes"] / d["at"],
              "connection_bytes": connection_bytes,
              "client_busy": found["client_busy"], "p50": latency["p50"], "p99": latency["p99"],
              "p99.9": latency["p99.9"],
              "spread": latency["p99.9"] / latency["p50"] if latency["p50"] else None}
    return {name: value for name, value in values.items() if value is not None}
