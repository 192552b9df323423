#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
The pool of workers in virtual time (perf/delays): while a thread is free, a task waits for nothing
but that thread's wake-up, however many others are stuck. The pool that assigned tasks ahead of
time, which the bench compares it with, does worse, so this could fail.
"""
import json
import subprocess
import sys

WORKERS, RATE, WORK_US, STUCK_MS, MS = 32, 2000, 20, 100, 2000
SEEDS = (1, 2)
# Of the tasks that are due at one time each waits for the wake-up of one thread, 5 us, which finds
# the next one; a step of the driver takes 2 us.
LONGEST_NS = 100_000


def longest(program, pool, stuck_per_mille, seed):
    done = subprocess.run([program, *map(str, (pool, WORKERS, RATE, WORK_US, stuck_per_mille,
                                               STUCK_MS, MS, seed))],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["max_ns"]


def main():
    bad = False
    for stuck_per_mille in (0, 10, 50):  # at most 10 of 32 threads on the average
        worst = {pool: max(longest(sys.argv[1], pool, stuck_per_mille, seed) for seed in SEEDS)
                 for pool in ("pool", "ahead")}
        print(f"{stuck_per_mille / 10} % stuck: a task waited {worst['pool']} ns at most; "
              f"{worst['ahead']} ns where tasks are assigned ahead")
        bad |= worst["pool"] > LONGEST_NS
    bad |= worst["ahead"] < STUCK_MS * 1_000_000 / 4  # with most of them stuck
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
