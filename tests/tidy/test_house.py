# SPDX-License-Identifier: BSD-3-Clause
"""Tests house.py, stories.py and c_functions.py with small trees."""
import re
import unittest

from tests.tidy import c_functions, house, stories
from tests.tidy.tidy import Source

PAGE = """# A page
## Three requests

What follows a request.

### A file

1. begin: `nj_begin()` in `lib/top/begin.c`. It begins.
2. look it up: `nj_find()` in `lib/low/find.c`. Or
   not.
3. read it, later: `nj_read()` in `lib/low/read.c`, later
4. send it: `send()` in `lib/low/read.c`, by `emit`

## Rules
1. no item
"""

FILES = {
    "lib/top/begin.c": "static void own(void)\n{\n    nj_put(1);\n}\n"
                       "void nj_begin(void)\n{\n    own();\n    nj_find(2);\n    nj_end();\n}\n",
    "lib/top/end.c": "void nj_end(void)\n{\n}\n",
    "lib/low/find.c": "int nj_find(int key)\n{\n    /* nj_begin() */\n    return nj_put(key);\n}\n",
    "lib/low/put.h": "static inline int nj_put(int key)\n{\n    return key;\n}\n",
    "lib/low/read.c": "struct ops { void (*emit)(void); };\n"
                      "static void send(void)\n{\n}\n"
                      "const struct ops ops = {.emit = send};\n"
                      "void nj_read(const struct ops *o)\n{\n    o->emit();\n}\n",
}


def tree(files):
    return c_functions.Tree([Source(path, code) for path, code in files.items()])


def circles(**files):
    """Of {name: code}, where lib__top__a is lib/top/a.c."""
    found = tree({name.replace("__", "/") + ".c": code for name, code in files.items()})
    return c_functions.circles(found.edges())


def calls(name, *others):
    return f"int {name}(void)\n{{\n    return {' + '.join(f'{o}()' for o in others) or 0};\n}}\n"


class Functions(unittest.TestCase):
    def test_definitions(self):
        code = ("#define A(x) nj_z(x)\nstruct s { int (*f)(int); };\nint nj_p(int a);\n"
                "static const int t[] = {1};\nstatic inline bool b(int x)\n{\n    return !x;\n}\n"
                "struct nj_s *__attribute__((cold)) nj_q(int (*f)(int), int b)\n{\n    f(1);\n}\n")
        functions, others = c_functions.read("lib/a/x.c", Source("lib/a/x.c", code).code)
        self.assertEqual([("b", 5), ("nj_q", 9)], [(f.name, f.line) for f in functions])
        self.assertEqual([("f", True)], functions[1].uses)
        self.assertIn("nj_z", others)

    def test_edges(self):
        edges = tree(FILES).edges()
        self.assertEqual({"lib/low/find": {"nj_find"}, "lib/low/put": {"nj_put"},
                          "lib/top/end": {"nj_end"}}, edges["lib/top/begin"])
        self.assertEqual({"lib/low/put": {"nj_put"}}, edges["lib/low/find"])
        self.assertEqual({}, edges["lib/low/read"])

    def test_names_that_are_no_edges(self):
        """A static function of another file, one that two files define, a member, a comment, the
        tag of a struct."""
        edges = tree({"lib/a/x.c": calls("nj_x", "helper", "nj_two") + "/* nj_y() */\n",
                      "lib/a/y.c": calls("nj_y") + "static " + calls("helper") + calls("nj_two"),
                      "lib/a/z.c": calls("nj_two") +
                      "void g(struct nj_y *s)\n{\n    struct nj_y *y = s->nj_y();\n}\n",
                      "lib/a/u.c": "int nj_y(void);\n"}).edges()
        self.assertEqual({}, {unit: to for unit, to in edges.items() if to})

    def test_an_initializer_is_an_edge(self):
        edges = tree({"lib/a/x.c": "const struct o o = {.f = nj_y};\n",
                      "lib/a/y.c": calls("nj_y")}).edges()
        self.assertEqual({"lib/a/y": {"nj_y"}}, edges["lib/a/x"])


class Circles(unittest.TestCase):
    def test_none(self):
        self.assertEqual([], c_functions.circles(tree(FILES).edges()))

    def test_a_header_and_its_file_are_one(self):
        found = tree({"lib/a/x.h": "static inline " + calls("nj_x", "nj_y"),
                      "lib/a/x.c": calls("nj_y", "nj_x")})
        self.assertEqual([], c_functions.circles(found.edges()))

    def test_table(self):
        """A function that a .def file names is pointed to, and ties no files."""
        found = tree({"lib/a/x.c": "static int f(void)\n{\n}\n", "lib/a/t.def": "ROW(F, f)\n"})
        self.assertTrue(found.is_value(found.functions[0]))
        self.assertEqual({"lib/a/x": {}}, found.edges())

    def test_two_circles(self):
        found = circles(lib__a__x=calls("nj_x", "nj_y"), lib__a__y=calls("nj_y", "nj_z"),
                        lib__a__z=calls("nj_z", "nj_x", "nj_v"), lib__b__u=calls("nj_u", "nj_v"),
                        lib__b__v=calls("nj_v", "nj_u"), lib__b__w=calls("nj_w", "nj_v"))
        self.assertEqual([{"lib/a/x", "lib/a/y", "lib/a/z"}, {"lib/b/u", "lib/b/v"}], found)

    def test_many(self):
        """A long chain is a circle when it is closed."""
        chain = {f"u{n}": {f"u{n + 1}": set()} for n in range(3000)}
        self.assertEqual([], c_functions.circles(chain))
        self.assertEqual(3001, len(c_functions.circles({**chain, "u3000": {"u0": set()}})[0]))


class Walks(unittest.TestCase):
    def test_returns(self):
        units = ["lib/a/x", "lib/a/x", "lib/a/y", "lib/b/z", "lib/a/x", "lib/b/z", "lib/a/x"]
        self.assertEqual({"lib/a/x": (3, 2), "lib/a/y": (1, 0), "lib/b/z": (2, 1)},
                         stories.rooms(units))
        self.assertEqual((6, 3), stories.total(stories.rooms(units)))
        self.assertEqual({"lib/a": (3, 2), "lib/b": (2, 1)},
                         stories.rooms(units, c_functions.room_of))

    def test_read(self):
        found, complaints = stories.read(PAGE)
        self.assertEqual([], complaints)
        self.assertEqual([("nj_begin", False, None), ("nj_find", False, None),
                          ("nj_read", True, None), ("send", False, "emit")],
                         [(s.name, s.is_later, s.hook) for s in found["A file"]])
        self.assertEqual([8], [n for n, _ in stories.read(
            PAGE.replace("begin: `nj_begin()` in", "begin, in"))[1]])

    def test_read_through(self):
        """What a step calls before the next step is entered, too, and the file again after it."""
        found = tree({
            "lib/a/x.c": "static " + calls("near") +
                         calls("nj_x", "nj_help", "near", "nj_respond_error", "nj_y", "nj_after"),
            "lib/a/y.c": calls("nj_y", "nj_help", "nj_z"),
            "lib/a/help.c": calls("nj_help", "nj_add") + calls("nj_after"),
            "lib/base/add.c": calls("nj_add"),
            "lib/a/z.c": calls("nj_z", "nj_after") + calls("nj_respond_error")})
        walk = self.steps(found, "a/x:nj_x", "a/y:nj_y", "a/z:nj_z")
        read = stories.read_through(found, walk)
        self.assertEqual(["nj_x", "nj_help", "near", "nj_y", "nj_z"], [f.name for f in read])
        self.assertEqual((5, 1), stories.total(stories.rooms([f.unit for f in read])))
        self.assertEqual([], stories.read_through(found, walk[::-1]))
        walk = self.steps(found, "a/z:nj_z", "a/x:nj_x, later", "a/y:nj_y")
        self.assertEqual(["nj_z", "nj_x", "nj_help", "near", "nj_y"],
                         [f.name for f in stories.read_through(found, walk)])

    def steps(self, found, *items):
        """[(Step, Function)] of items such as a/x:nj_x, later."""
        text = ["## Three requests", "### One"]
        for n, item in enumerate(items, 1):
            path, name, how = re.fullmatch(r"(.*):(\w+)(.*)", item).groups()
            text.append(f"{n}. go: `{name}()` in `lib/{path}.c`{how}")
        return [(step, stories.function_of(found, step))
                for step in stories.read("\n".join(text))[0]["One"]]

    def check(self, page=PAGE, **changes):
        files = FILES | {name.replace("__", "/") + ".c": code for name, code in changes.items()}
        found = stories.read(page)[0]
        return list(stories.check(tree(files), found))

    def test_good_items(self):
        self.assertEqual([], self.check())

    def test_a_function_that_is_gone(self):
        (line, text), = self.check(PAGE.replace("low/find.c", "low/put.h"))
        self.assertEqual((9, "lib/low/put.h defines no nj_find()"), (line, text))

    def test_a_call_that_is_gone(self):
        (line, text), = self.check(lib__top__begin=calls("nj_begin"))
        self.assertEqual(9, line)
        self.assertIn("nothing above in \"A file\" calls nj_find()", text)

    def test_a_pointer(self):
        for code in (FILES["lib/low/read.c"].replace(".emit = send", ".emit = 0"),
                     FILES["lib/low/read.c"].replace("o->emit()", "o->other()")):
            (line, text), = self.check(lib__low__read=code)
            self.assertEqual(12, line)
            self.assertIn("calls send() by emit", text)


class Numbers(unittest.TestCase):
    LAYERS = {"low": set(), "top": {"low"}, "server": {"top", "low"}}

    def house(self, files, page="## Three requests\n"):
        return house.House([Source(path, code) for path, code in files.items()], page, self.LAYERS)

    def test_circles(self):
        files = {"lib/top/x.c": calls("nj_x", "nj_y"), "lib/top/y.c": calls("nj_y", "nj_x")}
        good = "- `top/x`, `top/y`: each begins what the other ends.\n"
        for page, undefended in ((good, 0), ("text\n" + good + "\nmore\n", 0), ("", 1),
                                 (good.replace("`top/y`", "`top/z`"), 1),
                                 (good.replace("each begins what the other ends.", "so."), 1)):
            numbers = self.house(files, page).numbers()
            self.assertEqual((1, 0, undefended),
                             (numbers["circles-within-a-room"], numbers["circles-across-rooms"],
                              numbers["circles-not-defended"]), page)
        files["lib/low/y.c"] = files.pop("lib/top/y.c")
        self.assertEqual(1, self.house(files, "").numbers()["circles-across-rooms"])

    def test_returns_to_the_head(self):
        page = ("## Three requests\n### One\n1. a: `nj_http_dispatch()` in `lib/top/a.c`\n"
                "2. b: `nj_b()` in `lib/top/b.c`\n3. c: `nj_c()` in `lib/top/a.c`\n"
                "4. d: `nj_resp_head_send()` in `lib/top/b.c`\n5. e: `nj_a()` in `lib/top/a.c`\n")
        numbers = self.house({
            "lib/top/a.c": calls("nj_http_dispatch", "nj_h", "nj_b") +
                           calls("nj_c", "nj_resp_head_send") + calls("nj_a"),
            "lib/top/b.c": calls("nj_h") + calls("nj_b", "nj_i", "nj_c") +
                           calls("nj_resp_head_send", "nj_a"),
            "lib/top/c.c": calls("nj_i")}, page).numbers()
        self.assertEqual(2, numbers["returns-to-the-head"])
        self.assertEqual(2, numbers["returns-read-to-the-head"])

    def test_server(self):
        code = "void nj_f(struct nj_server *s)\n{\n}\nvoid g(struct nj_server_config *c)\n{\n}\n"
        files = {"lib/server/a.c": code, "lib/low/a.c": code, "tests/unit/a.c": code,
                 "lib/include/nightjar/server.h": code}
        found = self.house(files)
        self.assertEqual(1, len(found.server))
        self.assertEqual(["lib/low/a.c"], found.strangers)

    def test_names_from_above(self):
        found = self.house({"lib/top/a.h": "struct nj_a { int x; };\n",
                            "lib/low/a.c": "struct nj_a;\nstruct b { struct nj_a *a; };\n",
                            "lib/server/a.c": "struct nj_a *a;\n"})
        self.assertEqual([("lib/low/a.c", "nj_a", "top")], found.upward)

    def test_limits(self):
        found = self.house({"lib/top/x.c": calls("nj_x", "nj_y"),
                            "lib/low/y.c": calls("nj_y", "nj_x")})
        self.assertEqual([], list(house.check(found, "circles-across-rooms 1 # of today\n")))
        (path, _, text), = house.check(found, "")
        self.assertEqual(house.RATCHET, path)
        self.assertIn("circles-across-rooms is 1, 0 is the limit", text)
        (_, line, text), = house.check(found, "circles-across-rooms 2\nsquares 1\n")
        self.assertEqual((2, "squares is not counted, remove the line"), (line, text))


if __name__ == "__main__":
    unittest.main()
