# SPDX-License-Identifier: BSD-3-Clause
"""
What names must agree with: the members of an enum have a prefix in common, and what is called is_x
or has_x is a bool (a function, a member, a variable, or what a pointer to it points to). A name
stands on the line of its type: clang-format breaks it off where the comment is too long.
"""
import re

DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M | re.S)
ENUM = re.compile(r"\benum\b\s*(?P<tag>\w+)?\s*\{(?P<members>[^{}]*)\}")
COUNT = re.compile(r"(?:NJ_+)?N_\w+")  # the last member, which counts the others
DECLARED = re.compile(r"(?P<type>[A-Za-z_]\w*)[ \t]*(?P<pointer>\**)[ \t\n]*"
                      r"\b(?P<name>(?:is|has)_\w+|nj_\w*?_(?:is|has)_\w+)\b(?=\s*[;,=)\[(:])")
ALONE = re.compile(r"^ +(?:(?:const|volatile|static|_Atomic|_Thread_local|unsigned) )*"
                   r"(?:bool|char|int|long|\w+_t|nj_ns|(?:struct|enum|union) \w+)\n"
                   r" +\**(?P<name>\w+)[^()\n=]*;", re.M)
NO_TYPE = {"return", "else", "case", "goto", "in", "sizeof", "typedef"}
BOOLS = {"bool", "atomic_bool", "sig_atomic_t"}  # a handler of signals may write the last
# Called by libc, which says what it takes and returns.
GIVEN = {("app/doctor/files.c", "is_shown")}
# Public names, which programs use.
PUBLIC_ENUMS = {"nj_task_type"}


def without_directives(code):
    return DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), code)


def prefix(members):
    """The words that all members begin with: NJ_MODE of NJ_MODE_PC and NJ_MODE_PEC."""
    found = []
    for words in zip(*(member.split("_") for member in members)):
        if len(set(words)) > 1:
            break
        found.append(words[0])
    return "_".join(found)


def enums(source):
    """(line, tag, members, without a count) of each enum that other files may see: that of a
    header, and of any file if its members begin with NJ_."""
    code = without_directives(source.code)
    for match in ENUM.finditer(code):
        names = [member.split("=")[0].strip() for member in match["members"].split(",")]
        names = [name for name in names if re.fullmatch(r"\w+", name)]
        names = [name for n, name in enumerate(names)
                 if n + 1 < len(names) or not COUNT.fullmatch(name)]
        is_shared = source.path.endswith(".h") and not source.under("tests") or \
            any(name.startswith("NJ_") for name in names)
        if len(names) > 1 and is_shared and match["tag"] not in PUBLIC_ENUMS:
            yield code.count("\n", 0, match.start()) + 1, match["tag"] or names[0], names


def check(source):
    """(line, name, complaint)"""
    for line, name, members in enums(source):
        if not prefix(members).removeprefix("NJ").strip("_"):
            yield line, name, f"the members of enum {name} have no prefix in common: " \
                              f"{', '.join(members[:4])}"
    code = without_directives(source.code)
    unused = {name: True for path, name in GIVEN if path == source.path}
    for match in DECLARED.finditer(code):
        if match["type"] in BOOLS | NO_TYPE:
            continue
        if match["name"] in unused:
            unused[match["name"]] = False
            continue
        line = code.count("\n", 0, match.start("name")) + 1
        yield line, match["name"], f"{match['name']} is {match['type']}, make it bool or " \
                                   "name it otherwise"
    for name in (name for name, is_unused in unused.items() if is_unused):
        yield 1, name, f"names.py excuses {name}, which needs no exception"
    for match in ALONE.finditer(code):
        yield code.count("\n", 0, match.start("name")) + 1, match["name"], \
            f"the type of {match['name']} stands alone, put the comment before the member"
