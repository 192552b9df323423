#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
What a test puts in place of a function of lib, libc or DPDK has to be called by lib. Arguments: the
shared library of all layers, and the programs that are linked with it. The objects of a program may
not define a function or variable that the library defines or imports: the library would not use it,
and the test could pass for that reason.
"""
import glob
import os
import re
import subprocess
import sys


def symbols(*arguments):
    """(file, symbol) of each, without the version that libc's have."""
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
