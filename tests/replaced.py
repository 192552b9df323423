#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Checks the tests that are linked with the shared library of all layers. Arguments: the library, the
programs of the tests.

The library does not use a function that such a program defines in place of one of lib, libc or
DPDK, so that the test could pass for this reason. Therefore the objects of a program must not
define a function or variable that the library defines or imports.
"""
import glob
import os
import re
import subprocess
import sys


def symbols(*arguments):
    """[(file, symbol)] of nm, without versions of symbols."""
    text = subprocess.run(["nm", "-A", "-P", *arguments], check=True, capture_output=True,
                          text=True).stdout
    return re.findall(r"^(.*?): ([^\s@]+)", text, re.M)


def main():
    library, *programs = sys.argv[1:]
    of_library = {name for _, name in symbols("-D", library)}
    objects = {program: glob.glob(f"{program}.p/*.o") for program in programs}
    faults = [f"{program}: no object" for program, found in objects.items() if not found]
    faults += [f"{os.path.relpath(file)}: {name} is not used by {os.path.basename(library)}"
               for file, name in symbols("-g", "--defined-only", *sum(objects.values(), []))
               if name in of_library]
    print(*faults, f"{len(objects)} programs, {len(faults)} faults", sep="\n")
    return int(bool(faults) or not of_library)


if __name__ == "__main__":
    sys.exit(main())
