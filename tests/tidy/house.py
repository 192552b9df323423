# SPDX-License-Identifier: BSD-3-Clause
"""
`/usr/bin/python3 -m tests.tidy.house` prints how the files of lib hang together:

- circles: files that call each other in a loop, within a folder of lib or across two of them;
- walks: along the numbered lists of ARCHITECTURE.md, how often a request enters each file and each
  folder of lib, and how often it returns to one that it left before;
- definitions in lib/server that take `struct nj_server`, and what a layer names of those above it.

house.txt has the largest number that is allowed of each. `./dev tidy` fails where one is exceeded,
and where an item of a list names a function that is not there or that nothing above it calls. A
circle within a folder is defended by an item of ARCHITECTURE.md (is_defended()).
"""
import re
import sys

from tests.tidy import c_functions, stories
from tests.tidy.c_functions import room_of

RATCHET = "tests/tidy/house.txt"
FIRST, LAST = "nj_http_dispatch", "nj_resp_head_send"  # the part of a walk that is limited
SERVER = re.compile(r"\bstruct nj_server\b")
MAY_NAME_SERVER = ("lib/server", "lib/include", "examples", "tests", "app/examples")
SHOWN = 6  # names of a tie


class House:
    """The numbers of a tree. `layers`: the table of lib/meson.build."""

    def __init__(self, sources, page, layers):
        sources = list(sources)
        self.sources = [s for s in sources if s.is_c]
        self.tree = c_functions.Tree([s for s in sources if s.code and s.under("lib")])
        self.edges = self.tree.edges()
        self.circles = c_functions.circles(self.edges)
        self.across = [c for c in self.circles if len({room_of(unit) for unit in c}) > 1]
        self.within = [c for c in self.circles if c not in self.across]
        self.undefended = [c for c in self.within if not is_defended(c, page)]
        self.stories, self.unread = stories.read(page)
        self.server = [f for f in self.tree.functions
                       if f.path.startswith("lib/server/") and SERVER.search(f.head)]
        self.strangers = [s.path for s in self.sources
                          if not s.under(*MAY_NAME_SERVER) and SERVER.search(s.code)]
        self.upward = list(upward(self.sources, layers))

    def walk(self, steps):
        """[(Step, Function)] of those that are defined."""
        found = [(step, stories.function_of(self.tree, step)) for step in steps]
        return [pair for pair in found if pair[1]]

    def dispatched(self):
        """{title: (its functions, all that are read)} from FIRST to LAST. All are read where
        nothing is later."""
        found = {}
        for title, steps in self.stories.items():
            if part := self.walk(stories.between(steps, FIRST, LAST)):
                is_one_turn = not any(step.is_later for step, _ in part)
                found[title] = [f for _, f in part], \
                    stories.read_through(self.tree, part) if is_one_turn else None
        return found

    def numbers(self):
        dispatched = self.dispatched().values()
        returns = [stories.total(stories.rooms([f.unit for f in walk]))[1]
                   for walk, _ in dispatched]
        read = [stories.total(stories.rooms([f.unit for f in all_of]))[1]
                for _, all_of in dispatched if all_of]
        return {"circles-across-rooms": len(self.across),
                "circles-within-a-room": len(self.within),
                "circles-not-defended": len(self.undefended),
                "returns-to-the-head": max(returns, default=0),
                "returns-read-to-the-head": max(read, default=0),
                "server-definitions": len(self.server),
                "files-that-name-the-server": len(self.strangers),
                "names-from-above": len(self.upward)}


def upward(sources, layers):
    """(path, type, layer): each type that a layer names and only layers above it define. Types of
    one file have no prefix, and may have the names of others (struct group of libc)."""
    defined = {}
    for source in sources:
        if source.layer:
            for name in re.findall(r"\b(?:struct|union|enum)\s+(\w+)\s*\{", source.code):
                defined.setdefault(name, set()).add(source.layer)
    for source in sources:
        if source.layer not in layers:
            continue
        may = layers[source.layer] | {source.layer, "include"}
        for name in sorted(set(re.findall(r"\b(?:struct|union|enum)\s+(nj_\w+)\b", source.code))):
            if name in defined and not defined[name] & may:
                yield source.path, name, min(defined[name])


def is_defended(circle, page):
    """An item of the page names the files of the circle, no others, and says why:

        - `tcp/input`, `tcp/output`: each of the two ...
    """
    wanted = {unit[4:] for unit in circle}
    for item in re.split(r"\n(?=- |\n|#)", page):
        names, _, why = item.partition(": ")
        if item.startswith("- `") and set(re.findall(r"`([\w/]+)`", names)) == wanted:
            return len(why.split()) >= 5 and why.rstrip().endswith(".")
    return False


def limits(text):
    """{name: (line, number)}"""
    rows = [(n, line.split("#")[0].split()) for n, line in enumerate(text.split("\n"), 1)]
    return {words[0]: (n, int(words[1])) for n, words in rows if words}


def check(house, ratchet_text):
    """[(path, line, complaint)]"""
    allowed = limits(ratchet_text)
    for name, number in house.numbers().items():
        line, limit = allowed.pop(name, (1, 0))
        if number > limit:
            yield RATCHET, line, f"{name} is {number}, {limit} is the limit: see " \
                                 "python3 -m tests.tidy.house"
    for name, (line, _) in allowed.items():
        yield RATCHET, line, f"{name} is not counted, remove the line"
    for title, (_, read) in house.dispatched().items():
        if read == []:
            yield stories.PAGE, 1, f"{title}: the items from {FIRST}() to {LAST}() are not in " \
                                   "the order in which their calls are written"
    for line, complaint in house.unread:
        yield stories.PAGE, line, complaint
    for line, complaint in stories.check(house.tree, house.stories):
        yield stories.PAGE, line, complaint


# --- the command ------------------------------------------------------------------------------

def ties(house, circle):
    for unit in sorted(circle):
        for other in sorted(set(house.edges[unit]) & circle):
            names = sorted(house.edges[unit][other])
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            yield f"    {unit[4:]} -> {other[4:]}: {', '.join(names[:SHOWN])}{more}"


def walked(title, functions):
    """The lines about a walk: its entries and returns by file, then by folder."""
    if not functions:
        yield f"  {title}: not followed to the end"
    for kind, name_of in (("files", lambda unit: unit), ("folders", room_of)):
        found = stories.rooms([f.unit for f in functions], name_of)
        entries, returns = stories.total(found)
        yield f"  {title}, {len(functions)} functions, by {kind}: {entries} entries, {returns} " \
              "returns"
        for room, (n_entries, n_returns) in found.items():
            yield f"    {room[4:]}: {n_entries}" + (f", {n_returns} returns" if n_returns else "")


def report(house):
    for what, found in (("within a folder", house.within), ("across folders", house.across)):
        yield f"{len(found)} circles {what} of lib"
        for circle in found:
            why = ", not defended" if circle in house.undefended else ""
            yield f"  {len(circle)} files{why}: {', '.join(unit[4:] for unit in sorted(circle))}"
            yield from ties(house, circle)
    yield "Walks along ARCHITECTURE.md"
    for title, steps in house.stories.items():
        yield from walked(title, [function for _, function in house.walk(steps)])
    for title, (walk, all_of) in house.dispatched().items():
        yield from walked(f"{title}, from {FIRST}() to {LAST}()", walk)
        if all_of is not None:
            yield from walked(f"{title}, every call from {FIRST}() to {LAST}()", all_of)
    yield f"{len(house.server)} definitions in lib/server take struct nj_server"
    for path in house.strangers:
        yield f"  {path} names struct nj_server"
    yield f"{len(house.upward)} types of a layer above"
    for path, name, layer in house.upward:
        yield f"  {path} names {name} of {layer}"
    for name, number in house.numbers().items():
        yield f"{name} {number}"


def main():
    from tests.tidy import tidy
    house = House(tidy.repository(), tidy.read(stories.PAGE),
                  tidy.layer_table(tidy.read("lib/meson.build")))
    print(*report(house), sep="\n")
    complaints = list(check(house, tidy.read(RATCHET)))
    for path, line, text in complaints:
        print(f"{path}:{line}: house: {text}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
