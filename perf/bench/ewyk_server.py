# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench ewyk --server [--quick] [--link tap|veth] [--json FILE] [CELL ...]

The strategies in the whole server: the same requests with each --strategy.

  pc    all handlers inline: a waiting handler blocks the lcore
  pec   all handlers on workers, 32 threads
  ewyk  handlers on stacks of the lcore

Requests: the response to tiny has 16 bytes, to 4KiB 4096. b0: no handler waits, b1: one in a
hundred waits 1 ms, b10: one in ten. All are BLOCKING. A cell is REQUEST/WAITING, such as 4KiB/b1;
patterns with * are accepted.

h2load keeps 8 connections of 32 streams busy. There is one lcore, on a CPU of its own; the client
has the other CPUs. On a machine of two CPUs the workers share the second CPU with the client, which
slows down both. Strategies alternate within each round, each time in a new server. The table has
medians, with the spread, of requests per second; of the lcore's time per request from its own
counters, which includes the time in which it was blocked; of the CPU time of workers per request;
and the mean and the maximum of h2load's response times.
"""
import argparse
import glob
import itertools
import os
import random
import re
import statistics
import sys

from perf.bench import record
from perf.bench.h2load import cycles, tsc_hz
from tests.netlab.world import Failed, World

PROGRAM = "nj-ewyk-server"
record.program(f"perf/ewyk/{PROGRAM}")
STRATEGIES = ("pc", "pec", "ewyk")
REQUESTS = ("tiny", "4KiB")
WAITING = {"b0": 0, "b1": 10, "b10": 100}  # of a thousand
CONNECTIONS, STREAMS, WORKERS = 8, 32, 32
UNITS = {"us": 1e-3, "ms": 1, "s": 1e3}
KEYS = ("per_second", "lcore_us", "workers_us", "mean_ms", "max_ms")


def cells(patterns):
    every = ["/".join(c) for c in itertools.product(REQUESTS, WAITING)]
    return record.chosen(every, patterns)


def mix(world, cell):
    """A file of a thousand URLs; those whose handlers wait are at random places."""
    request, waiting = cell.split("/")
    n = WAITING[waiting]
    paths = [f"/{request}/blocks"] * n + [f"/{request}"] * (1000 - n)
    random.Random(1).shuffle(paths)
    path = os.path.join(world.scratch, "mix")
    with open(path, "w") as f:
        f.writelines(world.url(p) + "\n" for p in paths)
    return path


def workers_ns(pid):
    """CPU time of the workers so far."""
    total = 0
    for task in glob.glob(f"/proc/{pid}/task/*"):
        try:
            with open(task + "/comm") as name, open(task + "/schedstat") as stat:
                if name.read().startswith("nj-worker"):
                    total += int(stat.read().split()[0])
        except FileNotFoundError:  # a thread that answered telemetry, and has ended
            pass
    return total


def client_cpus(lcore):
    """All CPUs except the lcore's, if there is another."""
    return ",".join(str(c) for c in sorted(os.sched_getaffinity(0)) if c != lcore) or str(lcore)


def run(world, cell, ms, lcore, hz):
    pid = world.server.process.pid
    busy, served = cycles(world)
    cpu = workers_ns(pid)
    done = world.client("taskset", "-c", client_cpus(lcore), "h2load", "-c", str(CONNECTIONS),
                        "-m", str(STREAMS), "-D", f"{ms}ms", "-i", mix(world, cell), seconds=60)
    rate = re.search(r"([\d.]+) req/s", done.stdout)
    took = re.search(r"^time for request:\s+\S+\s+([\d.]+)(us|ms|s)\s+([\d.]+)(us|ms|s)",
                     done.stdout, re.M)
    if not rate or not took or " 0 failed, 0 errored, 0 timeout" not in done.stdout:
        raise Failed(f"{cell}: {done.stdout[-900:]}{done.stderr[-300:]}")
    if world.server.stats()["exchange_rejected"]:
        raise Failed(f"{cell}: requests were rejected")
    busy_now, served_now = cycles(world)
    n = served_now - served
    return {"per_second": float(rate[1]), "lcore_us": (busy_now - busy) / hz * 1e6 / n,
            "workers_us": (workers_ns(pid) - cpu) / 1e3 / n,
            "mean_ms": float(took[3]) * UNITS[took[4]], "max_ms": float(took[1]) * UNITS[took[2]]}


def measure(args, chosen):
    lcore = min(os.sched_getaffinity(0))
    results = {cell: {s: [] for s in STRATEGIES} for cell in chosen}
    for i in range(args.rounds):
        for strategy in STRATEGIES[i % 3:] + STRATEGIES[:i % 3]:
            print(f"\rround {i + 1} of {args.rounds}, {strategy}\033[K", end="", file=sys.stderr)
            with World(args.link, lcores=f"0@{lcore}", program=PROGRAM,
                       options=("--strategy", strategy, "--workers", str(WORKERS))) as world:
                hz = tsc_hz(world)
                for cell in chosen:
                    results[cell][strategy].append(run(world, cell, args.ms, lcore, hz))
    print("\r\033[K", end="", file=sys.stderr)
    return results


def summary(runs, key):
    """median, least, most"""
    values = [r[key] for r in runs]
    return statistics.median(values), min(values), max(values)


def table(results):
    for cell, by_strategy in results.items():
        print(f"\n{cell:<10}{'req/s (min, max)':>28}{'lcore us/req':>24}{'workers us/req':>24}"
              f"{'mean ms':>9}{'max ms':>8}")
        for strategy, runs in by_strategy.items():
            rate, lcore, workers, mean, most = (summary(runs, key) for key in KEYS)
            print(f"  {strategy:<8}{'{:.0f} ({:.0f}, {:.0f})'.format(*rate):>28}"
                  f"{'{:.2f} ({:.2f}, {:.2f})'.format(*lcore):>24}"
                  f"{'{:.2f} ({:.2f}, {:.2f})'.format(*workers):>24}"
                  f"{mean[0]:>9.2f}{most[0]:>8.1f}")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench ewyk --server", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="3 short rounds; enough to see it run")
    parser.add_argument("--link", choices=["tap", "veth"], default="veth")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--ms", type=int, help="length of one measurement")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("cells", nargs="*", default=["*"], metavar="CELL")
    args = parser.parse_args()
    args.rounds = args.rounds or (3 if args.quick else 7)
    args.ms = args.ms or (300 if args.quick else 1000)
    results = measure(args, cells(args.cells))
    if args.json:
        record.dump(args.json, {"rounds": args.rounds, "ms": args.ms, "connections": CONNECTIONS,
                                "streams": STREAMS, "workers": WORKERS, "cells": results})
    table(results)


if __name__ == "__main__":
    record.run_main("bench ewyk --server", main, Failed)
