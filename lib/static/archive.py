#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
archive.py ARCHIVE EXPORTS COMPILER... -- LIBRARY...

Links the static libraries into one object, in which only the functions of the version script
EXPORTS are global, and writes it as a static library. Objects for link-time optimisation become
machine code, which any compiler can link.
"""
import os
import re
import subprocess
import sys
import tempfile


def main(archive, exports, *rest):
    at = rest.index("--")
    compiler, libraries = rest[:at], rest[at + 1:]
    with open(exports, encoding="utf-8") as f:
        names = re.findall(r"^\s+(nj_\w+);", f.read(), re.M)
    if not names:
        sys.exit(f"{exports} exports nothing")
    with tempfile.TemporaryDirectory(prefix="nj-archive-") as folder:
        whole, keep = os.path.join(folder, "nightjar.o"), os.path.join(folder, "names")
        with open(keep, "w", encoding="utf-8") as f:
            f.write("".join(name + "\n" for name in names))
        subprocess.run([*compiler, "-r", "-nostdlib", "-Wl,--whole-archive", *libraries,
                        "-Wl,--no-whole-archive", "-o", whole], check=True)
        subprocess.run(["objcopy", f"--keep-global-symbols={keep}", whole], check=True)
        if os.path.exists(archive):
            os.remove(archive)
        subprocess.run(["ar", "rcsD", archive, whole], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
