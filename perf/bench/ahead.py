# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench ahead [--quick] [--fiber] [--rounds N] [--json FILE] [HANDLER ...]

How many requests should be parsed before one is consumed? nj-ahead has a server and its clients in
one thread, 16 connections of 32 streams each, and all requests go to one route. The server parses k
requests of a connection, consumes them, parses the next k, and so on. k=all is nightjar's order: it
parses the whole input of a connection, then consumes up to t requests of it (NJ_ROUND_TASKS).
A second table has t as the variable, with 128 streams.

A HANDLER runs inline, or with --fiber on a stack of its own. For each request it touches a word of
each cache line of: nothing (plain), the same memory for all requests (shared:SIZE), memory of the
connection (conn:SIZE), or memory that no request has touched for the last 64 MiB (cold:SIZE).
body:SIZE reads the body of a POST, which the parser has just read.

The tables show, per request: instructions and misses of simulated caches (as ./dev bench guard
--cache-sim), and CPU time of the server's steps on this machine over rounds of some milliseconds,
in which all k take turns: the least, and the quartiles.
"""
import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess

from perf.bench import guard, record

PROGRAM = record.program("perf/ahead/nj-ahead")
AHEAD = ("1", "2", "4", "8", "16", "all")
ROUND_TASKS = ("8", "16", "32", "64", "128")
HANDLERS = ("plain", "shared:4KiB", "conn:4KiB", "cold:4KiB", "body:4KiB", "shared:64KiB",
            "conn:64KiB", "cold:64KiB", "body:64KiB", "shared:1MiB", "conn:1MiB", "cold:1MiB")
QUICK = ("plain", "conn:4KiB", "conn:64KiB")
ROUND_HANDLERS = ("plain", "conn:4KiB")
STREAMS, MANY_STREAMS, CONNECTIONS = 32, 128, 16
SECONDS = 900


def n_requests(handler, streams):
    """Requests of a round: a multiple of the requests in flight, some milliseconds."""
    under_way = CONNECTIONS * streams
    return under_way * (1 if handler.endswith("MiB") else 2 if "64KiB" in handler else 4)


def simulate(job):
    handler, streams, variant = job
    options = ["--handler", handler, "-m", str(streams), *variant,
               "-n", str(2 * n_requests(handler, streams))]
    return guard.count(PROGRAM, options, guard.CACHES)


def clock(handler, streams, variants, rounds):
    """ns per request of each round, for each variant. Rounds with 1 MiB are long, so fewer run."""
    rounds = max(1, rounds // 5) if handler.endswith("MiB") else rounds
    done = subprocess.run([PROGRAM, "--handler", handler, "-m", str(streams), *variants,
                           "--rounds", str(rounds), "-n", str(n_requests(handler, streams))],
                          capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise guard.Failed(done.stderr.strip())
    return [json.loads(line)["ns"] for line in done.stdout.splitlines()]


# ---- results ----

def figures(found):
    """The values of one simulated variant."""
    missed = found["misses"]
    return {"instructions": found["instructions"], "I1 misses": missed["I1"],
            "D1 misses": missed["D1 read"] + missed["D1 write"], "LL misses": missed["LL"]}


def columns(simulated, clocked):
    """[{name of a row: number}, one for each variant]."""
    found = []
    for sim, ns in zip(simulated, clocked):
        ns = sorted(ns)
        found.append(figures(sim) | {"ns, least": ns[0], "ns, lower quartile": ns[len(ns) // 4],
                                     "ns, median": statistics.median(ns),
                                     "ns, upper quartile": ns[len(ns) * 3 // 4]})
    return found


def table(title, heads, found):
    lines = [f"{title:<20}" + "".join(f"{head:>10}" for head in heads)]
    for name in found[0]:
        digits = 2 if name == "LL misses" else 1 if "misses" in name else 0
        lines.append(f"  {name:<18}" + "".join(f"{of[name]:>10,.{digits}f}" for of in found))
    return lines


def curve(run, pool, title, handler, streams, option, values, args):
    mode = ["--fiber"] if args.fiber else []
    variants = ([option, value, *mode] for value in values)
    clocked = clock(handler, streams, [option, ",".join(values), *mode], args.rounds)
    simulated = list(pool.map(simulate, [(handler, streams, v) for v in variants]))
    found = columns(simulated, clocked)
    for value, of, ns in zip(values, found, clocked):
        run.row(f"{handler} {title}={value}", [{"ns": n} for n in ns], link="none",
                streams=streams, simulated={name: of[name] for name in figures(simulated[0])})
    if args.json:  # also if a later handler fails
        run.write(args.json, rounds=args.rounds)
    print(*table(handler, [f"{title}={value}" for value in values], found), "", sep="\n",
          flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench ahead", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--fiber", action="store_true",
                        help="handlers are BLOCKING and run on a stack of their own")
    parser.add_argument("--rounds", type=int, default=100, metavar="N", help="[100]")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("handlers", nargs="*", metavar="HANDLER")
    args = parser.parse_args()
    record.check_names(parser, args.handlers, HANDLERS, "handler")
    if not 1 <= args.rounds <= 1000:
        parser.error("--rounds: from 1 to 1000")
    handlers = args.handlers or (QUICK if args.quick else HANDLERS)
    run = record.begin("ahead")
    print(record.headline(run.facts))
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        print(f"\nk requests are parsed before they are consumed; {STREAMS} streams\n")
        for handler in handlers:
            curve(run, pool, "k", handler, STREAMS, "--ahead", AHEAD, args)
        print(f"t requests of a connection are consumed in a step; {MANY_STREAMS} streams\n")
        for handler in (h for h in handlers if h in ROUND_HANDLERS):
            curve(run, pool, "t", handler, MANY_STREAMS, "--round-tasks", ROUND_TASKS,
                  args)
    return 0


if __name__ == "__main__":
    record.run_main("bench ahead", main, guard.Failed, subprocess.TimeoutExpired)
