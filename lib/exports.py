#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Prints the linker's version script of libnightjar: of all symbols it exports the functions that the
given headers declare with NJ_API.
"""
import re
import sys


def exported(text):
    """The functions of one header."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    declarations = re.findall(r"^NJ_API\b([^;]*);", text, re.M)
    names = [re.match(r"[^(]*\b(nj_\w+)\(", words) for words in declarations]
    if not all(names):
        raise ValueError(f"no function nj_... in: NJ_API{declarations[names.index(None)]};")
    return [name[1] for name in names]


def main():
    names = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as f:
            names += exported(f.read())
    print("{\nglobal:", *(f"    {name};" for name in sorted(set(names))), "local:\n    *;\n};",
          sep="\n")


if __name__ == "__main__":
    sys.exit(main())
