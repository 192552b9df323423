# SPDX-License-Identifier: BSD-3-Clause
"""
Generates docs/ewyk-sentences.md: each requirement of our scheduling, and the tests that cite it by
`EWYK 5.26` in a comment (of C, or the docstring of a test in Python). `./dev tidy --rfc` writes it
from docs/ewyk-sentences.txt.
"""
import re

from tests.tidy.rfc import cell, comments, listing, place, python_tests, rows

LIST, PAGE = "docs/ewyk-sentences.txt", "docs/ewyk-sentences.md"
LAST = 62
TAG = re.compile(r"\bEWYK 5\.(\d+)\b")
HEAD = f"""# Requirements of the scheduling, eat what you kill (EWYK)

Written by `./dev tidy --rfc` from `{LIST}` and from the comments of tests that cite a sentence
(`EWYK 5.26`). [ewyk.md](ewyk.md) explains the terms.
"""


def parse(text):
    """([(number, sentence, excuse, group, line)], [(line, complaint)])"""
    found, complaints = [], []
    for line, group, cells in rows(text):
        if len(cells) not in (2, 3) or not cells[0].isdigit() or not cells[1] or \
                (len(cells) == 3 and not re.fullmatch(r"(n/a|not yet): .+", cells[2])):
            complaints.append((line, "write: number | sentence [| n/a: why or not yet: what]"))
            continue
        found.append((int(cells[0]), cells[1], cells[2] if len(cells) == 3 else "", group, line))
    if [f[0] for f in found] != list(range(1, LAST + 1)):
        complaints.append((1, f"the numbers are not 1 to {LAST}"))
    return found, complaints


def tests_of(sources, functions):
    """{sentence: {(file below tests, function or "")}}"""
    found = {}
    for source in sources:
        if not source.under("tests") or source.under("tests/tidy"):
            continue
        if source.is_c:
            known = list(functions(source))
            named = [(place(source, known, first, last), comment)
                     for first, last, comment in comments(source.text)]
        elif source.path.endswith(".py"):
            named = list(python_tests(source))
        else:
            continue
        for name, comment in named:
            for number in TAG.findall(comment):
                found.setdefault(int(number), set()).add((source.path[6:], name))
    return found


def check(sentences, tests):
    """(line of the list, complaint)"""
    for number, _, excuse, _, line in sentences:
        if number in tests and excuse:
            yield line, f"sentence {number} has a test, remove \"{excuse}\""
        if number not in tests and not excuse:
            yield line, f"sentence {number} has no test, write one or say why not"
    for number in sorted(set(tests) - {s[0] for s in sentences}):
        path, name = sorted(tests[number])[0]
        yield 1, f"tests/{path} {name} names sentence {number}, which is not in the list"


def page(sentences, tests):
    kept = sum(s[0] in tests for s in sentences)
    out = [HEAD, f"{len(sentences)} sentences, {kept} of them tested.", ""]
    group = None
    for number, text, excuse, of, _ in sentences:
        if of != group:
            group = of
            out += ([""] if out[-1] else []) + [f"## {of}", "", "| # | sentence | tests |",
                                                "|---|---|---|"]
        where = listing(tests.get(number, ()))
        out.append(f"| {number} | {cell(text)}{f' ({cell(excuse)})' if excuse else ''} | {where} |")
    return "\n".join(out) + "\n"


def matrix(list_text, sources, functions):
    """(page, [(line of the list, complaint)])"""
    sentences, complaints = parse(list_text)
    tests = tests_of(sources, functions)
    return page(sentences, tests), complaints + list(check(sentences, tests))
