#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench idle [--seconds 60] [--tries 20] [--modes sleep ...] [--json FILE]

What a server without work costs, and how late it answers then, over a tap and with two lcores: the
CPU time of the process while nothing comes, in percent of one CPU, and the time from a request on
an open connection to the end of its response, each time after a second without packets.
"""
import argparse
import os
import statistics
import sys
import time

import record
from lab import Failed
from h2client import Client
from world import World

MODES = ("sleep", "interrupt", "pause", "spin")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
QUIET_SECONDS = 1


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND  # utime, stime


def busy(pid, seconds):
    """Percent of one CPU."""
    before, began = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_seconds(pid) - before) / (time.monotonic() - began)


def answers(world, tries):
    """Seconds until each answer."""
    client = Client(world.connect())
    client.response(client.request("/"))
    waits = []
    for _ in range(tries):
        time.sleep(QUIET_SECONDS)
        began = time.perf_counter()
        client.response(client.request("/"))
        waits.append(time.perf_counter() - began)
    return waits


def measure(mode, args):
    world = World("tap", lcores=2, options=["--idle", mode])
    world.root = os.path.join(world.scratch, "site")
    os.mkdir(world.root)
    with open(os.path.join(world.root, "index.html"), "w", encoding="ascii") as f:
        f.write("<title>still here</title>\n")
    with world:
        time.sleep(QUIET_SECONDS)
        return {"mode": mode, "busy_percent": busy(world.server.process.pid, args.seconds),
                "answers": answers(world, args.tries)}


def main():
    parser = argparse.ArgumentParser(prog="./dev bench idle", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--json", metavar="FILE", help="everything that was measured")
    args = parser.parse_args()
    found = []
    for mode in args.modes:
        one = measure(mode, args)
        found.append(one)
        waits = [1e3 * seconds for seconds in one["answers"]]
        print(f"{mode:<10} {one['busy_percent']:6.2f} % of a CPU; first answer: median "
              f"{statistics.median(waits):.2f} ms, {min(waits):.2f} to {max(waits):.2f}",
              flush=True)
    if args.json:
        record.dump(args.json, found)


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"bench: {failed}")
