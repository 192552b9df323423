# SPDX-License-Identifier: BSD-3-Clause
"""
Checks the pages in Markdown: each file and each nj_name that a page names is there, and the lines
of ARCHITECTURE.md are short enough to read the page as it is.
"""
import fnmatch
import os
import re

FOLDERS = "app|debian|docs|drivers-config|examples|lib|man|perf|systemd|tests"
NAMED = re.compile(rf"(?<![\w/.-])(?:(?:{FOLDERS})/[\w*][\w/*.-]*|"
                   r"[\w*-]+(?:/[\w*-]+)*\.(?:c|h|def))(?![\w/])")
IDENTIFIER = re.compile(r"`(?:struct |enum )?((?:nj|NJ)_\w+)(?:\(\))?`")
COLUMNS = {"ARCHITECTURE.md": 100}
# Files of other projects, and what is made by a command or belongs to C.
FOREIGN = {"docs/rfc/packetdrill.md"}
MADE = {"debian/changelog", "string.h"}
EXAMPLES = {"nj_noun_verb", "nj_x"}  # of names
AHEAD = "Next to come:"  # a line about what is not there yet


def tree(repo):
    """The files and folders of the repository, from its root."""
    found = set()
    for folder, below, names in os.walk(repo):
        below[:] = [d for d in below if not d.startswith((".", "__")) and
                    not (folder == repo and d.startswith("build"))]
        found.update(os.path.relpath(os.path.join(folder, n), repo) for n in [*names, *below])
    return found


def is_there(name, page, files):
    beside = os.path.normpath(os.path.join(os.path.dirname(page), name))
    return name in files or beside in files or name in MADE or \
        bool(fnmatch.filter(files, name) or fnmatch.filter(files, f"*/{name}"))


def check(page, text, files, known=None):
    """(line, complaint). `known`: the identifiers of the sources; None: they are not checked."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > COLUMNS.get(page, len(line)):
            yield number, f"{len(line)} columns, break it at {COLUMNS[page]}"
        if page in FOREIGN or line.startswith(AHEAD):
            continue
        for match in NAMED.finditer(line):
            name = match.group().rstrip("./-")
            if not is_there(name, page, files):
                yield number, f"{name} is not there, name what is there now"
        for match in IDENTIFIER.finditer(line) if known is not None else ():
            if match[1] not in known | EXAMPLES:
                yield number, f"no source has {match[1]}, name what is there now"


def pages(files):
    return sorted(name for name in files if name.endswith(".md"))


def figure(readme, performance):
    """(line, complaint) if README's figure is not the measured one."""
    found = re.search(r"([\d.]+)\s+million\s+requests\s+per\s+second", readme)
    measured = re.search(r"^\| 16x32 over memif, requests per core-second \|.*\| ([\d.]+) M \|",
                         performance, re.M)
    if not found or not measured:
        yield 1, "no figure, or none in docs/performance.md"
    elif round(float(measured[1]), 2) != float(found[1]):
        yield readme.count("\n", 0, found.start()) + 1, \
            f"{found[1]} million requests are {measured[1]} million in docs/performance.md"
