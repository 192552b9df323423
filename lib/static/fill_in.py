#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
fill_in.py TEMPLATE OUTPUT LIBRARY NAME=VALUE...

Writes the template with each @NAME@ replaced by its value. @LIBRARIES@ and @LINK_FLAGS@ are the
shared libraries that LIBRARY needs besides libc, "rte_eal;m" and "-lrte_eal -lm": a program that is
linked with the same code in a static library needs them too.
"""
import os
import re
import subprocess
import sys


def needed(library):
    """The names of the libraries, as for -l."""
    text = subprocess.run(["readelf", "--wide", "--dynamic", library], check=True,
                          capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"}).stdout
    return [name for name in re.findall(r"\(NEEDED\).*\[lib([^\]]+?)\.so[.\d]*\]", text)
            if name != "c"]


def main(template, output, library, *pairs):
    values = dict(pair.split("=", 1) for pair in pairs)
    names = needed(library)
    values["LIBRARIES"] = ";".join(names)
    values["LINK_FLAGS"] = " ".join("-l" + name for name in names)
    with open(template, encoding="utf-8") as f:
        text = f.read()
    with open(output, "w", encoding="utf-8") as f:
        f.write(re.sub(r"@(\w+)@", lambda match: values[match[1]], text))


if __name__ == "__main__":
    main(*sys.argv[1:])
