# SPDX-License-Identifier: BSD-3-Clause
"""
`./dev test clients [PATTERN]`: large clients over TLS. Runs the tests whose name contains the
pattern, as tests/e2e/run.py does.
"""
import json
import os
import signal
import sys
import tempfile
import unittest

from tests.clients import case
from tests.e2e import run
from tests.netlab import limits, world
from tests.netlab.ended import exit_with


def main():
    pattern = "".join(sys.argv[1:2])
    found = run.flat(unittest.defaultTestLoader.discover(
        os.path.dirname(os.path.abspath(__file__)), "test_*.py", world.REPO))
    chosen = [test for test in found if pattern in test.id()]
    if not chosen:
        print(f"{pattern!r}: no test has this in its name")
        return 1
    signal.signal(signal.SIGALRM, run.too_long)
    limits.calibrate()
    results = run.Results()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as rows:
        unittest.TestSuite(chosen).run(run.Lines(rows))
        rows.seek(0)
        results.rows = [json.loads(row) for row in rows]
    if table := case.table():
        print(table, flush=True)
    passed, failed = results.counts()
    print(f"{passed} passed, {failed} failed", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    exit_with(main)
