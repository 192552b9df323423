#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Prints libnightjar(3), a manual page in man(7), from the docstrings of the given public headers:
what each header is about, and each function with its declaration. `./dev options` calls it.
"""
import os
import re
import sys

LABELS = ("Context", "Ownership", "Errors", "Returns")
FUNCTION = re.compile(r"/\*\*\n((?: \*.*\n)+?) \*/\n"
                      r"((?:NJ_API|static inline|typedef)\b[^;{]*?)\s*[;{]")
BEGIN = r'''.\" SPDX-License-Identifier: BSD-3-Clause
.\" Written by `./dev options` from lib/include/nightjar, by lib/manual_page.py.
.TH LIBNIGHTJAR 3 "" "nightjar {version}" "Library Functions Manual"
.nh
.SH NAME
libnightjar \- HTTP/2 server in a program, on DPDK
.SH SYNOPSIS
.nf
.B #include <nightjar/nightjar.h>
.fi
.PP
.B cc program.c $(pkg\-config \-\-cflags \-\-libs nightjar)
.SH DESCRIPTION
The library runs a server in the process of a program: its own TCP stack on DPDK, HTTP/2, TLS, a
server of files, and handlers of the program.
The structs and enumerations are described in the headers, which
.I nightjar/nightjar.h
includes.
'''
END = r'''.SH SEE ALSO
.BR nightjar (1),
.BR pkg\-config (1)
'''


def escaped(text):
    """Text for a line of its own."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def block(lines):
    """Lines as they are: code."""
    return ".PP\n.RS 4\n.EX\n" + "".join(escaped(line) + "\n" for line in lines) + ".EE\n.RE\n"


def body(lines):
    """Paragraphs, lists ("- ") and code (indented by 4) of a docstring, without ` * `."""
    out, paragraph, mark = "", [], ".PP\n"

    def flush():
        nonlocal out, paragraph, mark
        if paragraph:
            out += mark + escaped(" ".join(paragraph)) + "\n"
        paragraph, mark = [], ".PP\n"

    code = []
    for line in [*lines, ""]:
        if line.startswith("    ") and not paragraph:
            code.append(line[4:])
            continue
        if code and line:
            out, code = out + block(code), []
        if not line:
            flush()
            if code:
                code.append("")
        elif line.startswith("- "):
            flush()
            paragraph, mark = [line[2:]], ".IP \\(bu 2\n"
        else:
            paragraph.append(line.strip())
    while code and not code[-1]:
        code.pop()
    return (out + block(code) if code else out).replace("`", "")


def content(comment):
    """The lines of a comment without their ` * `."""
    return [line[3:] if line.startswith(" * ") else "" for line in comment.rstrip("\n").split("\n")]


def function(comment, declaration):
    """The section of a function."""
    name = re.search(r"\b(nj_\w+)\)?\(", declaration)[1]
    parts = re.split(rf"^({'|'.join(LABELS)}): *", "\n".join(content(comment)), flags=re.M)
    code = re.sub(r"^(NJ_API|static inline) ", "", declaration).split("\n")
    indent = len(code[0]) - len(code[0].lstrip())
    out = f".SS {name}()\n.nf\n"
    out += "".join(escaped(line[indent:] if line.startswith(" " * indent) else line) + "\n"
                   for line in (code[0], *(re.sub(r"^\s+", "    ", x) for x in code[1:])))
    out += ".fi\n" + body(parts[0].split("\n"))
    for label, text in zip(parts[1::2], parts[2::2]):
        text = escaped(" ".join(text.replace("`", "").split()))
        out += f".TP\n.B {label}\n{text}\n"
    return out


def section(path, text):
    """The section of a header."""
    about = re.search(r"/\*\*\n \* @file\n((?: \*.*\n)+?) \*/", text)[1]
    functions = [function(*match.groups()) for match in FUNCTION.finditer(text)]
    if not functions:
        return ""
    return (f".SH {os.path.basename(path).upper()}\n"
            + body(content(about)).removeprefix(".PP\n") + "".join(functions))


def page(version, headers):
    """The page; `headers`: {path: text}."""
    return BEGIN.replace("{version}", version) + "".join(
        section(path, headers[path]) for path in sorted(headers)) + END


def main():
    headers = {}
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as f:
            headers[path] = f.read()
    sys.stdout.write(page(sys.argv[1], headers))


if __name__ == "__main__":
    sys.exit(main())
