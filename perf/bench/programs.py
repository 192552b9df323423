# SPDX-License-Identifier: BSD-3-Clause
"""
Prints the programs of the build that a module of perf.bench starts, as targets of ninja.
./dev bench builds them before it runs the module.
"""
import argparse
import importlib

from tests.netlab import programs


def main():
    parser = argparse.ArgumentParser(prog="python3 -m perf.bench.programs", description=__doc__)
    parser.add_argument("module", metavar="MODULE", help="such as perf.bench.peers")
    importlib.import_module(parser.parse_args().module)
    print(*programs.named(), sep="\n")


if __name__ == "__main__":
    main()
