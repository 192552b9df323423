# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench pages [--quick] [--pages 100] [--rounds 40] [--seconds 3] [--json FILE]

What live pages cost the datapath: the CPU time per request of the lcore (of steps that found work,
by its own cycle counters) under h2load, with 100 subscribers of the events at the Unix socket and
without. Both alternate within each round, in changing order, on one server. The ratio of each round
is taken; their mean has a 95 % interval (of t). Bound: its upper end is at most 3 % more.
"""
import argparse
import contextlib
import math
import os
import selectors
import statistics
import tempfile
import threading

from perf.bench import record
from perf.bench.h2load import tsc_hz
from tests.netlab import management
from tests.netlab.world import Failed, World, until

MORE_MAX = 0.03
STATES_MIN = 5  # each page gets one in so many seconds at least; one per second on a free machine
SHAPE, BYTES = ("-c", "16", "-m", "32"), 128
EVENTS = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Pages:
    """Subscribers that take all that comes. A context manager."""

    def __init__(self, world, n):
        self.selector, self.stop = selectors.DefaultSelector(), os.pipe()
        self.n_states = 0
        self.sockets = [management.connect(world.management) for _ in range(n)]
        self.selector.register(self.stop[0], selectors.EVENT_READ)
        for s in self.sockets:
            s.sendall(EVENTS)
            self.selector.register(s, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.take)

    def take(self):
        while True:
            for key, _ in self.selector.select():
                if key.fileobj == self.stop[0]:
                    return
                data = key.fileobj.recv(1 << 20)
                if not data:
                    raise Failed("the server has closed a connection of events")
                self.n_states += data.count(b"event: state")

    def __enter__(self):
        self.thread.start()
        until("each page has a state", lambda: self.n_states >= len(self.sockets))
        return self

    def __exit__(self, *_):
        os.write(self.stop[1], b"x")
        self.thread.join()
        for s in self.sockets:
            s.close()
        self.selector.close()
        for fd in self.stop:
            os.close(fd)


def cost(world, hz, seconds, n_pages):
    """Busy microseconds per request."""
    with Pages(world, n_pages) if n_pages else contextlib.nullcontext() as pages:
        before = world.server.stats()
        n_states = pages.n_states if pages else 0
        done = world.client("h2load", *SHAPE, "-D", str(seconds), world.url("/file"),
                            seconds=60 + seconds)
        after = world.server.stats()
        if pages and pages.n_states < n_states + n_pages * seconds / STATES_MIN:
            raise Failed(f"{pages.n_states - n_states} states for {n_pages} pages in {seconds} s: "
                         "other programs use the CPUs")
    if done.returncode != 0 or after["requests"] == before["requests"]:
        raise Failed(done.stdout + done.stderr)
    busy = after["cycles_busy"] - before["cycles_busy"]
    return busy / hz * 1e6 / (after["requests"] - before["requests"])


def t_quantile(n):
    """Of 97.5 %, for n - 1 degrees of freedom: Cornish-Fisher, within 1 % from n = 5 on."""
    z, v = statistics.NormalDist().inv_cdf(0.975), n - 1
    return z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)


def judge(rounds):
    """Prints the costs and the ratio. Returns whether the bound is kept."""
    ratios = [r["pages"] / r["none"] - 1 for r in rounds]
    mean = statistics.mean(ratios)
    half = t_quantile(len(ratios)) * statistics.stdev(ratios) / math.sqrt(len(ratios))
    for name in "none", "pages":
        print(f"{name:<6} {statistics.median(r[name] for r in rounds):.3f} us per request")
    print(f"more with pages: {100 * mean:+.2f} %, 95 % interval {100 * (mean - half):+.2f} to "
          f"{100 * (mean + half):+.2f} %, of {len(rounds)} rounds (target: at most "
          f"{100 * MORE_MAX:.0f} %)")
    return mean + half <= MORE_MAX


def measure(args):
    with tempfile.TemporaryDirectory(prefix="nj-bench-") as root:
        os.chmod(root, 0o755)
        with open(os.path.join(root, "file"), "wb") as f:
            f.write(os.urandom(BYTES))
        with World("veth", lcores=1, root=root) as world:
            hz = tsc_hz(world)
            cost(world, hz, 1, 0)  # warm
            rounds = []
            for i in range(args.rounds):
                names = ["none", "pages"][::1 if i % 2 == 0 else -1]
                rounds.append({name: cost(world, hz, args.seconds,
                                          args.pages if name == "pages" else 0) for name in names})
    return rounds


def main():
    parser = argparse.ArgumentParser(prog="./dev bench pages", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="5 rounds of 2 s")
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.seconds = 5, 2
    if args.rounds < 5 or args.seconds < 1 or not 0 < args.pages <= 128:
        parser.error("expected at least 5 rounds and 1 second, and at most 128 pages")
    told = record.begin("pages")
    print(record.headline(told.facts))
    rounds = measure(args)
    if args.json:
        told.row("16x32/128", rounds, link="veth")
        told.write(args.json, rounds=args.rounds, seconds=args.seconds, pages=args.pages)
    return 0 if judge(rounds) else 1


if __name__ == "__main__":
    record.run_main("bench pages", main, Failed)
