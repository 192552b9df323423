# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench ewyk --delays [--quick] [--virtual] [--rounds N] [--json FILE] [CELL ...]

Delay until OS_BLOCKING tasks start, while some of them are stuck for 100 ms, and CPU per task. Two
pools of workers:

  ahead  the former pool: each worker has rings of its own, and a task is assigned to a worker ahead
         of time (perf/delays/ahead.c)
  pool   the server's: any free thread takes the next task (lib/threads/worker_pool.c)

A cell is WORKERS/LOAD/STUCK: 4 or 32 workers; a task computes for 20 us, 32 workers get 2,000
tasks per second and 4 get 200 (slow), or both 20,000 (busy, only without stuck ones); of 100 tasks
0, 1 or 10 are stuck. Patterns with * are accepted.

Arrivals are open-loop: tasks are due at exponential intervals that are determined in advance,
independent of the pools, and a delay counts from the due time. The driver acts as two lcores on a
CPU of its own; the workers have the others. The pools alternate. The table has medians and
quartiles of the rounds. Each round has a seed of its own, the same for both pools.

--virtual runs the same pools on virtual threads and a virtual clock (perf/delays/virtual.c): any
number of threads compute at the same time, and no other load exists. CPU is not counted there.
"""
import argparse
import json
import statistics
import subprocess
import sys

from perf.bench import record

REAL, VIRTUAL = (record.program(f"perf/delays/{name}")
                 for name in ("nj-ewyk-delays", "nj-ewyk-virtual"))
POOLS = ("ahead", "pool")
WORK_US, STUCK_MS = 20, 100
STUCK = {"0": 0, "1": 10, "10": 100}  # of a hundred: of a thousand
RATES = {("32", "slow"): 2000, ("4", "slow"): 200, ("32", "busy"): 20000, ("4", "busy"): 20000}
DELAYS = ("p50_ns", "p99_ns", "p999_ns", "max_ns")


def cells(patterns):
    every = [f"{w}/{load}/{s}" for w, load in RATES for s in STUCK if load == "slow" or s == "0"]
    return record.chosen(every, patterns)


def run(program, pool, cell, ms, seed):
    workers, load, stuck = cell.split("/")
    arguments = (pool, workers, RATES[workers, load], WORK_US, STUCK[stuck], STUCK_MS, ms, seed)
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True,
                          timeout=600)
    if done.returncode:
        sys.exit(f"bench: {cell} {pool}: {done.stderr or done.returncode}")
    return json.loads(done.stdout)


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def us(ns):
    return f"{ns / 1000:,.1f}" if ns < 1e6 else f"{ns / 1000:,.0f}"


def table(results, is_virtual):
    print(f"{'delay until start, us; median (quartiles)':<14}")
    for cell, runs in results.items():
        print(f"\n{cell}")
        for key in DELAYS:
            print(f"  {key[:-3]:<6}", end="")
            for pool in POOLS:
                low, middle, high = quartiles([r[key] for r in runs[pool]])
                print(f"{pool:>8} {us(middle):>12} ({us(low)} to {us(high)})".ljust(52), end="")
            print()
        if is_virtual:
            continue
        for pool in POOLS:
            low, middle, high = quartiles([r["cpu_ns"] for r in runs[pool]])
            late = max(r["late_ns"] for r in runs[pool])
            print(f"  {pool:>6}: CPU {middle / 1000:.2f} us per task ({low / 1000:.2f} to "
                  f"{high / 1000:.2f}); the driver was up to {us(late)} us late")
        ratios = [b["cpu_ns"] / a["cpu_ns"] for a, b in zip(runs["ahead"], runs["pool"])]
        low, middle, high = quartiles(ratios)
        print(f"  CPU per task, pool to ahead: {middle:.3f} ({low:.3f} to {high:.3f})")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench ewyk --delays", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delays", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="2 short rounds; enough to see it run")
    parser.add_argument("--virtual", action="store_true", help="in virtual time")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--ms", type=int, help="length of one run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("cells", nargs="*", default=["*"], metavar="CELL")
    args = parser.parse_args()
    rounds = args.rounds or (2 if args.quick else 11)
    ms = args.ms or (500 if args.quick else 20000 if args.virtual else 2000)
    program = VIRTUAL if args.virtual else REAL
    results = {cell: {pool: [] for pool in POOLS} for cell in cells(args.cells)}
    for i in range(rounds):
        for cell, runs in results.items():
            length = min(ms, 4000) if "busy" in cell else ms
            for pool in POOLS[i % 2:] + POOLS[:i % 2]:
                print(f"\rround {i + 1} of {rounds}, {cell} {pool}\033[K", end="", file=sys.stderr)
                runs[pool].append(run(program, pool, cell, length, args.seed + i))
    print("\r\033[K", end="", file=sys.stderr)
    if args.json:
        record.dump(args.json, {"rounds": rounds, "ms": ms, "seed": args.seed,
                                "virtual": args.virtual, "cells": results})
    table(results, args.virtual)


if __name__ == "__main__":
    record.run_main("bench ewyk --delays", main)
