#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench ewyk [--quick] [--json FILE] [--svg FILE] [CELL ...]

Who should consume a task: each strategy of lib/sched with the same producers and the same tasks.

  pc        produce, consume: inline                 pec    a locked queue to 64 threads
  epc       the classic, production is queued        ring   PEC over a ring (benchmark only)
  adaptive  Eat What You Kill, with threads          steal  PEC with work stealing (same)
  adaptive16  the same, 16 threads reserved, not 2   lcore  Eat What You Kill, with fibers
  pec2      pec with producers bound to CPU 0 and consumers to CPU 1; left alone, the kernel of a
            busy machine runs both on one CPU, and then PEC's cache is hot, too

Tasks: tiny reads 64 bytes that the producer wrote, 4KiB reads 4096, 5us burns 5 us besides. b0:
none blocks, b1: one in a hundred waits 1 ms, b10: one in ten; threads sleep, fibers park. 1 or 2
producers, each with a strategy of its own (on one pool), or an lcore of its own. All tasks are
BLOCKING.

A cell is TASK/BLOCKING/PRODUCERS, such as 4KiB/b1/2; patterns with * are taken. Told are the median
and the spread, over rounds in which all strategies take turns, of tasks per second, CPU per task,
and the delay until a task starts.

The window (tasks of a producer that are queued or running) is 64. What waits its 1 ms does not
count in it, only against the producer's 2048 buffers: these allow 1.5 M tasks that wait per
second, so 15 M tasks/s where one in ten does, 150 M where one in a hundred does. So with fibers the
window is not what is measured. Threads have another limit, their number: 64 allow 640 k tasks/s at
10 %.
"""
import argparse
import fnmatch
import itertools
import json
import os
import statistics
import subprocess
import sys
import time

from svg import multiplot

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("NJ_BUILD", "build-release")
PROGRAM = os.path.join(REPO, BUILD, "perf/ewyk/nj-ewyk-bench")

STRATEGIES = {  # name: (name in the program, reserved threads; -1: one per CPU)
    "pc": ("pc", -1), "pec": ("pec", -1), "epc": ("epc", -1), "adaptive": ("adaptive", -1),
    "adaptive16": ("adaptive", 16), "pec2": ("split", -1), "ring": ("ring", -1),
    "steal": ("steal", -1), "lcore": ("lcore", -1),
}
TASKS = {"tiny": (64, 0), "4KiB": (4096, 0), "5us": (4096, 5000)}  # bytes, ns of work
BLOCKING = {"b0": 0, "b1": 100, "b10": 10}  # every so many tasks
WINDOW, WARM_UP_MS, REST = 64, 30, 0.5  # REST: seconds idle per second of work, for others


def cells(patterns):
    every = ["/".join(c) for c in itertools.product(TASKS, BLOCKING, ("1", "2"))]
    chosen = [c for c in every if any(fnmatch.fnmatch(c, p) for p in patterns)]
    if not chosen:
        sys.exit(f"bench: no cell is {' or '.join(patterns)}; there are {', '.join(every)}")
    return chosen


def run(strategy, cell, ms):
    task, blocking, producers = cell.split("/")
    name, reserved = STRATEGIES[strategy]
    arguments = (name, *TASKS[task], BLOCKING[blocking], producers, WINDOW, ms, WARM_UP_MS,
                 reserved)
    began = time.monotonic()
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=60)
    if done.returncode:
        sys.exit(f"bench: {strategy} {cell}: {done.stderr or done.returncode}")
    time.sleep(REST * (time.monotonic() - began))
    found = json.loads(done.stdout)
    if found["violations"]:
        sys.exit(f"bench: {strategy} {cell}: two producers at a time")
    return found


def median(runs, key):
    return statistics.median(r[key] for r in runs)


def spread(runs, key):
    values = [r[key] for r in runs]
    return min(values), max(values)


def short(ns):
    return f"{ns / 1000:.1f}" if ns < 99_950 else f"{ns / 1000:.0f}"


def table(results):
    for cell, by_strategy in results.items():
        print(f"\n{cell:<13}{'k tasks/s (min, max)':>24}{'CPU ns/task (min, max)':>28}"
              f"{'CPUs':>6}{'start us p50':>14}{'p99':>8}   modes")
        for strategy, runs in by_strategy.items():
            rate, cost = median(runs, "per_second"), median(runs, "cpu_ns")
            low, high = spread(runs, "per_second")
            low_cost, high_cost = spread(runs, "cpu_ns")
            modes = {m: sum(r[m] for r in runs) for m in ("pc", "pic", "pec", "epc")}
            total = sum(modes.values()) or 1
            split = " ".join(f"{m} {100 * n / total:.1f} %" for m, n in modes.items() if n)
            if sent := sum(r["recruits_sent"] for r in runs):
                wasted = sum(r["recruits_wasted"] for r in runs)
                split += (f"; recruits {100 * sent / total:.1f} % of tasks, "
                          f"{100 * wasted / sent:.0f} % of them wasted")
            print(f"  {strategy:<11}{rate / 1000:>9.0f} ({low / 1000:.0f}, {high / 1000:.0f})"
                  .ljust(38) + f"{cost:>12.0f} ({low_cost:.0f}, {high_cost:.0f})".ljust(27) +
                  f"{median(runs, 'cpus'):>6.2f}{short(median(runs, 'start_p50_ns')):>14}"
                  f"{short(median(runs, 'start_p99_ns')):>8}   {split}")


def kept(results, strategy, producers, key):
    """What is left of the unblocked rate with one task in a hundred blocking; median of rounds.
    Rounds are compared with themselves: what else the machine does changes from round to round."""
    free = results[f"4KiB/b0/{producers}"][strategy]
    some = results[f"4KiB/b1/{producers}"][strategy]
    ratios = [key(b) / key(a) for a, b in zip(free, some)]
    return statistics.median(ratios)


def targets(results):
    """[(what, measured, wanted, is met)] of those that can be told from the cells."""
    found = []
    per_second, per_cpu = lambda r: r["per_second"], lambda r: 1 / r["cpu_ns"]
    for n in ("1", "2"):
        if not {f"4KiB/b0/{n}", f"4KiB/b1/{n}"} <= set(results):
            continue
        for unit, key in (("per CPU second", per_cpu), ("tasks/s", per_second)):
            share = kept(results, "lcore", n, key)
            found.append((f"lcore keeps with 1 % blocking, {unit}, {n} producers", share,
                          ">= 0.95", share >= 0.95))
        share = kept(results, "adaptive", n, per_second)
        found.append((f"  (adaptive, with threads, keeps, {n} producers)", share, "0.66", None))
        share = 1 - kept(results, "pc", n, per_second)
        found.append((f"pc loses with 1 % blocking, tasks/s, {n} producers", share, ">= 0.90",
                      share >= 0.90))
        cost = {s: [r["cpu_ns"] for r in results[f"4KiB/b0/{n}"][s]]
                for s in ("pec", "pec2", "lcore")}
        for pec in ("pec", "pec2"):
            ratio = statistics.median(a / b for a, b in zip(cost[pec], cost["lcore"]))
            found.append((f"{pec} costs, of lcore's CPU per 4 KiB task, {n} producers", ratio,
                          ">= 2.5", ratio >= 2.5))
    return found


BARS = """
set style data histograms
set style histogram errorbars gap 1 lw 1
set style fill solid 0.6 border -1
set key off
set yrange [0:*]
set xtics rotate by -30
set grid noxtics
"""


def chart(results, path, rounds):
    """Per cell: tasks per second, and CPU per task; bars with their spread."""
    plots = []
    for cell, by_strategy in results.items():
        for key, scale, title in (("per_second", 1e-3, "k tasks/s"), ("cpu_ns", 1, "CPU ns/task")):
            rows = "\n".join(
                f"{s} {median(runs, key) * scale} {spread(runs, key)[0] * scale} "
                f"{spread(runs, key)[1] * scale}" for s, runs in by_strategy.items())
            plots.append(f"$d << EOD\n{rows}\nEOD\nset title '{cell}: {title}'\n"
                         "plot $d using 2:3:4:xtic(1) lc rgb '#4477aa'\n")
    multiplot(path, plots, 260, BARS, f"Who consumes a task (window {WINDOW}, {rounds} rounds)")


def measure(chosen, strategies, rounds, ms):
    results = {cell: {s: [] for s in strategies} for cell in chosen}
    for i in range(rounds):
        for cell in chosen:
            for strategy in strategies[i % len(strategies):] + strategies[:i % len(strategies)]:
                print(f"\rround {i + 1} of {rounds}, {cell} {strategy}\033[K", end="",
                      file=sys.stderr)
                results[cell][strategy].append(run(strategy, cell, ms))
    print("\r\033[K", end="", file=sys.stderr)
    return results


def main():
    parser = argparse.ArgumentParser(prog="./dev bench ewyk", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 short rounds; enough to see it run")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--ms", type=int, help="length of one measurement")
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--svg", metavar="FILE")
    parser.add_argument("cells", nargs="*", default=["*"], metavar="CELL")
    args = parser.parse_args()
    rounds = args.rounds or (3 if args.quick else 7)
    ms = args.ms or (50 if args.quick else 200)
    strategies = args.strategies.split(",")
    if set(strategies) - set(STRATEGIES):
        sys.exit(f"bench: strategies are {', '.join(STRATEGIES)}")
    results = measure(cells(args.cells), strategies, rounds, ms)
    table(results)
    met = targets(results) if set(strategies) >= {"pc", "pec", "pec2", "adaptive", "lcore"} else []
    for what, value, wanted, is_met in met:
        print(f"\n{what}: {value:.3f} ({wanted})" +
              ("" if is_met is None else ", met" if is_met else ", NOT met"), end="")
    print()
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"window": WINDOW, "rounds": rounds, "ms": ms, "cells": results,
                       "targets": [dict(zip(("what", "value", "wanted", "met"), t)) for t in met]},
                      f, indent=1)
    if args.svg:
        chart(results, args.svg, rounds)


if __name__ == "__main__":
    os.chdir(os.environ.get("NJ_CALLER", "."))
    main()
