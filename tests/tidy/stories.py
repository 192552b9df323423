# SPDX-License-Identifier: BSD-3-Clause
"""
Reads the numbered lists of ARCHITECTURE.md that follow a request, and walks along them. An item is

    3. find the connection: `nj_flow_find()` in `lib/tcp/flow_table.c`

and may go on with sentences. Its function is one that a function of an item above calls. After the
file there may be `, by `respond`` for a call through a pointer of that name, or `, later` for what
begins in another step or thread.

A walk is the list of functions that are entered; a room is a file of C with its header, or a folder
of lib. An entry is a change of the room, a return is an entry into a room that was left before.
"""
import re

from tests.tidy.c_functions import room_of

PAGE = "ARCHITECTURE.md"
SECTION = "## Three requests"
ITEM = re.compile(r"\d+\. (?P<stage>.+?)[:?] `(?P<name>\w+)\(\)` in `(?P<path>[\w/.]+)`"
                  r"(?:, (?:(?P<later>later)|by `(?P<hook>\w+)`))?(?=[.,:;]|$)")
# Layers that every room uses are no rooms of a walk; calls by which a request is refused lead away.
EVERYWHERE = ("lib/base", "lib/telem")
AWAY = re.compile(r"error|refuse|deny|abuse|busy|reject")


class Step:
    def __init__(self, line, match):
        self.line, self.stage = line, match["stage"]
        self.name, self.path = match["name"], match["path"]
        self.is_later, self.hook = bool(match["later"]), match["hook"]


def items(text):
    """(line, title, text) of each item of the section, on one line."""
    title, item, is_inside = None, None, False
    for number, line in enumerate(text.split("\n") + ["## "], 1):
        if item and re.match(r" +\S", line):
            item[2] += " " + line.strip()
            continue
        if item:
            yield item
        item = None
        if line.startswith("## "):
            is_inside, title = line.startswith(SECTION), None
        elif is_inside and line.startswith("### "):
            title = line[4:].strip()
        elif title and re.match(r"\d+\. ", line):
            item = [number, title, line]


def read(text):
    """({title: [Step]}, [(line, complaint)]) of the page."""
    found, complaints = {}, []
    for number, title, item in items(text):
        if match := ITEM.match(item):
            found.setdefault(title, []).append(Step(number, match))
        else:
            complaints.append((number, "write: N. stage: `function()` in `file`[, by `pointer`| "
                                       ", later]"))
    return found, complaints


def function_of(tree, step):
    return next((f for f in tree.functions if f.path == step.path and f.name == step.name), None)


def called_in_file(tree, function):
    """The functions that it calls, itself or by functions of its file that no other file sees."""
    found, left = [function], [function]
    while left:
        at = left.pop()
        for name, _ in at.uses:
            callee = tree.callee(at, name)
            if callee and callee not in found:
                found.append(callee)
                left += [callee] if callee.is_local else []
    return found


def is_called_by(tree, function, above):
    return any(function in called_in_file(tree, f) for f in above)


def is_hooked(tree, function, hook, above):
    """Whether a function above calls through the pointer, and somebody points to the function."""
    call = re.compile(rf"(?:\.|->){hook}\s*\(")
    return tree.is_value(function) and \
        any(call.search(f.body) for at in above for f in called_in_file(tree, at)
            if f is at or f.is_local)


def check(tree, stories):
    """[(line, complaint)]"""
    for title, steps in stories.items():
        above = []
        for step in steps:
            function = function_of(tree, step)
            if not function:
                yield step.line, f"{step.path} defines no {step.name}()"
                continue
            if step.hook and not is_hooked(tree, function, step.hook, above):
                yield step.line, f"nothing above in \"{title}\" calls {step.name}() by {step.hook}"
            elif above and not step.hook and not step.is_later and \
                    not is_called_by(tree, function, above):
                yield step.line, f"nothing above in \"{title}\" calls {step.name}(): name what " \
                                 "does, or write `, by `pointer`` or `, later`"
            above.append(function)


def rooms(units, name_of=lambda unit: unit):
    """{room: (entries, returns)} of a walk, in the order of the first entries."""
    found, now = {}, None
    for room in map(name_of, units):
        if room != now:
            entries, returns = found.get(room, (0, 0))
            found[room] = entries + 1, returns + (entries > 0)
        now = room
    return found


def total(found):
    """(entries, returns)"""
    return sum(n for n, _ in found.values()), sum(n for _, n in found.values())


def between(steps, first, last):
    """The steps from the function `first` to the function `last`, or nothing."""
    names = [step.name for step in steps]
    if first not in names or last not in names:
        return []
    return steps[names.index(first):names.index(last) + 1]


def read_through(tree, walk):
    """Every function that is entered along a walk of (Step, Function), in the order in which the
    calls are written, each once: those of the walk, and what they call before the next step. What
    is begun later, or by a pointer, is begun anew. Nothing if a step is not reached so."""
    seen, entered, left = set(), [], list(walk)

    def enter(function):
        seen.add(function)
        entered.append(function)
        for name, is_called in function.uses:
            if not left or left[0][0].is_later or left[0][0].hook:
                return
            wanted = left[0][1]
            callee = tree.callee(function, name) if is_called else None
            if callee is wanted:
                left.pop(0)
                if callee in seen:
                    entered.append(callee)
                else:
                    enter(callee)
            elif callee and callee not in seen and not AWAY.search(name) and \
                    room_of(callee.unit) not in EVERYWHERE:
                enter(callee)

    while left and (not entered or left[0][0].is_later or left[0][0].hook or left[0][1] in seen):
        step, function = left.pop(0)
        if function in seen:
            entered.append(function)
        else:
            enter(function)
    return [] if left else entered
