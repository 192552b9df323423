# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench echo [--hugepages] [--rounds N] [--seconds S] [--json FILE] [LINK/BYTES ...]

Packet rate of a core on these devices. DPDK's testpmd in place of the server swaps MAC addresses
and returns each frame (macswap), while another testpmd on the generator's CPU sends at full rate
and drops returned frames (flowgen). Corresponding runs of bench serve alternate with it; the table
shows their rate as a share of the echo's.

  memif/80       the frame of a small request, compared with 1000x1 (one packet per request)
  memif/243      the frame of its response, which is larger, compared with 1000x1
  memif/1514     full frames: bytes per second, compared with 10MiB
  virtio/1514    the same over virtio
  virtio/65226   the largest segment of TSO, compared with 10MiB over virtio

Rates are those of a core at full load: packets divided by the cycles of polls that returned
packets, as testpmd counts them, like those of bench serve. If the echo is often idle, the generator
was the limit; then its bursts are smaller and cost more, and the share is too high. An echo
transfers each byte in both directions, a response only in one. Over memif each direction is a copy;
over virtio the host makes both copies, and the echo none.
"""
import argparse
import re
import shutil
import statistics
import subprocess
import sys
import time

from perf.bench import record
from perf.bench.apart import near, summary
from perf.bench.hugepages import Memory
from perf.bench.pair import Pair, cpus, device, listens
from tests.netlab.priority import first_of
from tests.netlab.world import Failed, Server, World, until

TESTPMD = "dpdk-testpmd"
PACKET, BYTES = "packet", "bytes"  # the values compared
FRAMES = {  # (link, bytes): the shape to compare with, and the value
    ("memif", 80): ("1000x1", PACKET),
    ("memif", 243): ("1000x1", PACKET),
    ("memif", 1514): ("10MiB", BYTES),
    ("virtio", 1514): ("10MiB", BYTES),
    ("virtio", 65226): ("10MiB", BYTES),
}
LARGE = 2048  # above, the sender needs buffers of the frame's size, and few of them
LARGE_MBUF, LARGE_MBUFS, MBUFS = 65535, 1536, 16384
IDLE_LIMITS = 0.1  # of the echo: above, the generator was the limit
CYCLES = re.compile(r"\(total cycles=(\d+) / total \S+ packets=(\d+)\) at (\d+) MHz")


class Testpmd:
    """A testpmd that forwards on a CPU of its own; its main thread waits for commands."""

    def __init__(self, world, name, link_device, cpu, memory, options):
        self.log_path = f"{world.scratch}/{name}"
        self.prefix = world.name + name
        world.reaper.will_make("prefix", self.prefix)
        with open(self.log_path, "w", encoding="ascii") as log:
            self.process = world.client_popen(
                "stdbuf", "-oL", TESTPMD, "--no-pci", "--no-shconf", *memory.eal, link_device,
                "--lcores", f"0@{cpus()[0]},1@{cpu}", "--file-prefix", self.prefix, "--", "-i",
                "--nb-cores=1", "--rxd=1024", "--txd=1024", "--no-flush-rx", *options,
                stdin=subprocess.PIPE, stdout=log, stderr=log, text=True,
                start_new_session=True)

    def log(self):
        with open(self.log_path, errors="replace", encoding="utf-8") as f:
            return f.read()

    def tell(self, command):
        if self.process.poll() is not None:
            raise Failed(f"{TESTPMD} ended: {self.log()[-800:]}")
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def ready(self):
        """Waits until testpmd has reported its port; it reads commands from then on."""
        until(lambda: f"{TESTPMD} is ready: {self.log()[-800:]}",
              lambda: self.process.poll() is not None or "Done\n" in self.log())
        self.tell("start")

    def telemetry(self, command):
        return Server.telemetry(self, command)

    def look(self):
        """(cycles and packets of the polls that returned packets, Hz, time)"""
        n = len(CYCLES.findall(self.log()))
        self.tell("show fwd stats all")
        until("it prints its cycles", lambda: len(CYCLES.findall(self.log())) > n)
        cycles, packets, mhz = map(int, CYCLES.findall(self.log())[-1])
        return cycles, packets, mhz * 1e6, time.monotonic()


class Echo(World):
    def __init__(self, link, n_bytes, memory):
        super().__init__("null", lcores=1)
        self.kind, self.n_bytes, self.memory = link, n_bytes, memory
        self.ends = []

    def start(self):
        socket = f"{self.scratch}/link"
        ends = {"server": lambda: self.end(
            "e", device(self.kind, "server", socket, self.memory.huge), cpus()[1],
            self.memory, ["--forward-mode=macswap", "--record-core-cycles",
                          f"--total-num-mbufs={MBUFS}"]), "client": lambda: self.sender(socket)}
        # A memif's server and a virtio's host make the socket.
        order = ("client", "server") if self.kind == "virtio" else ("server", "client")
        first = ends[order[0]]()
        until(lambda: f"{TESTPMD} listens: {first.log()[-800:]}",
              lambda: listens(self, socket) or first.process.poll() is not None)
        second = ends[order[1]]()
        first.ready()
        second.ready()
        self.echo = first if order[0] == "server" else second
        first_of(self.server_ns)

    def end(self, *args):
        self.ends.append(Testpmd(self, *args))
        return self.ends[-1]

    def close(self):
        """Both processes have priority over all others on both CPUs, also over the reaper."""
        for one in self.ends:
            one.process.kill()
            one.process.communicate()
        super().close()

    def sender(self, socket):
        large = self.n_bytes > LARGE
        return self.end(
            "c", device(self.kind, "client", socket, self.memory.huge), cpus()[0],
            self.memory, [
                *([f"--mbuf-size={LARGE_MBUF}", "--mbcache=32"] if large else []),
                "--forward-mode=flowgen", f"--txpkts={self.n_bytes}",  # it looks at what is before
                f"--total-num-mbufs={LARGE_MBUFS if large else MBUFS}"])

    def measure(self, seconds):
        until(lambda: f"packets come back: {self.echo.log()[-800:]}",
              lambda: self.echo.telemetry("/ethdev/stats,0")["opackets"] > 1000)
        time.sleep(0.3)
        before, sent = self.echo.look(), self.echo.telemetry("/ethdev/stats,0")
        time.sleep(seconds)
        after, sent_now = self.echo.look(), self.echo.telemetry("/ethdev/stats,0")
        cycles, packets, passed = (after[i] - before[i] for i in (0, 1, 3))
        gone = sent_now["opackets"] - sent["opackets"]
        if packets <= 0 or cycles <= 0 or gone <= 0:
            raise Failed(f"the echo returns no packets: {self.echo.log()[-800:]}")
        bytes_each = (sent_now["obytes"] - sent["obytes"]) / gone
        if abs(bytes_each - self.n_bytes) > 0.02 * self.n_bytes + 4:  # some drivers count the CRC
            raise Failed(f"frames of {bytes_each:.0f} bytes came back, not of {self.n_bytes}")
        full = packets * after[2] / cycles
        return {"rate": packets / passed, "full": full, "cycles": cycles / packets,
                "bytes_full": full * self.n_bytes, "idle": max(0, 1 - cycles / after[2] / passed),
                "sent_back": min(1, gone / packets)}


def median(runs, name):
    return statistics.median(run[name] for run in runs)


class Bench:
    def __init__(self, memory, seconds, frames):
        self.memory, self.seconds, self.frames = memory, seconds, frames
        self.echoes = {frame: [] for frame in frames}
        self.serves = {}  # by (link, shape)

    def round(self, progress):
        for link, n_bytes in self.frames:
            progress(f"{link}, frames of {n_bytes} bytes")
            with Echo(link, n_bytes, self.memory) as echo:
                self.echoes[link, n_bytes].append(near(lambda: echo.measure(self.seconds)))
        for link, shape in dict.fromkeys((frame[0], FRAMES[frame][0]) for frame in self.frames):
            progress(f"{shape} over {link}")
            self.serves.setdefault((link, shape), []).append(
                near(lambda: self.serve(link, shape)))

    def serve(self, link, shape):
        with Pair(link, self.memory) as pair:
            return pair.measure(shape, self.seconds)

    def share(self, frame):
        """serve's rate as a share of the echo's, by medians at full load."""
        shape, by = FRAMES[frame]
        name = "full" if by == PACKET else "bytes_full"
        return median(self.serves[frame[0], shape], name) / median(self.echoes[frame], name)


def table(bench):
    print(f"\n{'':<16}{'echo at full load':>24}{'cycles/':>10}{'echo':>7}  "
          f"{'serve at full load':<32}{'share':>6}")
    print(f"{'frame':<16}{'Mpps':>12}{'GB/s':>12}{'packet':>10}{'idle':>7}")
    for frame, runs in bench.echoes.items():
        shape, by = FRAMES[frame]
        serve = bench.serves[frame[0], shape]
        told = (f"{shape}: {median(serve, 'full') / 1e6:.3f} M requests/s" if by == PACKET else
                f"{shape}: {median(serve, 'bytes_full') / 1e9:.2f} GB/s")
        idle = median(runs, "idle")
        print(f"{frame[0] + '/' + str(frame[1]):<16}{median(runs, 'full') / 1e6:>12.3f}"
              f"{median(runs, 'bytes_full') / 1e9:>12.2f}{median(runs, 'cycles'):>10,.0f}"
              f"{idle * 100:>6.0f}%  {told:<32}{bench.share(frame):>6.2f}"
              + ("  the generator was the limit" if idle > IDLE_LIMITS else ""))
    print("\ncycles per packet, min to max: " + ", ".join(
        f"{link}/{n} {min(r['cycles'] for r in runs):,.0f} to {max(r['cycles'] for r in runs):,.0f}"
        for (link, n), runs in bench.echoes.items()))
    print(summary([*bench.echoes.values(), *bench.serves.values()]))


def arguments():
    known = {f"{link}/{n}": (link, n) for link, n in FRAMES}
    parser = argparse.ArgumentParser(prog="./dev bench echo", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hugepages", action="store_true",
                        help="reserve them for the run where too few are free")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="of each run [1.5]")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("frames", nargs="*", metavar="LINK/BYTES", default=list(known))
    args = parser.parse_args()
    record.check_names(parser, args.frames, known, "frame")
    if args.rounds < 1 or not 0.1 <= args.seconds <= 600:
        parser.error("at least one round; from 0.1 to 600 seconds")
    args.frames = [known[frame] for frame in dict.fromkeys(args.frames)]
    return args


def main():
    args = arguments()
    if not shutil.which(TESTPMD):
        raise Failed(f"no {TESTPMD}: it is in Debian's package dpdk-dev")
    run = record.begin("echo")
    print(record.headline(run.facts))
    with Memory(args.hugepages) as memory:
        print(memory.text)
        bench = Bench(memory, args.seconds, args.frames)
        with record.Rounds(args.rounds) as rounds:
            for i in rounds:
                bench.round(lambda what: print(f"\rround {i + 1} of {args.rounds}, {what}\033[K",
                                               end="", file=sys.stderr, flush=True))
        print("\r\033[K", end="", file=sys.stderr)
    if args.json:
        for frame, runs in bench.echoes.items():
            shape, by = FRAMES[frame]
            run.row(str(frame[1]), runs, peer="testpmd macswap", link=frame[0], beside=shape,
                    by=by, share=round(bench.share(frame), 4),
                    generator_limit=median(runs, "idle") > IDLE_LIMITS)
        for (link, shape), runs in bench.serves.items():
            run.row(shape, runs, link=link)
        run.write(args.json, **rounds.facts(), seconds=args.seconds, memory=memory.facts())
    table(bench)
    sys.exit(rounds.status)


if __name__ == "__main__":
    record.run_main("bench echo", main, Failed)
