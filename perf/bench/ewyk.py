# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench ewyk [--quick] [--pool N] [--rate RATE] [--json FILE] [--svg FILE] [CELL ...]
./dev bench ewyk --targets [--rounds N] [--ms N] [--json FILE]
./dev bench ewyk --delays --help    start delay of OS_BLOCKING tasks while some are stuck
./dev bench ewyk --server --help    strategies in the whole server

Comparison of the strategies that consume tasks (lib/sched, lib/strategy, perf/reference), with the
same producers and the same tasks.

  pc        produce, consume: inline                 pec    a locked queue to the threads of a pool
  epc       the original EPC: production is queued   ring   PEC over a ring (benchmark only)
  adaptive  Eat What You Kill, with threads          steal  PEC with work stealing (same)
                                                     lcore  Eat What You Kill, with fibers
  adaptive2 adaptive with 2 reserved threads, Jetty's number for 2 CPUs, instead of half the pool
  dual      Jetty's "always two": epc while a second thread is available, else pec; no thread is
            reserved
  pec2      pec with producers bound to CPU 0 and consumers to CPU 1. Without binding, the kernel of
            a busy machine runs both on one CPU, and then the cache is hot for PEC, too

Tasks: tiny reads 64 bytes that the producer wrote, 4KiB reads 4096, 5us also computes for 5 us. b0:
no task blocks, b1: one in a hundred waits 1 ms, b10: one in ten; threads sleep, fibers park. 1 or 2
producers, each with a strategy of its own (on one pool), or an lcore of its own. All tasks are
BLOCKING.

A cell is TASK/BLOCKING/PRODUCERS, such as 4KiB/b1/2; patterns with * are accepted. The table has
medians and quartiles of the rounds, in which all strategies take turns. It also has the CPU use of
other processes during the runs; the JSON has it for each run.

Tasks per second, CPU per task and recruits are of a closed loop: a producer always has a next task.
The window (tasks of a producer that are queued or running) is 64. A task that waits its 1 ms does
not count in the window, only against the producer's 2048 buffers. These allow 1.5 M waiting tasks
per second: 15 M tasks/s in b10, 150 M in b1. So the window does not limit fibers. Threads have
another limit, their number: 64 allow 640 k tasks/s at 10 %, a larger --pool allows more.

The delay until a task starts is of an open loop: tasks become due at times that are determined in
advance (exponential intervals, from --seed and the number of the round), independent of the
producer. The delay counts from the due time, so each task behind a blocking task is late. --rate is
the number of tasks: 50000 per second, or 50% of pc's rate in the same round without blocking tasks.
Producers poll until a task is due. `left` is the share of tasks that had not started at the end of
the run: they count as if they had started then. With a large share the delay only reflects the
length of the run.

Recruits are threads that a strategy wakes to continue production while the producer consumes a
task. Per thousand tasks: `useful` recruits found a task, `wasted` ones found another producer or no
task, `missed` ones could not be sent because no thread waited.

--targets measures only the ratios that have a target: ratios of adjacent runs of one round, medians
and quartiles of 20 rounds, in about five minutes.
"""
import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import time

from perf.bench import ewyk_targets, record
from perf.bench.svg import multiplot

PROGRAM = record.program("perf/ewyk/nj-ewyk-bench")

STRATEGIES = {  # name: (name in the program, further options)
    "pc": ("pc", {}), "pec": ("pec", {}), "epc": ("epc", {}), "adaptive": ("adaptive", {}),
    "adaptive2": ("adaptive", {"reserved": 2}), "dual": ("dual", {"reserved": 0}),
    "pec2": ("split", {}), "ring": ("ring", {}), "steal": ("steal", {}), "lcore": ("lcore", {}),
}
TASKS = {"tiny": (64, 0), "4KiB": (4096, 0), "5us": (4096, 5000)}  # bytes, ns of work
BLOCKING = {"b0": 0, "b1": 100, "b10": 10}  # one in this many tasks
WINDOW, POOL, WARM_UP_MS, REST = 64, 64, 30, 0.5  # REST: seconds idle per second of work
RECRUITS = ("sent", "useful", "wasted", "missed")


def cells(patterns):
    every = ["/".join(c) for c in itertools.product(TASKS, BLOCKING, ("1", "2"))]
    return record.chosen(every, patterns)


class Others:
    """CPU use of other processes during a run, in CPUs."""

    def __init__(self):
        self.began, self.seconds = time.monotonic(), self.taken()

    @staticmethod
    def taken():
        with open("/proc/stat", encoding="ascii") as f:
            ticks = [int(n) for n in f.readline().split()[1:9]]
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        idle = ticks[3] + ticks[4]
        return (sum(ticks) - idle) / os.sysconf("SC_CLK_TCK") - own.ru_utime - own.ru_stime

    def cpus(self):
        return round((self.taken() - self.seconds) / (time.monotonic() - self.began), 2)


def run(strategy, cell, ms, pool=POOL, rate=0, seed=1):
    """Runs one cell once. `rate`: tasks per second that become due, over all producers."""
    task, blocking, producers = cell.split("/")
    name, more = STRATEGIES[strategy]
    n_bytes, work_ns = TASKS[task]
    options = {"bytes": n_bytes, "work-ns": work_ns, "block-every": BLOCKING[blocking],
               "producers": producers, "window": WINDOW, "ms": ms, "warm-up-ms": WARM_UP_MS,
               "threads": pool, "rate": round(rate / int(producers)), "seed": seed, **more}
    began, others = time.monotonic(), Others()
    done = subprocess.run([PROGRAM, name, *(f"{k}={v}" for k, v in options.items())],
                          capture_output=True, text=True, timeout=60)
    if done.returncode:
        sys.exit(f"bench: {strategy} {cell}: {done.stderr or done.returncode}")
    busy = others.cpus()
    time.sleep(REST * (time.monotonic() - began))
    found = json.loads(done.stdout)
    if found["violations"]:
        sys.exit(f"bench: {strategy} {cell}: two producers at a time")
    return {**found, "others_cpus": busy}


def median(runs, key):
    return statistics.median(r[key] for r in runs)


def quartiles(runs, key):
    return ewyk_targets.quartiles([r[key] for r in runs])


def short(ns):
    return f"{ns / 1000:.1f}" if ns < 99_950 else f"{ns / 1000:.0f}"


def columns(runs):
    """The row of one strategy in one cell."""
    (low, rate, high), (less, cost, more) = quartiles(runs, "per_second"), quartiles(runs, "cpu_ns")
    total = sum(r[m] for r in runs for m in ("pc", "pic", "pec", "epc")) or 1
    yield f"{rate / 1000:.0f} ({low / 1000:.0f}, {high / 1000:.0f})".rjust(22)
    yield f"{cost:.0f} ({less:.0f}, {more:.0f})".rjust(22)
    yield f"{median(runs, 'cpus'):.2f}".rjust(6)
    delays = [r["delays"] for r in runs if "delays" in r]
    for p in ("p50", "p99", "p999"):
        yield (short(median(delays, f"start_{p}_ns")) if delays else "").rjust(9)
    due = sum(d["due"] for d in delays)
    left = 100 * sum(d["unstarted"] for d in delays) / due if due else 0
    yield (f"{left:.0f} %" if left >= 0.5 else "").rjust(6)
    for what in RECRUITS:
        n = 1000 * sum(r[f"recruits_{what}"] for r in runs) / total
        yield (f"{n:.1f}" if n else "-").rjust(7)
    modes = {m: sum(r[m] for r in runs) for m in ("pc", "pic", "pec", "epc")}
    yield "  " + " ".join(f"{m} {100 * n / total:.1f} %" for m, n in modes.items() if n)


def tell_others(runs):
    low, middle, high = quartiles(list(runs), "others_cpus")
    print(f"CPU use of other processes: {middle:.2f} CPUs ({low:.2f}, {high:.2f})")


def table(results):
    for cell, by_strategy in results.items():
        print(f"\n{cell:<11}{'k tasks/s':>22}{'CPU ns/task':>22}{'CPUs':>6}{'us: p50':>9}"
              f"{'p99':>9}{'p99.9':>9}{'left':>6}{'sent':>7}{'useful':>7}{'wasted':>7}{'missed':>7}"
              "  modes")
        for strategy, runs in by_strategy.items():
            print(f"{strategy:<11}" + "".join(columns(runs)))


BARS = """
set style data histograms
set style histogram errorbars gap 1 lw 1
set style fill solid 0.6 border -1
set key off
set yrange [0:*]
set xtics rotate by -30
set grid noxtics
"""


def middle(runs, key):
    """In gnuplot's format of error bars."""
    low, value, high = quartiles(runs, key)
    return value, low, high


def chart(results, path, rounds):
    """Per cell: tasks per second, and CPU per task; error bars are the quartiles of the rounds."""
    plots = []
    for cell, by_strategy in results.items():
        for key, scale, title in (("per_second", 1e-3, "k tasks/s"), ("cpu_ns", 1, "CPU ns/task")):
            rows = "\n".join(
                f"{s} " + " ".join(f"{q * scale}" for q in middle(runs, key))
                for s, runs in by_strategy.items())
            plots.append(f"$d << EOD\n{rows}\nEOD\nset title '{cell}: {title}'\n"
                         "plot $d using 2:3:4:xtic(1) lc rgb '#4477aa'\n")
    multiplot(path, plots, 260, BARS, f"Strategies (window {WINDOW}, {rounds} rounds)")


def rate_of(text):
    """(tasks per second, share of pc's rate): one of them is None."""
    number = float(text.rstrip("%"))
    if not number > 0 or text.endswith("%") and number > 1000:
        raise ValueError
    return (None, number / 100) if text.endswith("%") else (number, None)


def delays(strategies, cell, ms, args, i):
    """{strategy: its delays} in the i-th round."""
    rate, share = args.rate
    if share:
        task, _, producers = cell.split("/")
        rate = share * run("pc", f"{task}/b0/{producers}", ms, args.pool)["per_second"]
    keys = ("due", "unstarted", "start_p50_ns", "start_p99_ns", "start_p999_ns")
    found = {}
    for strategy in strategies:
        done = run(strategy, cell, ms, args.pool, rate, args.seed + i)
        found[strategy] = {"rate": round(rate), **{key: done[key] for key in keys}}
    return found


def measure(chosen, strategies, rounds, ms, args):
    results = {cell: {s: [] for s in strategies} for cell in chosen}
    for i in rounds:
        for cell in chosen:
            print(f"\rround {i + 1} of {rounds.n}, {cell}\033[K", end="", file=sys.stderr)
            turns = strategies[i % len(strategies):] + strategies[:i % len(strategies)]
            found = {s: run(s, cell, ms, args.pool) for s in turns}
            late = delays(turns, cell, ms, args, i) if args.delays else {}
            for s in strategies:
                results[cell][s].append({**found[s], **({"delays": late[s]} if late else {})})
    print("\r\033[K", end="", file=sys.stderr)
    return results


# Options that --targets does not accept, with their defaults.
OF_CELLS = {"pool": POOL, "rate": rate_of("50%"), "delays": True, "seed": 1,
            "strategies": list(STRATEGIES)}


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench ewyk", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 short rounds; enough to see it run")
    parser.add_argument("--targets", action="store_true",
                        help="measure only the ratios that have a target")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--ms", type=int, help="length of one measurement")
    parser.add_argument("--pool", type=int, default=POOL, metavar="N",
                        help=f"threads of a strategy's pool ({POOL})")
    parser.add_argument("--rate", type=rate_of, default="50%", metavar="RATE",
                        help="tasks that become due per second, or %% of pc's rate (50%%)")
    parser.add_argument("--no-delays", dest="delays", action="store_false",
                        help="measure only the closed loops, in half the time")
    parser.add_argument("--seed", type=int, default=1,
                        help="seed of the due times in the open loops")
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--svg", metavar="FILE")
    parser.add_argument("cells", nargs="*", metavar="CELL")
    args = parser.parse_args()
    args.strategies = args.strategies.split(",")
    record.check_names(parser, args.strategies, STRATEGIES, "strategy")
    if args.targets and (args.cells or args.svg):
        parser.error("--targets has cells of its own, and no chart")
    if args.targets and any(getattr(args, name) != value for name, value in OF_CELLS.items()):
        parser.error("--targets has pools and strategies of its own, and no open loops: "
                     "no --pool, --rate, --no-delays, --seed, --strategies")
    if not 2 <= args.pool <= 1024:
        parser.error("a pool has 2 to 1024 threads")
    return args


def write(args, found):
    if args.json:
        with open(record.caller_path(args.json), "w", encoding="utf-8") as f:
            f.write(record.compact(found))


def main():
    args = arguments()
    facts = record.facts("ewyk")
    print(record.headline(facts))
    ms = args.ms or (50 if args.quick else 200)
    n = args.rounds or (3 if args.quick else 20 if args.targets else 7)
    with record.Rounds(n) as rounds:
        if args.targets:
            found = ewyk_targets.measure(run, rounds, ms)
        else:
            found = measure(cells(args.cells or ["*"]), args.strategies, rounds, ms, args)
    facts |= {**rounds.facts(), "window": WINDOW, "ms": ms}
    if args.targets:
        write(args, facts | {"runs": found})
        targets = ewyk_targets.verdicts(found)
        write(args, facts | {"targets": targets, "runs": found})
        ewyk_targets.tell(targets, rounds.n_done)
        tell_others(r for runs in found.values() for r in runs)
    else:
        write(args, facts | {"pool": args.pool, "seed": args.seed, "cells": found})
        table(found)
        tell_others(r for cell in found.values() for runs in cell.values() for r in runs)
    if args.svg:
        chart(found, record.caller_path(args.svg), rounds.n_done)
    return rounds.status


if __name__ == "__main__":
    record.run_main("bench ewyk", main)
