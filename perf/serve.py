#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench serve [--rounds N] [--seconds S] [--json FILE] [SHAPE ...]

A release build of the server on one CPU, nightjar-load on another, and no kernel between them: what
a request costs the lcore that serves it, and where that goes. The shapes alternate within each
round; the table has medians, and below them the spread of the cost.

  1x1 1x100 16x32 1000x1   connections x streams, a file of 128 bytes
  100k                     100,000 connections, of which one in turn asks, 50,000 times a second
  200KiB 10MiB             downloads: 16 connections of 4 streams; 8 of one

Cost is the server's: cycles of its steps that found work, from its own counters, by requests; the
stages are shares of it, measured in one step of 64. `at full load` is what these cycles come to in
a second: requests per second of a core that does nothing else. An lcore that waits for packets most
of the time takes them in small bursts, so lower loads cost more per request. The generator is the
limit where its own column is near 100 %.
"""
import argparse
import contextlib
import os
import statistics
import sys

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(REPO, "tests", "e2e"))
import generator  # noqa: E402
import record  # noqa: E402
from priority import first_of  # noqa: E402
from world import Failed, until  # noqa: E402

FILES = {"128": 128, "200KiB": 200 << 10, "10MiB": 10 << 20}
ADDRESSES = ["198.18.0.1", *(f"198.18.0.{i}" for i in range(5, 8))]  # of 32,768 connections each
SHAPES = {
    "1x1": ("/128", ["-c", 1, "-m", 1]),
    "1x100": ("/128", ["-c", 1, "-m", 100]),
    "16x32": ("/128", ["-c", 16, "-m", 32]),
    "1000x1": ("/128", ["-c", 1000, "-m", 1]),
    "100k": ("/128", ["-c", 100_000, "-m", 1, "-r", 50_000, "-w", "4s", "--timeout", "60s"]),
    "200KiB": ("/200KiB", ["-c", 16, "-m", 4]),
    "10MiB": ("/10MiB", ["-c", 8, "-m", 1]),
}
STAGES = ("rx", "tcp", "h2", "handler", "tx")


def cpus():
    """(the generator's, the server's)"""
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < 2:
        raise Failed("a CPU for the server and one for the generator: there is only one")
    return mine[0], mine[-1]


class Pair(generator.Pair):
    def __init__(self):
        super().__init__(lcores=f"0@{cpus()[1]}", options=[
            "--busy-poll", "--max-connections", "131072", "--preface-timeout", "10m",
            "--idle-timeout", "10m"])
        self.root = os.path.join(self.scratch, "site")
        os.mkdir(self.root)
        for name, n_bytes in FILES.items():
            with open(os.path.join(self.root, name), "wb") as f:
                f.write(os.urandom(n_bytes))

    def start(self):
        super().start()
        first_of(self.server_ns)

    def look(self):
        return self.server.telemetry("/nightjar/stages")

    def measure(self, shape, seconds):
        """Figures of one run. The server's counters are of the whole run, as are its requests."""
        url, options = SHAPES[shape]
        before = self.look()
        found = self.load("-q", "-d", f"{seconds}s", *options, urls=[url], seconds=180,
                          lcores=f"0@{cpus()[0]}", addresses=ADDRESSES)
        after = self.look()
        until("the connections have ended", lambda: not self.server.stats()["connections"], 60)
        grown = {name: after[name] - before[name] for name in before if name != "tsc_hz"}
        lost = {name: found["in_all"][name] for name in ("reset", "timeout", "lost", "broken")}
        if any(lost.values()) or found["in_all"]["status_2"] != found["in_all"]["done"]:
            raise Failed(f"{shape}: {found['in_all']}")
        return figures(found, grown, after["tsc_hz"])


def figures(found, grown, hz):
    n = grown["requests"]
    measured = sum(grown[stage] for stage in STAGES)
    cost = grown["cycles_busy"] / n
    latency = found["latency_ns"]
    return {"rate": found["requests_per_second"], "cycles": cost, "ns": cost / hz * 1e9,
            "full": hz / cost, "bytes": found["body_bytes_per_second"],
            "bytes_full": found["in_all"]["body_bytes"] / (grown["cycles_busy"] / hz),
            **{stage: cost * grown[stage] / measured / hz * 1e9 if measured else 0
               for stage in STAGES},
            "steps": grown["loops_busy"] / n, "rx_packets": grown["rx_packets"] / n,
            "tx_packets": grown["tx_packets"] / n,
            "busy": grown["cycles_busy"] / (grown["cycles_busy"] + grown["cycles_idle"]),
            "client_busy": found["client_busy"], "p50": latency["p50"], "p99": latency["p99"],
            "p99.9": latency["p99.9"]}


def median(runs, name):
    return statistics.median(run[name] for run in runs)


def table(results, rounds):
    print(f"\n{'':<9}{'':>11}{'at full':>12}{'ns per':>9}{'of it, ns:':>10}{'':>32}"
          f"{'packets':>16}{'latency, us':>24}{'client':>8}")
    print(f"{'shape':<9}{'req/s':>11}{'load, req/s':>12}{'request':>9}"
          + "".join(f"{stage:>8}" for stage in STAGES)
          + f"{'in':>10}{'out':>8}{'p50':>8}{'p99':>8}{'p99.9':>8}{'busy':>8}")
    for shape, runs in results.items():
        m = {name: median(runs, name) for name in runs[0]}
        print(f"{shape:<9}{m['rate']:>11,.0f}{m['full']:>12,.0f}{m['ns']:>9,.0f}"
              + "".join(f"{m[stage]:>8,.0f}" for stage in STAGES)
              + f"{m['rx_packets']:>10.2f}{m['tx_packets']:>8.2f}"
              + "".join(f"{m[p] / 1e3:>8,.1f}" for p in ("p50", "p99", "p99.9"))
              + f"{m['client_busy'] * 100:>7.0f}%")
    for shape in ("200KiB", "10MiB"):
        if shape in results:
            print(f"{shape}: {median(results[shape], 'bytes') / 1e9:.2f} GB/s, at full load "
                  f"{median(results[shape], 'bytes_full') / 1e9:.2f} GB/s")
    print(f"\n{rounds} rounds; ns per request, least to most: " + ", ".join(
        f"{shape} {min(r['ns'] for r in runs):,.0f} to {max(r['ns'] for r in runs):,.0f}"
        for shape, runs in results.items()))


def main():
    parser = argparse.ArgumentParser(prog="./dev bench serve", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each run [3]")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", default=list(SHAPES))
    args = parser.parse_args()
    for shape in args.shapes:
        if shape not in SHAPES:
            parser.error(f"{shape}: no such shape; there are {', '.join(SHAPES)}")
    run = record.begin("serve")
    print(record.headline(run.facts))
    results = {shape: [] for shape in args.shapes}
    with contextlib.closing(Pair()) as pair:
        pair.make_namespaces()
        pair.start()
        for i in range(args.rounds):
            for shape in args.shapes:
                print(f"\rround {i + 1} of {args.rounds}, {shape}\033[K", end="", file=sys.stderr)
                results[shape].append(pair.measure(shape, args.seconds))
    print("\r\033[K", end="", file=sys.stderr)
    table(results, args.rounds)
    if args.json:
        for shape, runs in results.items():
            run.row(shape, runs)
        run.write(args.json, args.rounds)


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"bench serve: {failed}")
