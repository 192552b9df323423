# SPDX-License-Identifier: BSD-3-Clause
"""
Which functions the C files of lib define and which they name, read from the text without comments
and strings. A unit is a .c file with the header of its name (or either alone), named without the
suffix: lib/conn/conn. Nothing is compiled, so calls through pointers are not seen.
"""
import re

DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M | re.S)
DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+\w+(?:\([^)]*\))?")
USE = re.compile(r"(?<![\w.])(?<!->)(?<!struct )(?<!enum )(?<!union )([a-z_]\w*)\b(\s*\()?")


class Function:
    """A definition. `uses`: [(name, whether it is called)] of its body, in the order written."""

    def __init__(self, path, line, name, head, body):
        self.path, self.line, self.name, self.head, self.body = path, line, name, head, body
        self.unit = unit_of(path)
        self.is_static = bool(re.search(r"\bstatic\b", head))
        self.is_local = self.is_static and path.endswith(".c")
        self.uses = [(m[1], bool(m[2])) for m in USE.finditer(body)]

    def __repr__(self):
        return f"{self.path}:{self.name}"


def unit_of(path):
    return path.rsplit(".", 1)[0]


def room_of(unit):
    """lib/http for lib/http/files/file_body."""
    return "/".join(unit.split("/")[:2])


def top_level(code):
    """(offset, head, body) of each statement at file scope. `body`: the text from the first brace
    on, or nothing. Preprocessor lines are left out."""
    start, depth, opened = 0, 0, None
    for match in re.finditer(r"[{};]", code):
        char, at = match.group(), match.start()
        if char == "{":
            opened = at if opened is None else opened
            depth += 1
            continue
        depth -= char == "}"
        if depth > 0:
            continue
        depth = 0
        head = code[start:at if opened is None else opened]
        is_function = opened is not None and "(" in head and "=" not in head
        if char == ";" or is_function:
            yield start + len(head) - len(head.lstrip()), head.strip(), \
                "" if opened is None else code[opened:at + 1]
            start, opened = at + 1, None


def name_of(head):
    """The name that a function's head defines: the last one before its parameters."""
    head = re.sub(r"__attribute__\s*\(\(.*?\)\)|NJ_\w+\([^()]*\)", " ", head)
    match = re.search(r"(\w+)\s*\(", head)
    return match and match.group(1)


def read(path, code):
    """([Function], {names used at file scope and in macros}) of a file's blanked code."""
    functions, others = [], set()
    for match in DIRECTIVE.finditer(code):
        if define := DEFINE.match(match.group()):
            others.update(m[1] for m in USE.finditer(match.group()[define.end():]))
    code = DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), code)
    for at, head, body in top_level(code):
        is_value = "=" in head
        if body and not is_value and "(" in head and (name := name_of(head)):
            functions.append(Function(path, code.count("\n", 0, at) + 1, name, head, body))
        elif is_value:
            others.update(m[1] for m in USE.finditer(head.split("=", 1)[1] + body))
    return functions, others


class Tree:
    """All functions of the given sources (with `path` and `code`, as those of tidy.py)."""

    def __init__(self, sources):
        self.functions, self.named, self.defined, self.at_file_scope = [], {}, {}, {}
        self.in_tables = set()  # names in .def files, of which each includer takes some
        for source in sources:
            if source.path.endswith(".def"):
                self.in_tables.update(m[1] for m in USE.finditer(source.code))
                continue
            functions, others = read(source.path, source.code)
            self.functions += functions
            names = self.named.setdefault(unit_of(source.path), set())
            names |= others
            self.at_file_scope[source.path] = others
            for function in functions:
                names.update(name for name, _ in function.uses)
        self.local = {(f.path, f.name): f for f in self.functions if f.is_local}
        for function in self.functions:
            if not function.is_local:
                self.defined.setdefault(function.name, []).append(function)

    def only(self, name):
        """The function that all files may call by this name, if one unit alone defines it."""
        found = self.defined.get(name, [])
        return found[0] if len({f.unit for f in found}) == 1 else None

    def callee(self, function, name):
        """What `name` means in this function."""
        return self.local.get((function.path, name)) or self.only(name)

    def is_value(self, function):
        """Whether some code stores or passes a pointer to the function."""
        return function.name in self.in_tables or \
            any(function.name in names and (path == function.path or not function.is_local)
                for path, names in self.at_file_scope.items()) or \
            any(name == function.name and not is_called and self.callee(f, name) is function
                for f in self.functions for name, is_called in f.uses)

    def edges(self):
        """{unit: {unit: {names that the first uses of the second}}}"""
        found = {}
        for unit, names in self.named.items():
            own = {f.name for f in self.functions if f.unit == unit}
            to = found.setdefault(unit, {})
            for name in names - own:
                function = self.only(name)
                if function and function.unit != unit:
                    to.setdefault(function.unit, set()).add(name)
        return found


def circles(edges):
    """The sets of units that reach each other (Tarjan's strongly connected components)."""
    index, low, on, stack, found = {}, {}, set(), [], []
    for root in sorted(edges):
        work = [(root, None)] if root not in index else []
        while work:
            unit, rest = work.pop()
            if rest is None:
                index[unit] = low[unit] = len(index)
                stack.append(unit)
                on.add(unit)
                rest = iter(sorted(edges.get(unit, ())))
            for other in rest:
                if other not in index:
                    work += [(unit, rest), (other, None)]
                    break
                if other in on:
                    low[unit] = min(low[unit], index[other])
            else:
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[unit])
                if low[unit] == index[unit]:
                    circle = set()
                    while unit not in circle:
                        circle.add(stack.pop())
                    on -= circle
                    if len(circle) > 1:
                        found.append(circle)
    return sorted(found, key=sorted)
