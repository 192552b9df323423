# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench [--link tap|veth] [--rounds N] [--json FILE] [SHAPE ...]

Loads a release build with h2load. Prints, per shape, the median and the spread over the rounds of
requests per second and of the server's CPU time per request: the busy time of its lcores from their
own cycle counters, divided by requests. The client shares the machine and is mostly the limit, so
compare the CPU time per request. The shapes alternate within each round, so that other load on the
machine affects all of them.

A shape is CONNECTIONSxSTREAMS[/FILE], e.g. 16x32/128 or 4x4/1MiB; the file is one of 128, 200KiB,
1MiB.
"""
import argparse
import os
import re
import statistics
import sys
import tempfile
import time

from perf.bench import record
from tests.netlab.world import Failed, World

FILES = {"128": 128, "200KiB": 200 << 10, "1MiB": 1 << 20}
DEFAULT = ["1x1/128", "1x100/128", "16x32/128", "100x1/128", "4x4/200KiB", "8x1/1MiB"]
BYTES_PER_RUN = 400 << 20
REQUESTS_MAX = {1: 20_000}  # by streams in flight; otherwise:
REQUESTS_DEFAULT = 200_000


def parse(shape):
    found = re.fullmatch(r"(\d+)x(\d+)(?:/(\w+))?", shape)
    if not found or (found[3] or "128") not in FILES:
        sys.exit(f"bench: {shape}: expected CONNECTIONSxSTREAMS[/FILE], "
                 f"FILE one of {', '.join(FILES)}")
    return int(found[1]), int(found[2]), found[3] or "128"


def cycles(world):
    shards = world.server.shards()
    return sum(s["cycles_busy"] for s in shards), sum(s["requests"] for s in shards)


def run(world, shape, tsc_hz):
    """One measurement: (requests per second, busy microseconds per request)."""
    conns, streams, name = parse(shape)
    in_flight = conns * streams
    n = min(REQUESTS_MAX.get(in_flight, REQUESTS_DEFAULT), BYTES_PER_RUN // FILES[name])
    n = max(n, in_flight)
    busy, served = cycles(world)
    done = world.client("h2load", "-c", str(conns), "-m", str(streams), "-n", str(n),
                        world.url("/" + name), seconds=120)
    rate = re.search(r"([\d.]+) req/s", done.stdout)
    if not rate or f" {n} succeeded, 0 failed, 0 errored" not in done.stdout:
        raise Failed(f"{shape}: {done.stdout[-600:]}{done.stderr[-300:]}")
    busy_now, served_now = cycles(world)
    return float(rate[1]), (busy_now - busy) / tsc_hz * 1e6 / (served_now - served)


def tsc_hz(world):
    """Cycles per second, from the counters of an idle lcore over half a second."""
    def total():
        s = world.server.shards()[0]
        return s["cycles_busy"] + s["cycles_idle"]
    began, first = time.monotonic(), total()
    time.sleep(0.5)
    return (total() - first) / (time.monotonic() - began)


def table(results, rounds):
    print(f"\n{'shape':<14}{'req/s: median':>15}{'min':>10}{'max':>10}"
          f"{'busy us/req: median':>22}{'min':>8}{'max':>8}   ({rounds} rounds)")
    for shape, runs in results.items():
        rates, costs = zip(*runs)
        print(f"{shape:<14}{statistics.median(rates):>15,.0f}"
              f"{min(rates):>10,.0f}{max(rates):>10,.0f}"
              f"{statistics.median(costs):>22.2f}{min(costs):>8.2f}{max(costs):>8.2f}")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--link", choices=["tap", "veth"], default="veth")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lcores", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="write all measured values")
    parser.add_argument("shapes", nargs="*", default=DEFAULT, metavar="SHAPE")
    args = parser.parse_args()
    for shape in args.shapes:
        parse(shape)
    with tempfile.TemporaryDirectory(prefix="nj-bench-") as root:
        os.chmod(root, 0o755)  # the server does not serve a folder without permissions for others
        for name, n_bytes in FILES.items():
            with open(os.path.join(root, name), "wb") as f:
                f.write(os.urandom(n_bytes))
        return measure(args, root)


def write(args, results, rounds):
    run = record.begin("h2load")
    for shape, runs in results.items():
        run.row(shape, [dict(zip(("rate", "busy_us"), values)) for values in runs], link=args.link)
    run.write(args.json, **rounds.facts(), lcores=args.lcores)


def measure(args, root):
    with World(args.link, lcores=args.lcores, root=root) as world:
        hz = tsc_hz(world)
        results = {shape: [] for shape in args.shapes}
        with record.Rounds(args.rounds) as rounds:
            for i in rounds:
                for shape in args.shapes:
                    print(f"\rround {i + 1} of {args.rounds}, {shape}\033[K", end="",
                          file=sys.stderr, flush=True)
                    results[shape].append(run(world, shape, hz))
        print("\r\033[K", end="", file=sys.stderr)
    if args.json:
        write(args, results, rounds)
    table(results, rounds.n_done)
    return rounds.status


if __name__ == "__main__":
    record.run_main("bench", main, Failed)
