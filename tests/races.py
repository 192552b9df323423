#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
A program with a mistake in the order of memory compiled in: ThreadSanitizer has to tell of a data
race in production, in one of some runs.
"""
import os
import subprocess
import sys

RUNS = 5


def main():
    for seed in range(1, RUNS + 1):
        done = subprocess.run([sys.argv[1]], capture_output=True, text=True, errors="replace",
                              env=os.environ | {"NJ_TEST_SEED": str(seed)})
        said = done.stdout + done.stderr
        if "ThreadSanitizer: data race" in said and "produce" in said:
            print(f"a data race was found with seed {seed}")
            return 0
    print(f"no data race in {RUNS} runs")
    return 1


if __name__ == "__main__":
    sys.exit(main())
