# SPDX-License-Identifier: BSD-3-Clause
"""
Generates the pages of docs/rfc: each requirement of a protocol that we implement, its clause, the
code that cites the clause, the tests that cite the sentence. `./dev tidy --rfc` writes them.

The lists are in LISTS. Code cites `RFC 9293 3.8.4` in a comment. A test cites `Sentence 66`
(`sentences 43, 45`, `sentences 98 - 100`) in the comment directly above it: a Criterion Test, the
head of a packet script, the docstring of an end-to-end test. So a number occurs in one list only.
Citations are located by function and test, not by line, so that moved code does not change a page.
"""
import ast
import re
from typing import NamedTuple


class List(NamedTuple):
    """Sentences `first` to `last` are in `clauses`; `page` is made of them. `about` says what else
    a reader of the page needs, such as the RFCs. `differences`: a table of C, of what a fuzz target
    compares, for the end of the page."""
    clauses: str
    page: str
    title: str
    first: int
    last: int
    about: str
    differences: str = ""


LISTS = (
    List("docs/rfc/tcp-clauses.txt", "docs/rfc/tcp.md", "TCP", 1, 125,
         "Most tests of `unit/tcp_*` run for IPv4 and again for IPv6."),
    List("docs/rfc/http1-clauses.txt", "docs/rfc/http1.md", "HTTP/1.1", 201, 348,
         "The sentences are of RFC 9112, and of RFC 9110 where they concern messages. Those with "
         "\"not yet\" are not kept.", "tests/fuzz/h1_differences.h"),
)

# A section, and optionally one of the eight steps of RFC 9293 3.10.7.4.
STEPS = "first|second|third|fourth|fifth|sixth|seventh|eighth"
SECTION = r"(?:[A-Z]\.)?\d+(?:\.\d+)*(?:,? (?:%s)\b)?" % STEPS
SECTIONS = rf"{SECTION}(?:(?:,| and| -|, and) {SECTION}(?![\w.]*\w))*"
CITATION = re.compile(rf"(RFC \d+|IEEE 802\.1Q)(?!\d)(?: ({SECTIONS})(?![\w']|\.\d))?")
NUMBERS = r"\d+(?:(?:,| and|, and| to| -| \N{EN DASH}) \d+)*"
SENTENCES = re.compile(rf"[Ss]entences? ({NUMBERS})")


class Sentence:
    """`excuse`: the fourth cell, "ADR 4" or "not yet: ...", or nothing."""

    def __init__(self, number, clauses, text, excuse, group, line):
        self.number, self.clauses, self.text, self.excuse = number, clauses, text, excuse
        self.group, self.line = group, line
        self.adr = int(excuse[4:]) if excuse.startswith("ADR ") else 0


def numbers(text):
    """{43, 45, 98, 99, 100} of "43, 45, 98 - 100"."""
    found = set()
    for first, last in re.findall(r"(\d+)(?: (?:to|-|\N{EN DASH}) (\d+))?", text):
        found.update(range(int(first), int(last or first) + 1))
    return found


def flat(comment):
    """A comment as one line, without asterisks."""
    return re.sub(r"\s+", " ", re.sub(r"^\s*(?:/\*+|\*/|\*|//|#)|\*/", " ", comment, flags=re.M))


def sentences_of(comment):
    return set().union(*(numbers(m.group(1)) for m in SENTENCES.finditer(flat(comment))))


def steps(first, last):
    """The sections from first to last, both of the same length: 5.4 - 5.7."""
    stem, a = first.rpartition(".")[0], int(first.rpartition(".")[2])
    if last.rpartition(".")[0] != stem:
        return [first, last]
    return [f"{stem}.{n}" if stem else str(n) for n in range(a, int(last.rpartition(".")[2]) + 1)]


def citations_of(comment):
    """{(document, section)} cited in a comment; section "" for the whole document."""
    found = set()
    for match in CITATION.finditer(flat(comment)):
        document, listed = match.groups()
        if not listed:
            found.add((document, ""))
            continue
        listed = re.sub(rf",? ({STEPS})\b", r"#\1", listed)
        for part in re.split(r", and |, | and ", listed):
            ends = part.split(" - ")
            for section in steps(*ends) if len(ends) == 2 and "#" not in part else ends:
                found.add((document, section.replace("#", " ")))
    return found


def answers(cited, clause):
    """Does the code cite the clause, or a part of it?"""
    (document, section), (wanted_document, wanted) = cited, clause
    part = re.match(re.escape(wanted) + r"[. ]", section) is not None
    return document == wanted_document and (not wanted or section == wanted or part)


# --- the list -----------------------------------------------------------------------------------

def rows(text):
    """(line, group, cells) of each row `cell | cell` of a list whose groups begin with [group]."""
    group = ""
    for line, row in enumerate(text.split("\n"), 1):
        if match := re.fullmatch(r"\[(.+)\]", row.strip()):
            group = match.group(1)
        elif row.strip() and not row.startswith("#"):
            yield line, group, [cell.strip() for cell in row.split("|")]


def parse_clauses(listed, text):
    """(sentences, complaints) of a list; a complaint is (line, text)."""
    found, complaints = [], []
    for line, group, cells in rows(text):
        if len(cells) not in (3, 4) or not cells[0].isdigit() or not cells[2]:
            complaints.append((line, "write: number | RFC 9293 3.8.4; ... | sentence [| ADR 1 or "
                               "not yet: why]"))
            continue
        clauses = set().union(*(citations_of(c) for c in cells[1].split(";")))
        excuse = cells[3] if len(cells) == 4 else ""
        if not clauses or (len(cells) == 4 and not re.fullmatch(r"ADR \d+|not yet: .+", excuse)):
            complaints.append((line, f"sentence {cells[0]} has no clause, or an invalid excuse"))
            continue
        found.append(Sentence(int(cells[0]), sorted(clauses, key=order), cells[2], excuse, group,
                              line))
    seen = [s.number for s in found]
    if seen != sorted(set(seen)):
        complaints.append((1, "the numbers do not ascend"))
    for number in sorted(set(range(listed.first, listed.last + 1)) - set(seen)):
        complaints.append((1, f"sentence {number} is not in the list"))
    for s in found:
        if not listed.first <= s.number <= listed.last:
            complaints.append((s.line, f"the list has the numbers {listed.first} - {listed.last}"))
    return found, complaints


def order(clause):
    document, section = clause
    return int(re.sub(r"\D", "", document)), [int(n) for n in re.findall(r"\d+", section)], section


# --- code and tests -----------------------------------------------------------------------------

def comments(text):
    """(first line, last line, comment) of C; comments on consecutive lines are joined."""
    pattern = r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    for match in re.finditer(pattern, text, re.S):
        if match.group()[0] == "/":
            first = text.count("\n", 0, match.start()) + 1
            yield first, first + match.group().count("\n"), match.group()


def define_at(lines, number):
    """The macro that the line defines, or the first one after a comment that ends there."""
    for line in lines[number - 1:number + 1]:
        if match := re.match(r"\s*#\s*define\s+(\w+)", line):
            return match.group(1)
    return ""


def place(source, functions, first, last):
    """The subject of a comment: a function, a macro, or the file ("")."""
    for name, begin, end in functions:
        if begin <= first <= end or last + 1 == begin:
            return name
    return define_at(source.lines, last)


def code_of(sources, functions):
    """{(document, section): {(file, function or "")}}"""
    found = {}
    for source in sources:
        if not source.is_c or not source.under("lib"):
            continue
        known = list(functions(source))
        for first, last, comment in comments(source.text):
            for cited in citations_of(comment):
                found.setdefault(cited, set()).add(
                    (source.path[4:], place(source, known, first, last)))
    return found


def c_tests(source):
    """(name, the comment above it), also for a test with `.init = ...`."""
    above = {last: comment for _, last, comment in comments(source.text)}
    for number, line in enumerate(source.lines, 1):
        if match := re.match(r"Test\((\w+), (\w+)", line):
            yield "_".join(match.groups()), above.get(number - 1, "")


def python_tests(source):
    tree = ast.parse(source.text)
    yield "", ast.get_docstring(tree) or ""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            yield node.name, ast.get_docstring(node) or ""


def script_head(text):
    return "\n".join(line for line in re.split(r"\n(?!//)", text)[0].split("\n")
                     if line.startswith("//"))


def tests_of(sources, scripts):
    """{sentence: {(file, test or "")}}. `scripts`: {path: text} of packet scripts."""
    found = {}
    named = [(path, "", script_head(text)) for path, text in scripts.items()
             if path.count("/") == 2]  # passing scripts: neither pending nor broken
    for source in sources:
        if source.is_c and source.under("tests/unit"):
            named += [(source.path, *test) for test in c_tests(source)]
        elif source.path.endswith(".py") and source.under("tests/e2e"):
            named += [(source.path, *test) for test in python_tests(source)]
    for path, name, comment in named:
        for number in sentences_of(comment):
            found.setdefault(number, set()).add((path[6:], name))
    return found


# --- the page -----------------------------------------------------------------------------------

def narrow(places):
    """Prefers functions to files, and .c to .h."""
    for better in (lambda p: p[1] and p[0].endswith(".c"), lambda p: p[1],
                   lambda p: p[0].endswith(".c")):
        if chosen := {p for p in places if better(p)}:
            return chosen
    return places


def listing(places):
    """`a.c` f, g; `b.c`"""
    by_file = {}
    for path, name in sorted(places):
        by_file.setdefault(path, []).append(name)
    return "<br>".join(f"`{path}` {', '.join(filter(None, names))}".strip()
                       for path, names in by_file.items())


def code_for(sentence, code):
    """[(clause, places)]"""
    for clause in sentence.clauses:
        yield clause, set().union(*(where for cited, where in code.items()
                                    if answers(cited, clause)))


def cell(text):
    return text.replace("|", "\\|")


def page(listed, sentences, code, tests):
    out = [f"# Requirements of {listed.title}, and their tests", "",
           f"Written by `./dev tidy --rfc` from `{listed.clauses}`, from the comments in "
           "`lib` that cite a clause,", "and from the comments above tests that cite a sentence.",
           listed.about, ""]
    kept = sum(s.number in tests and not s.excuse.startswith("not") for s in sentences)
    out += [f"{len(sentences)} sentences, {kept} of them kept and tested.", ""]
    group = None
    for s in sentences:
        if s.group != group:
            group = s.group
            out += [f"## {group}", "", "| # | sentence | clause | code | tests |",
                    "|---|---|---|---|---|"]
        places = set().union(*(narrow(p) for _, p in code_for(s, code)))
        clauses = "<br>".join(" ".join(clause).strip() for clause in s.clauses)
        excuse = f"[{s.excuse}](../adr/{s.adr_file})" if s.adr else s.excuse
        text = cell(s.text + (f" ({excuse})" if excuse else ""))
        out.append(f"| {s.number} | {text} | {clauses} | {listing(places)} | "
                   f"{listing(tests.get(s.number, ()))} |")
        following = [x.group for x in sentences if x.number > s.number][:1]
        if following and following[0] != group:
            out.append("")
    return "\n".join(out) + "\n"


ROW = re.compile(r'\{((?:"[^"]*",?\s*)+)([A-Z_]+),')
SIDES = {"WE": "nightjar refuses", "THEY": "http_parser refuses"}


def differences(path, text):
    """The section with the rows of the table `text`: name, clause, what nightjar does."""
    out = ["", "## Differences from http_parser", "",
           "`./dev fuzz h1_differential` gives the same bytes to nightjar and to http_parser, the "
           "parser of Node.js until version 11,", "as Debian builds it (without its strict mode). "
           f"It ends at a difference that is not in this table (`{path}`).", "",
           "| difference | clause | what nightjar does | who refuses |", "|---|---|---|---|"]
    for strings, kind in ROW.findall(text):
        name, clause, *does = re.split(r'",\s*"', re.sub(r'"\s+"', "", strings).strip()[1:-2])
        out.append(f"| {name} | {clause} | {cell(does[0])} | "
                   f"{SIDES.get(kind.partition('_')[0], 'neither')} |")
    return "\n".join(out) + "\n"


def check(sentences, code, tests):
    """(line of the list, complaint)"""
    for s in sentences:
        for clause, places in code_for(s, code):
            if not places and not s.excuse:
                yield s.line, (f"no code names {' '.join(clause).strip()} for sentence "
                               f"{s.number}, cite it where it is obeyed")
        if s.number not in tests and not s.excuse:
            yield s.line, f"sentence {s.number} has no test, write one or an ADR"


def check_numbers(tests):
    """(test file, complaint) of tests that cite a sentence of no list."""
    known = {number for listed in LISTS for number in range(listed.first, listed.last + 1)}
    for number in sorted(set(tests) - known):
        path, name = sorted(tests[number])[0]
        yield f"tests/{path}", f"{name} names sentence {number}, which is in no list"


def matrix(listed, list_text, code, tests, adrs):
    """(page, [(line of the list, complaint)]). `code`, `tests`: of code_of() and tests_of();
    `adrs`: the names of the files in docs/adr."""
    sentences, complaints = parse_clauses(listed, list_text)
    for s in sentences:
        files = [name for name in adrs if name.startswith(f"{s.adr:04}-")]
        s.adr_file = files[0] if files else ""
        if s.adr and not files:
            complaints.append((s.line, f"there is no ADR {s.adr}"))
    return page(listed, sentences, code, tests), complaints + list(check(sentences, code, tests))
