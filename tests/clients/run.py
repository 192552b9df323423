# SPDX-License-Identifier: BSD-3-Clause
"""
`./dev test clients [PATTERN]`: large clients over TLS. Runs the tests whose name contains the
pattern, as tests/e2e/run.py does.
"""
import os
import sys
import unittest

from tests.e2e import run
from tests.netlab import world
from tests.netlab.ended import exit_with


def main():
    pattern = "".join(sys.argv[1:2])
    found = run.flat(unittest.defaultTestLoader.discover(
        os.path.dirname(os.path.abspath(__file__)), "test_*.py", world.REPO))
    chosen = [test for test in found if pattern in test.id()]
    if not chosen:
        print(f"{pattern!r}: no test has this in its name")
        return 1
    return run.run(chosen)


if __name__ == "__main__":
    exit_with(main)
