# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench scrape [--connections N] [--scrapes K] [--json FILE]

How long a scrape of /metrics takes while N (100,000) connections are open, in a release build of
the server. The clients are those of ./dev bench memory. K (300) scrapes follow each other over the
Unix socket; after a tenth of them requests are sent over random connections. The exit status is 1
if the slowest scrape takes 50 ms or longer.
"""
import argparse
import re
import statistics
import time

from perf.bench import record
from perf.bench.memory import check_room
from tests.netlab import management
from tests.netlab.crowd import Crowd
from tests.netlab.world import Failed

BOUND_MS = 50


def measure(n, n_scrapes):
    """Durations in ms, and the bytes of an answer."""
    took = []
    with Crowd(n) as crowd:
        crowd.open(n)
        for i in range(n_scrapes):
            if i == n_scrapes // 10:
                crowd.command(f"get {min(n, 1000)}")
            began = time.monotonic()
            text = management.ask(crowd.management, "GET", "/metrics").text
            took.append(1000 * (time.monotonic() - began))
        open_ones = int(re.search(r"(?m)^nightjar_connections (\d+)$", text)[1])
        if open_ones != n:
            raise Failed(f"{open_ones} of {n} connections are open")
        crowd.abort()
    return {"connections": n, "bytes": len(text), "ms": took}


def show(result):
    took = sorted(result["ms"])
    print(f"{result['connections']:,} connections, {len(took)} scrapes of "
          f"{result['bytes']:,} bytes: median {statistics.median(took):.2f} ms, "
          f"99 % {took[(99 * len(took) + 99) // 100 - 1]:.2f} ms, longest {took[-1]:.2f} ms")
    if took[-1] >= BOUND_MS:
        raise Failed(f"the longest scrape took {took[-1]:.1f} ms, and the bound is {BOUND_MS} ms")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench scrape", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=100_000, metavar="N")
    parser.add_argument("--scrapes", type=int, default=300, metavar="K")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    if not (1 <= args.connections <= 1 << 20 and args.scrapes >= 10):
        parser.error("from 1 to 1048576 connections, and 10 scrapes or more")
    check_room(args.connections)
    result = measure(args.connections, args.scrapes)
    if args.json:
        record.dump(args.json, result)
    show(result)


if __name__ == "__main__":
    record.run_main("bench scrape", main, Failed)
