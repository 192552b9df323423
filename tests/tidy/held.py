# SPDX-License-Identifier: BSD-3-Clause
"""
Generates the table "What a peer can make the server hold" of docs/limits.md. Each place in lib
where the server keeps something for a peer has a comment

    /* Held: PLACE | ACCOUNT | BOUND | DEADLINE | COUNTER, COUNTER */

`./dev tidy --rfc` writes the table. Counters are names of lib/telem/counters_*.def.
"""
import re

PAGE = "docs/limits.md"
COUNTERS = tuple(f"lib/telem/counters_{of}.def" for of in ("packet", "tcp", "conn", "http"))
BEGIN = "<!-- Written by ./dev tidy --rfc from the comments \"Held:\" in lib. -->\n"
END = "<!-- end -->\n"
HEAD = ("| held for a peer | counted for | bound | deadline | counter |\n"
        "|---|---|---|---|---|\n")
PLACE = re.compile(r"\bHeld: (.+?)\*/", re.S)
COLUMNS = 5


def flat(text):
    return re.sub(r"\s*\n\s*\*?\s*", " ", text).strip()


def places(sources, counters):
    """([row], [(path, line, complaint)])"""
    found, complaints = [], []
    for source in sources:
        if not source.under("lib") or not source.is_c:
            continue
        for match in PLACE.finditer(source.text):
            line = source.text.count("\n", 0, match.start()) + 1
            cells = [cell.strip() for cell in flat(match.group(1)).split("|")]
            unknown = [name for name in re.split(r",\s*", cells[-1])
                       if name != "none" and name not in counters]
            if len(cells) != COLUMNS or not all(cells):
                complaints.append((source.path, line, "write: Held: place | account | bound | "
                                                      "deadline | counters"))
            elif unknown:
                complaints.append((source.path, line, f"no counter {', '.join(unknown)}"))
            else:
                found.append(cells)
    return sorted(found), complaints


def table(rows):
    def text(cells):
        names = cells[-1] if cells[-1] == "none" else \
            ", ".join(f"`{name}`" for name in re.split(r",\s*", cells[-1]))
        return "| " + " | ".join(cells[:-1] + [names]) + " |\n"
    return HEAD + "".join(text(cells) for cells in rows)


def page(old, sources, counters_text):
    """(the page with the table, [(path, line, complaint)])"""
    counters = set(re.findall(r"^NJ_COUNTER\(\w+,\s*(\w+),", counters_text, re.M))
    rows, complaints = places(sources, counters)
    before, begin, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        return old, complaints + [(PAGE, 1, f"the lines {BEGIN.strip()} and {END.strip()} are "
                                            "missing")]
    return before + begin + table(rows) + end + after, complaints
