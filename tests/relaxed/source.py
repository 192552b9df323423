# SPDX-License-Identifier: BSD-3-Clause
"""
Verifies that the checked code is the built code. Arguments: the build folder, the checker,
libnightjar and the library of perf/reference.

Each library source in the checker is the same file, with the same headers and definitions. The
only exception is stdatomic.h of this folder.
strategy_state.c, reserved_threads.c and dual.c are among them.
"""
import os
import subprocess
import sys

from tests.relaxed import built

HERE = os.path.dirname(os.path.realpath(__file__))
REPO = os.path.dirname(os.path.dirname(HERE))
SHIM = os.path.join(HERE, "stdatomic.h")
MUST = ("lib/strategy/strategy_state.c", "lib/strategy/reserved_threads.c", "perf/reference/dual.c")


def read(build, command):
    """The files of this repository that a compilation reads, except stdatomic.h."""
    words = iter(command)
    listing = [w for w in words if w not in ("-c", "-MD") and
               not (w in ("-o", "-MF", "-MQ") and next(words))]
    done = subprocess.run(listing + ["-M"], cwd=build, capture_output=True, text=True, check=True)
    names = done.stdout.replace("\\\n", " ").split()[1:]
    paths = {os.path.realpath(os.path.join(build, name)) for name in names}
    return {p for p in paths if p.startswith(REPO + "/")} - {SHIM}


def definitions(command):
    """Compiler arguments that could change the meaning of the code."""
    return {a for a in command if a.startswith(("-D", "-U", "-include", "-imacros"))}


def main():
    build, checker, *libraries = sys.argv[1:]
    shipped = {source: command for library in libraries
               for source, command in built.commands(build, library).values()}
    checked = {source: command for source, command in built.commands(build, checker).values()
               if os.path.dirname(source) != HERE}
    faults = [f"{name} is not checked" for name in MUST if os.path.join(REPO, name) not in checked]
    for source, command in sorted(checked.items()):
        name = os.path.relpath(source, REPO)
        if source not in shipped:
            faults.append(f"{name} is checked, and is not part of a library")
            continue
        here, there = read(build, command), read(build, shipped[source])
        if source not in here:
            faults.append(f"{name}: the compiler does not list the files that it reads")
        faults += [f"{name}: {os.path.relpath(path, REPO)} is read in one of the two builds only"
                   for path in sorted(here ^ there)]
        if definitions(command) != definitions(shipped[source]):
            faults.append(f"{name}: different definitions: "
                          f"{definitions(command) ^ definitions(shipped[source])}")
    print("\n".join(faults) or f"{len(checked)} sources are the same as in the libraries")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
