# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench fiber                                        nanoseconds, on this machine
./dev bench fiber --count [--functions] [--json FILE]    instructions

Cost of an almost empty task inline (PC), on its own stack (EPC), and in other modes.

  offer     nj_ewyk_offer(): the producer gives the task to the lcore's strategy, which runs it
  measured  the strategy has a clock, and measures how long the task holds the core
  recruit: start, over a call
            the cost of making another context ready to produce. On an lcore that is a stack for the
            task, so that the root can continue: the start of a fiber to its end, minus a call
            of the same task

With --count callgrind counts a release build's bench_fiber. Each mode runs twice, the second time
with more tasks. The result is the difference of the counts per additional task: it excludes the
one-time costs and includes a share of the occasional costs. The counts are the same in each run,
independent of the load of the machine. The clock does not advance.

--functions lists the counts by function.
"""
import argparse
import collections
import concurrent.futures
import os
import subprocess
import tempfile

from perf.bench import guard, record

PROGRAM = record.program("perf/micro/bench_fiber")
WAYS = {"call": "a call through a pointer", "start": "the start of a fiber, to its end",
        "pc": "offer, PC", "epc": "offer, EPC that never parks",
        "pc-measured": "offer, PC, measured", "epc-measured": "offer, EPC, measured",
        "park": "wake, resume, park", "park-measured": "wake, resume, park, measured"}
OVER = {"EPC that never parks, over PC": ("epc", "pc"),
        "the same, measured": ("epc-measured", "pc-measured"),
        "recruit: start, over a call": ("start", "call")}
FEW, MANY = 10000, 30000  # of equal length: parsing them costs instructions
SECONDS = 300  # for one run, also on a slow machine


def count(way, n):
    """{function: instructions} of the whole program."""
    with tempfile.TemporaryDirectory(prefix="nj-fiber-") as scratch:
        out = os.path.join(scratch, "callgrind.out")
        # The alignment of the stack affects copying: use the same name and environment everywhere.
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no",
             f"--callgrind-out-file={out}", "./" + os.path.basename(PROGRAM), "--count", way,
             str(n)], cwd=os.path.dirname(PROGRAM), env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
        if run.returncode:
            raise guard.Failed(f"{way}: {run.stderr}")
        with open(out) as f:
            return guard.parse(f)[0]


def per_task(way):
    few, many = count(way, FEW), count(way, MANY)
    functions = {name: (many[name] - few[name]) / (MANY - FEW) for name in many}
    return collections.Counter({name: n for name, n in functions.items() if abs(n) > 1e-3})


def tell(found, functions):
    print(f"{'instructions per task':<36}{'':>8}")
    for what, (way, other) in OVER.items():
        difference = sum(found[way].values()) - sum(found[other].values())
        print(f"{what:<36}{difference:>+8.1f}")
    for way, name in WAYS.items():
        print(f"{name:<36}{sum(found[way].values()):>8.1f}")
        for function, n in found[way].most_common() if functions else ():
            print(f"{'':<36}{'':>8}{n:>8.1f}  {function}")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench fiber", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", action="store_true", help="instructions, not nanoseconds")
    parser.add_argument("--functions", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    if not args.count:
        parser.error("other options are for --count")
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = dict(zip(WAYS, pool.map(per_task, WAYS)))
    if args.json:
        record.dump(args.json, {"tools": guard.tools(), "instructions": found})
    tell(found, args.functions)


if __name__ == "__main__":
    record.run_main("bench fiber", main, guard.Failed, subprocess.TimeoutExpired)
