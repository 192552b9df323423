#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Writes the built-in table of media types as C: mime_types_table.py FILE... OUTPUT

Each FILE is in the syntax of mime.types: a type and its extensions in each line, '#' begins a
comment. Of an extension the last line applies, and the last file that has it. Case is ignored.
"""
import re
import sys

TYPE = re.compile(r"[\w!#$&^.+-]{1,127}/[\w!#$&^.+-]{1,127}", re.ASCII)
EXTENSION = re.compile(r"[\w.+~%-]{1,127}", re.ASCII)
HEAD = """\
/* SPDX-License-Identifier: BSD-3-Clause */
/* The built-in table of media types, sorted by extension. Written by lib/mime_types_table.py. */
#include "http/files/mime_types_file.h"

#define ROW(e, t)  {.ext = NJ_STR_INIT(e), .type = NJ_STR_INIT(t)}
#define TEXT(e, t) {.ext = NJ_STR_INIT(e), .type = {t NJ__MIME_CHARSET, sizeof t - 1}, \
                    .may_have_charset = true}

const struct nj__mime_row nj__mime_builtin[] = {
"""


def read(path, types):
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            kind, *extensions = line.partition("#")[0].split() or [None]
            if kind and not TYPE.fullmatch(kind):
                sys.exit(f"{path}:{number}: expected a media type such as text/html, not {kind}")
            for extension in extensions:
                if not EXTENSION.fullmatch(extension):
                    sys.exit(f"{path}:{number}: expected an extension such as html, "
                             f"not {extension}")
                types[extension.lower()] = kind


def main():
    *paths, output = sys.argv[1:]
    types = {}
    for path in paths:
        read(path, types)
    with open(output, "w", encoding="utf-8") as f:
        f.write(HEAD)
        # By bytes, as the search compares.
        for extension in sorted(types):
            kind = types[extension]
            macro = "TEXT" if kind.startswith("text/") else "ROW"
            f.write(f'    {macro}("{extension}", "{kind}"),\n')
        f.write("};\nconst uint32_t nj__n_mime_builtin = "
                "sizeof nj__mime_builtin / sizeof nj__mime_builtin[0];\n")


if __name__ == "__main__":
    main()
