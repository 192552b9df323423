#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Tests the pool of workers in virtual time (perf/delays). While a thread is free, a task waits only
for the wake-up of that thread, even if other threads are stuck. The benchmark's other pool
assigns tasks to threads ahead of time. Its tasks must wait longer, which shows that this test can
fail.
"""
import json
import subprocess
import sys

WORKERS, RATE, WORK_US, STUCK_MS, MS = 32, 2000, 20, 100, 2000
SEEDS = (1, 2)
# A thread that wakes up finds one of the tasks that are due at the same time, and wakes the next
# thread. So each task waits for one wake-up more, 5 us. A step of the driver takes 2 us.
LONGEST_NS = 100_000


def longest(program, pool, stuck_per_mille, seed):
    done = subprocess.run([program, *map(str, (pool, WORKERS, RATE, WORK_US, stuck_per_mille,
                                               STUCK_MS, MS, seed))],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["max_ns"]


def main():
    bad = False
    for stuck_per_mille in (0, 10, 50):  # on average at most 10 of 32 threads are stuck
        worst = {pool: max(longest(sys.argv[1], pool, stuck_per_mille, seed) for seed in SEEDS)
                 for pool in ("pool", "ahead")}
        print(f"{stuck_per_mille / 10} % stuck: a task waited {worst['pool']} ns at most; "
              f"{worst['ahead']} ns where tasks are assigned ahead")
        bad |= worst["pool"] > LONGEST_NS
    bad |= worst["ahead"] < STUCK_MS * 1_000_000 / 4  # at 5 % stuck tasks
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
