# SPDX-License-Identifier: BSD-3-Clause
"""
./dev flaky [--runs N] [--load] [--series NAME] [--table] [PATTERN]

Runs end-to-end tests until each class of tests has N runs, with --load beside processes that
compete for the machine (load.py), and prints a table of those that failed, and of the ten that took
longest, with the share of their time limit. Each test runs on the same build as in `./dev test`,
four classes at a time. Each run of a class appends a line to flaky.jsonl.

The runs of one version of the tests are a series. A call runs only what its series still lacks, so
that an interrupted call can be continued. The default name of a series is the commit and, if files
differ from it, a checksum of the difference. The exit status is 1 if a test of the series failed.
"""
import argparse
import collections
import json
import os
import secrets
import signal
import sys
import zlib

from tests import builds
from tests.e2e import load, run
from tests.mutants import verified
from tests.netlab.ended import ended, exit_with

RESULTS = run.RUNS
SLOWEST = 10  # rows of the table


def version():
    """The commit, and a checksum of what differs from it."""
    changes = verified.git("diff", "HEAD", "--", ".", f":!{os.path.relpath(RESULTS, builds.REPO)}")
    new = verified.git("ls-files", "--others", "--exclude-standard", "tests")
    if changes is None:
        return "unknown"
    for path in new.split():
        with open(os.path.join(builds.REPO, path), errors="replace", encoding="utf-8") as f:
            changes += f.read() if path != os.path.relpath(RESULTS, builds.REPO) else ""
    commit = verified.git("rev-parse", "--short=8", "HEAD").strip()
    return f"{commit}+{zlib.crc32(changes.encode()):08x}" if changes else commit


def read_rows():
    """The rows of the file. A line that an interrupted call did not complete is removed from it."""
    if not os.path.exists(RESULTS):
        return []
    with open(RESULTS, "r+", encoding="utf-8") as f:
        lines = f.readlines()
        if lines and not lines[-1].endswith("\n"):
            lines.pop()
            f.seek(0)
            f.writelines(lines)
            f.truncate()
    return [json.loads(line) for line in lines]


def runs_of(rows, series, with_load):
    """{class: number of runs}"""
    return collections.Counter(row["class"] for row in rows
                               if (row["series"], row["load"]) == (series, with_load))


def line_of(job, series, with_load, tests):
    """What one run of a class found: {test: seconds, or [seconds, message]}."""
    found = {}
    for row in tests:
        name = row["test"].rpartition(".")[2] if row["test"] in job.tests else row["test"]
        found[name] = [row["seconds"], row["failure"]] if "failure" in row else row["seconds"]
    return {"series": series, "load": with_load, "class": job.name,
            "seconds": tests[0]["class_seconds"] if tests else 0, "tests": found}


def measure(jobs, runs, series, with_load):
    done = runs_of(read_rows(), series, with_load)
    left = sum(max(0, runs - done[job.name]) for job in jobs)
    if not left:
        print(f"nothing is left to run: series {series} has {runs} runs of each class")

    def append(job, output, tests):
        nonlocal left
        left -= 1
        failed = sum("failure" in row for row in tests)
        print(f"{job.name}: {len(job.tests)} tests, {failed} failed; {left} runs of classes left",
              flush=True)
        if failed:
            print(output, end="", flush=True)
        with open(RESULTS, "a", encoding="utf-8") as f:
            f.write(json.dumps(line_of(job, series, with_load, tests)) + "\n")
    for number in range(runs):
        run.run_jobs([job for job in jobs if done[job.name] <= number], run.WIDTH, append)


def table(rows, series, pattern):
    """
    Prints a line for each test that failed, and for the slowest of the others. Returns how many
    tests failed.
    """
    n_failed = 0
    found = collections.defaultdict(list)  # {(load, test): [(seconds, message)]}
    for row in rows:
        if row["series"] == series:
            for name, result in row["tests"].items():
                seconds, message = result if isinstance(result, list) else (result, None)
                test = name if "." in name else f"{row['class']}.{name}"
                if pattern in test:
                    found[row["load"], test].append((seconds, message))
    for with_load in (False, True):
        mine = {test: results for (of, test), results in found.items() if of == with_load}
        if not mine:
            continue
        runs = [len(results) for results in mine.values()]
        bad = {test: results for test, results in mine.items() if any(m for _, m in results)}
        print(f"\nseries {series}, {'with' if with_load else 'without'} load: {len(mine)} tests, "
              f"{min(runs)} to {max(runs)} runs of each; {len(bad)} failed at least once")
        n_failed += len(bad)
        slow = sorted(mine, key=lambda test: -max(s for s, _ in mine[test]))[:SLOWEST]
        names = sorted(bad, key=lambda test: -sum(bool(m) for _, m in bad[test])) + \
            [test for test in slow if test not in bad]
        print(f"{'runs':>5} {'failed':>6} {'longest':>9} {'of limit':>8}  test")
        for test in names:
            results = mine[test]
            longest = max(s for s, _ in results)
            messages = collections.Counter(m for _, m in results if m)
            print(f"{len(results):>5} {sum(messages.values()):>6} {longest:>7.1f} s "
                  f"{longest / run.TEST_SECONDS:>8.0%}  {test}")
            for message, n in messages.most_common(3):
                print(f"{'':>33}{n}x {message}")
    return n_failed


def main():
    parser = argparse.ArgumentParser(
        prog="./dev flaky", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__.split("\n", 3)[3])
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs of each class [3]")
    parser.add_argument("--load", action="store_true",
                        help="while other processes use the CPUs and memory")
    parser.add_argument("--series", help="name of the series [the version of the files]")
    parser.add_argument("--table", action="store_true", help="run nothing, print the table")
    parser.add_argument("pattern", nargs="?", default="", help="a part of the tests' names")
    args = parser.parse_args()
    args.series = args.series or version()
    if args.runs < 1:
        parser.error("--runs must be at least 1")
    if not args.table:
        if os.geteuid() != 0:
            print("flaky: the tests need root: sudo ./dev flaky", file=sys.stderr)
            return 1
        signal.signal(signal.SIGTERM, ended)
        jobs = run.jobs_of([t for t in run.all_tests() if args.pattern in run.name_of(t)])
        if not jobs:
            print(f"flaky: no end-to-end test has {args.pattern!r} in its name", file=sys.stderr)
            return 1
        if args.load:
            seed = secrets.randbits(32)
            print(f"load: seed {seed}")
            with load.competing(seed):
                measure(jobs, args.runs, args.series, True)
        else:
            measure(jobs, args.runs, args.series, False)
    return int(table(read_rows(), args.series, args.pattern) > 0)


if __name__ == "__main__":
    exit_with(main)
