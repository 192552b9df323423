#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the C file with which the server knows these files: embed.py OUTPUT FILE.args ..."""
import json
import os
import sys


def main(output, *files):
    with open(output, "w") as out:
        out.write('#include "config/eal_preset_file.h"\n'
                  "const struct nj_preset_file nj_preset_files[] = {\n")
        for path in files:
            name = os.path.basename(path).removesuffix(".args")
            with open(path, encoding="ascii") as text:
                lines = "\n     ".join(json.dumps(line) for line in text)
            out.write(f'    {{"{name}",\n     {lines}}},\n')
        out.write("    {NULL, NULL},\n};\n")


main(*sys.argv[1:])
