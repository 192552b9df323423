# SPDX-License-Identifier: BSD-3-Clause
"""
Checks the code conventions that the compiler cannot. Prints `file:line: rule: finding, remedy`.

A rule is a function from one Source to findings; rules about the whole tree take the list of
sources. test_tidy.py tests each rule with a good and a bad snippet. ratchet.txt lists functions and
files that exceeded a limit when it was introduced: they may shrink and must not grow.
"""
import concurrent.futures
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap

from tests.mutants import mutants, verified
from tests.tidy import clang, ewyk, held, house, names, pages, rfc, stories

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("NJ_BUILD", "build")
LINE_MAX, FILE_MAX, FUNCTION_MAX = 100, 700, 70


class Finding:
    def __init__(self, path, line, rule, text):
        self.path, self.line, self.rule, self.text = path, line, rule, text

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


def blank(text):
    """C code with comments and strings blanked; lines and columns are unchanged."""
    def spaces(match):
        token = match.group()
        if token[0] == "/":
            return re.sub(r"[^\n]", " ", token)
        return token[0] + " " * (len(token) - 2) + token[-1]
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", spaces, text,
                  flags=re.S)


class Source:
    """One file: `text` as written, `lines`, and for C and its tables (.def) `code`, which is
    blank()ed text."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.lines = text.split("\n")
        self.is_c = path.endswith((".c", ".h"))
        self.code = blank(text) if self.is_c or path.endswith(".def") else ""
        parts = path.split("/")
        self.folder = "/".join(parts[:-1])
        self.layer = parts[1] if parts[0] == "lib" and len(parts) > 2 else None

    def under(self, *prefixes):
        return any(self.path == p or self.path.startswith(p + "/") for p in prefixes)

    def includes(self):
        """(line number, name) of each #include."""
        for number, line in enumerate(self.lines, 1):
            if match := re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line):
                yield number, match.group(1)

    def find(self, pattern):
        """(line number, matched text) in the code, comments and strings left out."""
        for number, line in enumerate(self.code.split("\n"), 1):
            for match in re.finditer(pattern, line):
                yield number, match.group(1)


# --- bans, each with an alternative -----------------------------------------------------------

CALL = r"(?<![\w.>])(%s)\s*\("
MACHINES = ("lib", "tests/unit", "tests/sim", "tests/script")

# Layers that may call the system: not pure, not on the datapath.
SERVICES = tuple("lib/" + x for x in ("dpdk", "rights", "threads", "store", "log", "privilege",
                                      "upgrade", "config", "mgmt", "server", "testing"))

# Files that print: requested output (--check, --preset, --print-placement), and the output of the
# EAL with NJ_EAL_VERBOSE.
PRINTERS = ("lib/config/check_report.c", "lib/config/config_check_print.c",
            "lib/config/worker_placement.c", "lib/config/eal_preset.c",
            "lib/dpdk/eal_output_capture.c", "lib/topo/placement_text.c")

# name: (paths, excluded paths, calls, included files, alternative)
BANS = {
    "clock": (MACHINES, (*SERVICES, "lib/sched/worker_wait.c",  # waits of threads, not of machines
                          "tests/sim/tls.c"),  # defines them for OpenSSL
              r"clock_gettime|gettimeofday|time|clock|rte_rdtsc\w*|rte_get_(?:tsc|timer)_\w+",
              None, "take the `now` argument"),
    "random": (MACHINES, SERVICES,
               r"s?rand(?:_r|om|om_r)?|[delmnj]rand48|getrandom|rte_rand\w*|randombytes\w*",
               r"rte_random\.h", "use a `struct nj_prng` that was seeded from outside"),
    "device": (("lib", "app", "tests/unit", "tests/sim"),
               ("lib/dpdk", "tests/unit/dpdk_shard_rings.c", "tests/unit/dpdk_rss.c"),
               r"rte_eth_\w+|rte_lcore_\w+|rte_eal_(?:init|mp_)\w*",
               r"rte_(?:ethdev|lcore)\.h", "only lib/dpdk calls the EAL and devices; use lib/dpdk"),
    "nghttp2": (("lib", "app"), (), r"nghttp2_\w+", r"nghttp2/.*",
                "use h2/h2.h: only tests and perf compare with another HTTP/2"),
    "hwloc": (("lib", "app"), ("lib/topo",), r"hwloc_\w+", r"hwloc\.h|hwloc/.*", "use lib/topo"),
    "sodium": (("lib", "app"), ("lib/base",), r"sodium_\w+|crypto_\w+", r"sodium\.h",
               "use base/keyed_hash.h or base/secret_hash.h"),
    "microhttpd": (("lib", "app"), ("lib/mgmt",), r"MHD_\w+", r"microhttpd\.h", "use lib/mgmt"),
    "printing": (("lib",), (*PRINTERS, "lib/mgmt"),  # responses, to a FILE in memory
                 r"v?[fd]?printf|f?put[cs]|putchar|perror|v?syslog|rte_log|RTE_LOG", None,
                 "nj_log() it or return a text; on the datapath count it (telem/counters.def)"),
    "heap": (("lib/wire", "lib/tcp"), (), r"malloc|calloc|realloc|free|rte_z?malloc|rte_free", None,
             "use a pool of base/pool.h, sized at start"),
    "abort": (("lib",), ("lib/base/assert.c", *SERVICES), r"abort|_?exit|rte_exit|rte_panic", None,
              "return a named result, or NJ_ASSERT your own invariant"),
    "sleep": (("lib", "tests/unit", "tests/sim"), (*SERVICES, "lib/http/handlers/wait_api.c"),
              r"u?sleep|nanosleep|clock_nanosleep|rte_delay_\w+", None,
              "advance `now`: time is an argument"),
    "assert": (("lib",), (), r"assert", r"assert\.h", "use NJ_ASSERT (base/assert.h)"),
}

# The only exception for a file: workers register their thread with the EAL.
WORKER = re.compile(r"lib/(?:threads/service_thread|threads/worker_pool|store/file_reader)\.c")


def rule_bans(source):
    if not source.is_c:
        return
    for name, (where, where_not, calls, headers, instead) in BANS.items():
        if not source.under(*where) or source.under(*where_not):
            continue
        for number, what in source.find(CALL % calls):
            yield Finding(source.path, number, name, f"{what}() is banned here, {instead}")
        for number, header in source.includes() if headers else ():
            if WORKER.match(source.path) and header == "rte_lcore.h":
                continue  # rte_thread_register() is declared there
            if re.fullmatch(headers, header):
                yield Finding(source.path, number, name, f"<{header}> is banned here, {instead}")


def rule_include_up(source):
    for number, header in source.includes() if source.is_c else ():
        if header.startswith("../"):
            yield Finding(source.path, number, "include-up",
                          f'"{header}" begins with ../, begin with the layer: "layer/noun.h"')


def layer_table(meson_text):
    """{layer: set of layers that it may include}, from the table in lib/meson.build."""
    table = {}
    for name, lower in re.findall(r"'(\w+)':\s*\[\[([^\]]*)\]", meson_text):
        table[name] = set(re.findall(r"'(\w+)'", lower))
    return table


def rule_layers(source, table):
    if not source.is_c or source.layer not in table:
        return
    for number, header in source.includes():
        other = header.split("/")[0]
        if "/" in header and other in table and other != source.layer \
                and other not in table[source.layer]:
            allowed = ", ".join(sorted(table[source.layer])) or "nothing"
            yield Finding(source.path, number, "layers",
                          f"{source.layer} may not include {other}, only: {allowed} "
                          "(lib/meson.build)")


# --- shape: head comments, lengths, mutable data ----------------------------------------------

def rule_head(source, paths):
    """Head comments. The header of the same name may have that of a .c file."""
    if not source.path.endswith((".c", ".h", ".py", ".build", ".sh")):
        return
    if "SPDX-License-Identifier: BSD-3-Clause" not in "\n".join(source.lines[:2]):
        yield Finding(source.path, 1, "spdx",
                      "no licence, begin with /* SPDX-License-Identifier: BSD-3-Clause */")
    elif source.is_c and source.under("lib") and not source.lines[1].startswith("/*") \
            and (source.path.endswith(".h") or source.path[:-1] + "h" not in paths):
        yield Finding(source.path, 2, "head",
                      "no head comment, say what the file is and how it fits")


def rule_line_length(source):
    if source.path.endswith((".c", ".h", ".py", ".sh")) or source.path == "dev":
        for number, line in enumerate(source.lines, 1):
            if len(line) > LINE_MAX:
                yield Finding(source.path, number, "line-length",
                              f"{len(line)} columns, break it at {LINE_MAX}")


def rule_todo(source):
    if source.under("tests/tidy"):
        return
    for number, line in enumerate(source.lines, 1):
        if (match := re.search(r"\b(TODO|FIXME|XXX)\b", line)) and not re.search(r"#\d+", line):
            yield Finding(source.path, number, "todo",
                          f"{match.group()} without an issue, name it (#123) or do it now")


def statements(code):
    """
    (first line, last line, text) of each statement at file scope. Text has {} for every block.
    A function is one statement that ends with its body; preprocessor lines are left out.
    """
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: re.sub(r"[^\n]", " ", m.group()),
                  code, flags=re.M | re.S)
    text, depth, line, first = "", 0, 1, None
    for char in code:
        if char == "\n":
            line += 1
        if depth == 0 and (text or not char.isspace()):
            first = first or line
            text += " " if char == "\n" else char
        if char == "{":
            depth += 1
        elif char == "}":
            depth = max(0, depth - 1)
            if depth == 0:
                text += "}"
        head = text.split("{")[0]
        is_body = char == "}" and depth == 0 and "(" in head and "=" not in head
        if first and depth == 0 and (char == ";" or is_body):
            yield first, line, text.strip()
            text, first = "", None


def functions(source):
    """(name, first line, last line) of each function definition."""
    for first, last, text in statements(source.code):
        if text.endswith("{}") and (match := re.search(r"(\w+)\s*\(", text)):
            name = match.group(1)
            if name == "Test":  # Criterion: Test(suite, name)
                name = re.sub(r"\W+", "_", text[match.end():].split(")")[0])
            yield name, first, last


# The exceptions: the fiber that runs on this thread (the file has the reason), and the heap of
# OpenSSL, which has one for the whole process (docs/adr/0028-where-openssls-heap-belongs.md).
MUTABLE = {"lib/sched/fiber.c": {"_Thread_local struct nj__current nj__current;"},
           "lib/tls/openssl_heap.c": {
               "static pthread_once_t once = PTHREAD_ONCE_INIT;", "static pthread_key_t key;",
               "static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;",
               "static struct heap *idle;", "static _Thread_local struct heap *mine;"}}


def rule_names(source):
    for line, _, complaint in names.check(source) if source.is_c else ():
        yield Finding(source.path, line, "names", complaint)


def rule_mutable(source):
    if not source.is_c or not source.under("lib") or source.under(*SERVICES):
        return
    excused = set(MUTABLE.get(source.path, ()))
    for first, _, text in statements(source.code):
        declared = re.split(r"=|\[", text)[0]
        if "(" in text.split("=")[0].split("{")[0] or re.match(r"(typedef|extern)\b", text):
            continue
        if text in excused:
            excused.remove(text)
            continue
        if re.match(r"(static\s+)?(const\s+)?(struct|union|enum)\b[^=]*\{\}\s*(NJ_\w+\s*|"
                    r"__attribute__.*)?;", text):
            continue  # the definition of a type
        if re.fullmatch(r"(struct|union|enum)\s+\w+\s*;", text) or text == ";":
            continue
        after_pointer = declared.rsplit("*", 1)[-1]
        if not re.search(r"\bconst\b", after_pointer if "*" in declared else declared):
            yield Finding(source.path, first, "mutable",
                          f"file-scope data `{declared.strip()}` can change, put it into the "
                          "shard's structs or make it const")
    for text in sorted(excused):
        yield Finding(source.path, 1, "mutable", f"the file has no `{text}`: drop the exception")


def lengths(sources):
    """(key, path, line, length, limit) of each function and file with a limit."""
    for source in sources:
        if source.path.endswith((".c", ".h", ".py")) or source.path == "dev":
            yield source.path, source.path, 1, source.text.count("\n"), FILE_MAX
        if source.is_c:
            for name, first, last in functions(source):
                yield f"{source.path}:{name}", source.path, first, last - first + 1, FUNCTION_MAX


def rule_length(sources, ratchet_text):
    recorded = {}
    for number, line in enumerate(ratchet_text.split("\n"), 1):
        words = line.split("#")[0].split()
        if words:
            recorded[words[0]] = (number, int(words[1]))
    for key, path, line, length, limit in lengths(sources):
        number, allowed = recorded.pop(key, (0, limit))
        if length > allowed:
            yield Finding(path, line, "length", f"{key} has {length} lines, split it: "
                          f"{allowed} is the limit")
        elif number and length < allowed:
            do = f"write {length}" if length > limit else "remove the line"
            yield Finding("tests/tidy/ratchet.txt", number, "length",
                          f"{key} shrank to {length} lines, {do}")
    for key, (number, _) in recorded.items():
        yield Finding("tests/tidy/ratchet.txt", number, "length", f"{key} is gone, remove the line")


# --- docstrings of the public headers ---------------------------------------------------------

PUBLIC = "lib/include/nightjar"
LABELS = ("Context", "Ownership", "Errors", "Returns")  # in this order
DECLARATION = re.compile(r"^(?:NJ_API|static inline)\s+([^;{(]*?)(\w+)\(([^;{]*)\)", re.M)


def labels_wanted(returns, parameters):
    """{label: reason} of the paragraphs that a docstring must have. `Ownership` is required only
    if a type shows that something is kept or handed over; the author adds other cases."""
    wanted = {"Context": "is public"}
    if re.search(r"\bconst void \*|\(\*\w*\)\(|\bvoid \*arg\b", parameters):
        wanted["Ownership"] = "takes const void *, void *arg or a function"
    elif returns.endswith("*") and "const" not in returns:
        wanted["Ownership"] = "returns a pointer that is not to const"
    if returns in ("int", "int64_t"):
        wanted["Errors"] = 'returns int or int64_t (say "none." if it cannot fail)'
    if returns != "void":
        wanted["Returns"] = "returns something"
    return wanted


def docstring_before(source, at):
    """The comment /** ... */ that ends on the line before; None: there is none."""
    before = source.text[:at]
    start = before.rfind("/*")
    if not before.endswith("*/\n") or start < 0 or not re.match(r"/\*\*\s", before[start:]):
        return None
    return before[start:]


def rule_docstring(source):
    """Each function of a public header has a docstring in the form of CONTRIBUTING.md."""
    if not source.path.endswith(".h") or not source.under(PUBLIC):
        return
    for match in DECLARATION.finditer(source.code):
        returns, name, parameters = match.groups()
        line = source.code.count("\n", 0, match.start()) + 1
        text = docstring_before(source, match.start())
        if text is None:
            yield Finding(source.path, line, "docstring",
                          f"{name}() has no /** ... */ of its own, write it on the lines before")
            continue
        wanted = labels_wanted(returns.strip(), parameters)
        found = re.findall(rf"^ \* ({'|'.join(LABELS)}): +\S", text, re.M)
        summary = text.split(f" * {found[0]}:")[0] if found else ""
        if found and not re.fullmatch(r"/\*\*\n( \* \S.*\n| \*\n)* \* \S.*\n \*\n", summary):
            yield Finding(source.path, line, "docstring",
                          f"{name}() needs a sentence, and an empty line before `{found[0]}:`")
        for label in LABELS:
            if label in wanted and label not in found:
                yield Finding(source.path, line, "docstring",
                              f"{name}() {wanted[label]}, add a line ` * {label}: ...`")
        if "Returns" in found and "Returns" not in wanted:
            yield Finding(source.path, line, "docstring",
                          f"{name}() returns nothing, remove the line ` * Returns: ...`")
        if found != [label for label in LABELS if label in found]:
            yield Finding(source.path, line, "docstring",
                          f"{name}() has {', '.join(found)}, write each once, in the order "
                          f"{', '.join(LABELS)}")


# --- the tree as a whole ----------------------------------------------------------------------

def rule_listed(sources, meson_text):
    listed = set(re.findall(r"'((?:\w+/)+\w+\.c)'", meson_text))
    for source in sources:
        if source.path.endswith(".c") and source.layer and source.path[4:] not in listed:
            yield Finding(source.path, 1, "unlisted", "not compiled, list it in lib/meson.build")


# Manual pages, and the expression that finds the options in their table.
MANUALS = {"man/nightjar.1": ("lib/config/option_table.c", r'\{\.name = "([\w-]+)"'),
           "man/nightjar-load.1": ("perf/tools/load/option_table.c", r'^    \{[\w\']+, "([\w-]+)"')}


def rule_manuals(texts):
    """Each option is in its manual page. `texts`: {path: text} of tables and pages."""
    for page, (table, pattern) in MANUALS.items():
        options = re.findall(pattern, texts[table], re.M)
        if not options:
            yield Finding(table, 1, "manuals", f"no options are found by {pattern}, adapt it")
        for option in options:
            if f"\\-\\-{option.replace('-', chr(92) + '-')}\\fR" not in texts[page]:
                yield Finding(page, 1, "manuals", f"--{option} is not in it, run ./dev options")


# Files that a page shows as a block of code.
QUOTED = {"debian/nightjar.logrotate": "docs/observe.md"}


def rule_quoted(texts):
    """A page has the whole text of each file that it shows. `texts`: {path: text} of both."""
    for path, page in QUOTED.items():
        if textwrap.indent(texts[path], "    ") not in texts[page]:
            yield Finding(page, 1, "quoted", f"it shows another text than that of {path}")


def rule_mirrored(sources):
    """Warnings only, since some files cannot be tested without a device."""
    tested = {s.path for s in sources}
    for source in sources:
        if source.path.endswith(".c") and source.layer:
            folders = source.path.split("/")
            mirror = f"tests/unit/{folders[1]}_{folders[-1]}"
            if mirror not in tested:
                yield Finding(source.path, 1, "untested", f"no {mirror}")


def rule_symbols(nm_text):
    for where, symbol in re.findall(r"^(\S+?):?[0-9a-f]* [A-TX-Z] (\S+)$", nm_text, re.M):
        if not symbol.startswith(("nj_", "__odr_asan.nj_")):
            yield Finding(where, 0, "symbol",
                          f"{symbol} is exported, make it static or prefix it nj_")


def nm(build):
    """Symbols that the built libraries export, or None without a build."""
    libs = []
    for folder, _, found in os.walk(os.path.join(build, "lib")):
        libs += [os.path.join(folder, n) for n in sorted(found)
                 if n.startswith("libnj_") and n.endswith(".a")]
    shared = [os.path.join(build, "lib", n) for n in ("libnightjar.so",)
              if os.path.exists(os.path.join(build, "lib", n))]
    if not libs:
        return None
    run = lambda *args: subprocess.run(["nm", *args], capture_output=True, text=True).stdout
    return run("-A", "-g", "--defined-only", *libs) + \
        (run("-A", "-D", "--defined-only", *shared) if shared else "")


def compiles_alone(path, flags):
    done = subprocess.run(
        ["cc", "-fsyntax-only", "-std=gnu11", "-D_GNU_SOURCE", "-x", "c", *flags,
         "-include", path, "/dev/null"], cwd=REPO, capture_output=True, text=True)
    if done.returncode:
        first = next((x for x in done.stderr.split("\n") if "error" in x), done.stderr[:200])
        yield Finding(path, 1, "self-contained", f"does not compile alone, include what it uses: "
                      f"{first}")


def rule_self_contained(sources):
    flags = ["-Ilib", "-Ilib/include"] + shlex.split(subprocess.run(
        ["pkg-config", "--cflags", "libdpdk", "hwloc", "libnghttp2", "libsodium",
         "libmicrohttpd"],
        capture_output=True, text=True).stdout)
    headers = [s.path for s in sources if s.path.endswith(".h") and s.under("lib")]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for findings in pool.map(lambda path: list(compiles_alone(path, flags)), headers):
            yield from findings


def rule_clang(errors):
    for path, line, text in errors:
        yield Finding(path, line, "clang", f"clang does not compile it: {text}")


def rule_format(sources):
    files = [s.path for s in sources if s.is_c]
    done = subprocess.run(["clang-format", "--dry-run", *files], cwd=REPO, capture_output=True,
                          text=True) if files else None
    seen = set()
    for match in re.finditer(r"^(\S+?):(\d+):\d+: warning", done.stderr if done else "", re.M):
        if match.group(1) not in seen:
            seen.add(match.group(1))
            yield Finding(match.group(1), match.group(2), "format", "not formatted, run ./dev fmt")


def rule_python(sources):
    """Undefined and unused names of Python code, by pyflakes."""
    files = [s.path for s in sources if s.path.endswith(".py")]
    done = subprocess.run(["pyflakes3", *files], cwd=REPO, capture_output=True,
                          text=True) if files else None
    for match in re.finditer(r"^(\S+?):(\d+):\d+:? (.*)$", done.stdout if done else "", re.M):
        yield Finding(match.group(1), match.group(2), "python", match.group(3))


def scripts():
    """{path: text} of the packet scripts."""
    folder = "tests/script"
    return {f"{folder}/{name}": read(f"{folder}/{name}")
            for name in sorted(os.listdir(os.path.join(REPO, folder))) if name.endswith(".pkt")}


def written(rule, page, text, write):
    """Writes the page, or finds that the committed page is not up to date."""
    if write:
        with open(os.path.join(REPO, page), "w", encoding="utf-8") as f:
            f.write(text)
    elif not os.path.exists(os.path.join(REPO, page)) or read(page) != text:
        yield Finding(page, 1, rule, "is not up to date, run ./dev tidy --rfc")


def rule_rfc(sources, write):
    """The pages of sentences, clauses, code and tests are complete."""
    code, tests = rfc.code_of(sources, functions), rfc.tests_of(sources, scripts())
    adrs = sorted(os.listdir(os.path.join(REPO, "docs/adr")))
    for path, complaint in rfc.check_numbers(tests):
        yield Finding(path, 1, "rfc", complaint)
    for listed in rfc.LISTS:
        text, complaints = rfc.matrix(listed, read(listed.clauses), code, tests, adrs)
        for line, complaint in complaints:
            yield Finding(listed.clauses, line, "rfc", complaint)
        if listed.differences:
            text += rfc.differences(listed.differences, read(listed.differences))
        yield from written("rfc", listed.page, text, write)


def rule_ewyk(sources, write):
    """The same for the sentences about scheduling."""
    text, complaints = ewyk.matrix(read(ewyk.LIST), sources, functions)
    for line, complaint in complaints:
        yield Finding(ewyk.LIST, line, "ewyk", complaint)
    yield from written("ewyk", ewyk.PAGE, text, write)


def rule_held(sources, write):
    """The table of what a peer can make the server hold is complete."""
    text, complaints = held.page(read(held.PAGE), sources,
                                 "".join(map(read, held.COUNTERS)))
    for path, line, complaint in complaints:
        yield Finding(path, line, "held", complaint)
    yield from written("held", held.PAGE, text, write)


def rule_house(sources, layers):
    """Circles of files, and the lists of ARCHITECTURE.md that follow a request."""
    found = house.House(sources, read(stories.PAGE), layers)
    for path, line, complaint in house.check(found, read(house.RATCHET)):
        yield Finding(path, line, "house", complaint)


def rule_pages(texts, files, sources):
    """`texts`: {path: text} of the pages, `files`: those of the repository."""
    known = set().union(*(re.findall(r"\b(?:nj|NJ)_\w+", source.text) for source in sources))
    for path, text in sorted(texts.items()):
        for line, complaint in pages.check(path, text, files, known):
            yield Finding(path, line, "pages", complaint)
    for line, complaint in pages.figure(texts["README.md"], texts["docs/performance.md"]):
        yield Finding("README.md", line, "pages", complaint)


# --- history ----------------------------------------------------------------------------------

# Commits after this one have messages in the form of CONTRIBUTING.md.
COMMITS_SINCE = "30862a7f76719439991a1a0978de6d328a2652f5"
SUBJECT_MAX = 72
AREA = r"(?:[a-z0-9][\w./+ -]*|[A-Z]+)"  # a folder or a page
AREAS = rf"{AREA}(?:, {AREA})*: \S"


def commit_findings(name, subject, body):
    if len(subject) > SUBJECT_MAX:
        yield Finding(name, 1, "commit", f"the subject has {len(subject)} columns, at most "
                      f"{SUBJECT_MAX}")
    if not re.match(AREAS, subject) or subject.endswith("."):
        yield Finding(name, 1, "commit", "the subject is not `area: what`, without a full stop")
    if len(re.findall(r"\w+", body)) < 5:
        yield Finding(name, 3, "commit", "the body does not say why")


def rule_commits():
    """No findings without git, in a tarball, or in a shallow clone without that commit."""
    done = subprocess.run(
        ["git", "-c", f"safe.directory={REPO}", "log", "--no-merges",
         "--format=%h%x00%s%x00%b%x01", f"{COMMITS_SINCE}..HEAD"],
        cwd=REPO, capture_output=True, text=True) if shutil.which("git") else None
    if not done or done.returncode != 0:
        return
    for commit in done.stdout.split("\x01")[:-1]:
        yield from commit_findings(*commit.strip("\n").split("\0"))


MUTANTS_TOLD, MUTANTS_MAX = 100, 400  # commits


def rule_mutant_lines(found):
    """Each mutation replaces lines that its source has once."""
    for mutant in found:
        try:
            mutants.mutated(mutant)
        except (mutants.Broken, OSError) as why:
            yield Finding(mutant.list, 1, "mutant-lines", f"[{mutant.name}] {why}, renew it")


def rule_mutants(age):
    """`age`: how many commits are later than the one at which all mutants died."""
    if age >= MUTANTS_MAX:
        yield Finding("tests/mutants/verified", 1, "mutants", f"is {age} commits old: run "
                      "sudo ./dev test all, which writes it, and commit it")


# --- running them -----------------------------------------------------------------------------

def repository():
    """Every text file of the repository, tracked or not. Does not use git, which may be missing and
    refuses to run as root in another user's clone."""
    wanted = (".c", ".h", ".py", ".sh", ".build", ".def")
    for folder, below, found in os.walk(REPO):
        top = folder == REPO
        below[:] = sorted(d for d in below if not d.startswith((".", "__"))
                          and not (top and d.startswith("build")))
        for name in sorted(found):
            if name.endswith(wanted) or (top and name == "dev"):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    yield Source(os.path.relpath(path, REPO), f.read())


def read(name):
    with open(os.path.join(REPO, name), encoding="utf-8") as f:
        return f.read()


def each(rule, sources, *args):
    return lambda: (finding for source in sources for finding in rule(source, *args))


def report(rules):
    """Prints the findings of each of {name: function}, and the number of functions without any."""
    failed = 0
    for findings in ([*rule()] for rule in rules.values()):
        failed += bool(findings)
        for finding in findings:
            print(finding)
    print(f"{len(rules) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    sources = list(repository())
    if "--rfc" in sys.argv[1:]:
        return report({"rfc": lambda: rule_rfc(sources, True),
                       "ewyk": lambda: rule_ewyk(sources, True),
                       "held": lambda: rule_held(sources, True)})
    meson_text = read("lib/meson.build")
    files = pages.tree(REPO)
    symbols = nm(os.path.join(REPO, BUILD))
    rules = {
        "bans": each(rule_bans, sources),
        "include-up": each(rule_include_up, sources),
        "layers": each(rule_layers, sources, layer_table(meson_text)),
        "head": each(rule_head, sources, {s.path for s in sources}),
        "line-length": each(rule_line_length, sources),
        "todo": each(rule_todo, sources),
        "mutable": each(rule_mutable, sources),
        "docstring": each(rule_docstring, sources),
        "names": each(rule_names, sources),
        "pages": lambda: rule_pages({path: read(path) for path in pages.pages(files)}, files,
                                    sources),
        "house": lambda: rule_house(sources, layer_table(meson_text)),
        "length": lambda: rule_length(sources, read("tests/tidy/ratchet.txt")),
        "unlisted": lambda: rule_listed(sources, meson_text),
        "manuals": lambda: rule_manuals({path: read(path) for page, (table, _) in MANUALS.items()
                                         for path in (page, table)}),
        "quoted": lambda: rule_quoted({path: read(path) for pair in QUOTED.items()
                                       for path in pair}),
        "commit": rule_commits,
        "mutant-lines": lambda: rule_mutant_lines(mutants.mutants("")),
        "self-contained": lambda: rule_self_contained(sources),
        "format": lambda: rule_format(sources),
        "python": lambda: rule_python(sources),
        "rfc": lambda: rule_rfc(sources, False),
        "ewyk": lambda: rule_ewyk(sources, False),
        "held": lambda: rule_held(sources, False),
    }
    if symbols is None:
        print("tidy: symbol, clang: not checked, nothing is built (./dev build)")
    else:
        rules["symbol"] = lambda: rule_symbols(symbols)
        rules["clang"] = lambda: rule_clang(clang.errors_of(REPO, BUILD))
    age = verified.age()
    if age is not None:  # there is git, and its history goes that far back
        rules["mutants"] = lambda: rule_mutants(age)
        if age >= MUTANTS_TOLD:
            print(f"tidy: tests/mutants/verified is {age} commits old; sudo ./dev test all renews "
                  f"it (a failure from {MUTANTS_MAX} on)")
    untested = list(rule_mirrored(sources))
    if "--untested" in sys.argv[1:]:
        print(*untested, sep="\n")
    elif untested:
        print(f"tidy: {len(untested)} files have no unit test of their own name "
              "(no failure; ./dev tidy --untested lists them)")
    return report(rules)


if __name__ == "__main__":
    sys.exit(main())
