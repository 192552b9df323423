#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
The explorer with a mistake compiled in (NJ_MUTANT, lib/sched/step.h) has to find it: each program
named on the command line must fail, and say what it found.
"""
import re
import subprocess
import sys

WHAT = {
    1: "after EPC it produces on, whoever else does",
    2: "does not take production back when no recruit can be had",
    3: "rests although it was asked to go round again",
    4: "a recruit that arrives stays pending",
    5: "a dispatch to a producer is forgotten",
    6: "NON_BLOCKING tasks send for recruits",
    7: "the tag stays after the task",
    8: "a refused recruit stays pending",
    9: "who waited too long gives up any seat",
    10: "a recruit in the queue counts as sure to come",
    12: "who waits looks at its seat, and then how often it was woken",
    13: "who leaves a seat is not counted any more before the seat is free",
}


def main():
    survivors = 0
    for program in sys.argv[1:]:
        number = int(re.search(r"-m(\d+)$", program)[1])
        done = subprocess.run([program, "", "quick"], capture_output=True, text=True)
        found = re.search(r"^explore: (.*)", done.stderr, re.M)
        killed = done.returncode == 1 and found
        print(f"m{number}: {WHAT[number]}: {found[1] if killed else 'NOT FOUND'}")
        survivors += not killed
    return 1 if survivors or len(sys.argv) != 1 + len(WHAT) else 0


if __name__ == "__main__":
    sys.exit(main())
