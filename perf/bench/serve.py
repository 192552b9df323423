# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench serve [--link memif|virtio] [--hugepages] [--rounds N] [--seconds S] [--json FILE]
                  [SHAPE ...]

A release build of the server on one CPU, nightjar-load on another, connected without the kernel:
CPU cost of a request on the server's lcore, by stage. The shapes alternate within each round; the
table has medians, and below them the spread of the cost.

  1x1 1x100 16x32 1000x1   connections x streams, a file of 128 bytes
  half                     16x32 in an open loop, at half the rate of a fully busy core. Each
                           request is sent at its due time and so in a packet of its own
  100kx1                   100,000 connections, 1,000 of which in turn have a request in flight
  100k                     100,000 connections, one of which in turn sends a request, 50,000 times
                           a second
  200KiB 10MiB             downloads: 16 connections of 4 streams; 8 of one

Without --link all shapes run over memif, and the downloads over virtio with TSO as well (pair.py).

Cost is the server's: cycles of its steps that found work, from its own counters, per request. The
stages are shares of the cost, measured in one step of 64. `at full load` is the inverse of the
cost: requests per second of a core without idle time. An lcore that is idle most of the time
receives packets in small bursts, so a lower load costs more per request. The generator is the limit
where its own column is near 100 %.
"""
import argparse
import statistics
import sys

from perf.bench import record
from perf.bench.apart import floor, near, summary
from perf.bench.hugepages import Memory
from perf.bench.pair import CROWDS, LINKS, SHAPES, STAGES, Pair
from tests.netlab.world import Failed

DOWNLOADS = ("200KiB", "10MiB")
HALF_FROM, HALF_SECONDS = 200_000, 0.5  # requests per second of the first estimate, and its length
FLOOR_SECONDS = 3
ALONE = (*CROWDS, "half")  # each of these has a server of its own
CLIENT_LIMITS = 0.9
WIDTHS = (8, 11, 9, 9, 9)  # of the stages' columns


def plan(link, shapes):
    """[(link, shapes of one server)], in the order of a round."""
    shapes = list(dict.fromkeys(shapes or SHAPES))
    links = [link] if link else ["memif"]
    groups = []
    for one in links:
        alone = shapes if one == "virtio" else ALONE
        groups.append((one, [s for s in shapes if s not in alone]))
        groups += [(one, [s]) for s in shapes if s in alone and (one, s) != ("virtio", "half")]
    if not link:
        groups += [("virtio", [s]) for s in shapes if s in DOWNLOADS]
    return [(one, some) for one, some in groups if some]


class Bench:
    def __init__(self, memory, seconds):
        self.memory, self.seconds = memory, seconds
        self.results, self.failed = {}, {}  # by (link, shape)

    def measure(self, pair, shape):
        if shape != "half":
            return pair.measure(shape, self.seconds)
        rate = HALF_FROM
        for _ in range(2):  # the second estimate is nearer to half of the load
            rate = int(pair.measure(shape, HALF_SECONDS, "-r", rate)["full"] / 2)
        return pair.measure(shape, self.seconds, "-r", rate)

    def alone(self, link, shape):
        """Runs a shape with a server of its own. For `half` it also measures the stalls of the CPUs
        before and after, without a server, and takes the smaller value as the floor."""
        before = floor(min(self.seconds, FLOOR_SECONDS)) if shape == "half" else None
        with Pair(link, self.memory) as pair:
            found = self.measure(pair, shape)
        if before is None:
            return found
        return found | {"floor": min(before, floor(min(self.seconds, FLOOR_SECONDS)))}

    def keep(self, link, shape, run):
        """False when it failed."""
        try:
            found = near(run)
            self.results.setdefault((link, shape), []).append(found)
        except Failed as why:
            self.failed[link, shape] = str(why)
        return (link, shape) not in self.failed

    def group(self, link, shapes, progress):
        """Runs the shapes with one server. A failed shape ends the server and is not repeated."""
        shapes = [s for s in shapes if (link, s) not in self.failed]
        if link == "virtio" or shapes and shapes[0] in ALONE:
            for shape in shapes:
                progress(f"{shape} over {link}")
                self.keep(link, shape, lambda: self.alone(link, shape))
            return
        while shapes:
            with Pair(link, self.memory) as pair:
                while shapes:
                    shape = shapes.pop(0)
                    progress(f"{shape} over {link}")
                    if not self.keep(link, shape, lambda: self.measure(pair, shape)):
                        break


def median(runs, name):
    values = [run[name] for run in runs if run.get(name) is not None]
    return statistics.median(values) if values else 0


def label(key):
    return key[1] if key[0] == "memif" else f"{key[1]} {key[0]}"


def table(results, rounds):
    print(f"\n{'':<14}{'':>11}{'at full':>12}{'per request:':>14}{'':>8}{'of it, ns:':>11}{'':>33}"
          f"{'packets':>15}{'latency, us':>27}{'':>6}{'client':>7}")
    print(f"{'shape':<14}{'req/s':>11}{'load, req/s':>12}{'ns':>11}{'cycles':>11}"
          + "".join(f"{stage:>{w}}" for stage, w in zip(STAGES, WIDTHS))
          + f"{'in':>8}{'out':>8}{'p50':>9}{'p99':>9}{'p99.9':>9}{'idle':>6}{'busy':>7}")
    for key, runs in results.items():
        m = {name: median(runs, name) for name in (*runs[0], *STAGES)}
        print(f"{label(key):<14}{m['rate']:>11,.0f}{m['full']:>12,.0f}{m['ns']:>11,.0f}"
              f"{m['cycles']:>11,.0f}"
              + "".join(f"{m[stage]:>{w},.0f}" for stage, w in zip(STAGES, WIDTHS))
              + f"{m['rx_packets']:>8.2f}{m['tx_packets']:>8.2f}"
              + "".join(f"{m[p] / 1e3:>9,.1f}" for p in ("p50", "p99", "p99.9"))
              + f"{m['idle'] * 100:>5.0f}%{m['client_busy'] * 100:>6.0f}%")
    print()
    for key, runs in results.items():
        if key[1] in DOWNLOADS:
            print(f"{label(key)}: {median(runs, 'bytes') / 1e9:.2f} GB/s, at full load "
                  f"{median(runs, 'bytes_full') / 1e9:.2f} GB/s")
        if "connection_bytes" in runs[0]:
            print(f"{label(key)}: {median(runs, 'connection_bytes'):,.0f} bytes of ordinary memory "
                  "per connection")
    for link in LINKS:
        if (link, "100kx1") in results and (link, "1000x1") in results:
            ratio = median(results[link, "100kx1"], "full") / median(results[link, "1000x1"],
                                                                     "full")
            print(f"rate of a core over 100,000 connections / over 1,000: {ratio:.2f}")
        if (link, "half") in results:
            print(f"p99.9 / p50 at half load: {median(results[link, 'half'], 'spread'):.1f}; of "
                  "a loop that only reads the clock on these CPUs, p99.9 is "
                  f"{median(results[link, 'half'], 'floor') / 1e3:,.0f} us here")
    print(f"\n{rounds} rounds; ns per request, min to max: " + ", ".join(
        f"{label(key)} {min(r['ns'] for r in runs):,.0f} to {max(r['ns'] for r in runs):,.0f}"
        for key, runs in results.items()))
    print(summary(results.values()))


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench serve", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--link", choices=LINKS)
    parser.add_argument("--hugepages", action="store_true",
                        help="reserve them for the run where too few are free")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each run [3]")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("shapes", nargs="*", metavar="SHAPE")
    args = parser.parse_args()
    record.check_names(parser, args.shapes, SHAPES)
    if args.link == "virtio" and "half" in args.shapes:
        parser.error("half needs one server for several runs: it goes over memif")
    if args.rounds < 1 or not 0.1 <= args.seconds <= 600:
        parser.error("at least one round; from 0.1 to 600 seconds")
    return args


def main():
    args = arguments()
    run = record.begin("serve")
    print(record.headline(run.facts))
    with Memory(args.hugepages) as memory:
        print(memory.text)
        bench = Bench(memory, args.seconds)
        with record.Rounds(args.rounds) as rounds:
            for i in rounds:
                def progress(what):
                    print(f"\rround {i + 1} of {args.rounds}, {what}\033[K", end="",
                          file=sys.stderr, flush=True)
                for link, shapes in plan(args.link, args.shapes):
                    bench.group(link, shapes, progress)
        print("\r\033[K", end="", file=sys.stderr)
    if args.json:
        for (link, shape), runs in bench.results.items():
            limit = median(runs, "client_busy") > CLIENT_LIMITS
            run.row(shape, runs, link=link, client_limit=limit)
        run.write(args.json, **rounds.facts(), seconds=args.seconds, memory=memory.facts(),
                  failed=[{"shape": shape, "link": link, "why": why}
                          for (link, shape), why in bench.failed.items()])
    if bench.results:
        table(bench.results, rounds.n_done)
    for key, why in bench.failed.items():
        print(f"\n{label(key)} failed: {why}")
    sys.exit(rounds.status or int(bool(bench.failed)))


if __name__ == "__main__":
    record.run_main("bench serve", main, Failed)
