# SPDX-License-Identifier: BSD-3-Clause
"""
The cases as inputs of fuzz targets: `python3 -m tests.http1.seeds FOLDER [FLAGS ...]` writes each
into a file of its own. With FLAGS, the fourth byte of the parameters that tests/fuzz/h1.c reads
first, each case is written once for each of them; without, the files have the bytes of the client
alone.
"""
import os
import sys

from tests.http1.cases import CASES


def parameters(flags):
    """Reads of 4096 bytes, a sink with room, no allocation that fails."""
    return bytes((0, 255, 255, int(flags, 0)))


def main(folder, *all_flags):
    os.makedirs(folder, exist_ok=True)
    prefixes = [parameters(flags) for flags in all_flags] or [b""]
    for number, case in enumerate(CASES):
        for prefix in prefixes:
            path = os.path.join(folder, f"{number:04}_{case.name}_{prefix[3:].hex()}")
            with open(path, "wb") as f:
                f.write(prefix + case.raw)


if __name__ == "__main__":
    main(*sys.argv[1:])
