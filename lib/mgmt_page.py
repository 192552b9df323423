#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Writes the live page as C: mgmt_page.py HTML CSS JS OUTPUT

The style sheet and the script stand in the document, in place of <!-- css --> and <!-- js -->. Its
Content-Security-Policy permits these two by their hashes, and requests to the server itself.
"""
import base64
import hashlib
import sys

HEAD = """\
/* SPDX-License-Identifier: BSD-3-Clause */
/* The live page. Written by lib/mgmt_page.py. */
#include "mgmt/page.h"

"""


def source(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def main():
    *inputs, output = sys.argv[1:]
    html, css, js = (open(path, encoding="utf-8").read() for path in inputs)
    page = html.replace("<!-- css -->", f"<style>{css}</style>").replace(
        "<!-- js -->", f"<script>{js}</script>").encode()
    policy = ("default-src 'none'; connect-src 'self'; img-src data:; "
              f"script-src {source(js)}; style-src {source(css)}; "
              "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    lines = [",".join(map(str, page[i:i + 24])) + "," for i in range(0, len(page), 24)]
    with open(output, "w", encoding="ascii") as f:
        f.write(HEAD + "const unsigned char nj__mgmt_page[] = {\n" + "\n".join(lines) +
                f"\n}};\nconst size_t nj__mgmt_page_bytes = sizeof nj__mgmt_page;\n"
                f'const char nj__mgmt_page_policy[] = "{policy}";\n')


if __name__ == "__main__":
    main()
