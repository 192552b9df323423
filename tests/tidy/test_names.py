# SPDX-License-Identifier: BSD-3-Clause
"""Tests names.py: prefixes of enums, and what is called is_x or has_x."""
import unittest

from tests.tidy import names
from tests.tidy.tidy import Source


def found(code, path="lib/store/a.h"):
    return [name for _, name, _ in names.check(Source(path, code))]


class Enums(unittest.TestCase):
    def test_a_prefix(self):
        for good in ("enum nj_a { NJ_A_X, NJ_A_Y, NJ_N_AS };", "enum { NJ__A_X = 1, NJ__A_Y };",
                     "enum nj_a { A_X, A_Y };", "enum nj_a { NJ_ONE };",
                     "enum nj_a {\n#define X(a) NJ_A_##a,\n#include \"a.def\"\n NJ_N_A };",
                     "enum nj_task_type { NJ_EITHER, NJ_BLOCKING };"):
            self.assertEqual([], found(good), good)
        for bad in ("enum nj_a { NJ_X, NJ_Y };", "enum nj_a { NJ_A_X, NJ_B_Y, NJ_A_Z };",
                    "enum nj_a { X, Y };", "enum nj_a { NJ_A_X, NJ_AS };"):
            self.assertEqual(["nj_a"], found(bad), bad)

    def test_private_members(self):
        """Of a file of C: only those that look as if they were for others."""
        self.assertEqual([], found("enum a { RUNS, ENDS };", "lib/store/a.c"))
        self.assertEqual(["a"], found("enum a { NJ_RUNS, NJ_ENDS };", "lib/store/a.c"))
        self.assertEqual([], found("enum a { RUNS, ENDS };", "tests/unit/rig.h"))


class Bools(unittest.TestCase):
    def test_good(self):
        for good in ("bool is_a;", "bool nj_x_is_a(int b);", "static inline bool has_a(int b)\n{}",
                     "_Atomic bool has_a;", "bool *is_a;", "bool b, c;\nreturn is_a(b);",
                     "if (x || is_a(b)) return has_b;", "int n_has_a_b;", "void this_is_it(int a);",
                     "static volatile sig_atomic_t is_a;", "#define is_a(x) int is_b\n"):
            self.assertEqual([], found(good), good)

    def test_bad(self):
        for bad in ("int is_a;", "struct nj_str is_a = {0};", "struct x *is_a;",
                    "uint8_t is_a : 1;", "static void is_a(int b)\n{}", "void f(bool b, int is_a);",
                    "for (int is_a = 0; is_a < 2; is_a++)"):
            self.assertEqual(["is_a"], found(bad), bad)
        self.assertEqual(["nj_x_has_a"], found("int nj_x_has_a(void);"))

    def test_exceptions(self):
        for path, name in names.GIVEN:
            self.assertEqual([], found(f"int {name}(void);", path))
            self.assertEqual([name], found(f"int {name}(void);"))
            self.assertEqual([name], found("int b;", path), "an exception that matches nothing")

    def test_alone(self):
        self.assertEqual(["b"], found("struct a {\n    bool\n        b; /* so */\n};\n"))
        self.assertEqual(["b"], found("struct a {\n    struct c\n        b[2];\n};\n"))
        self.assertEqual(["b"], found("struct a {\n    const struct c\n        *b;\n};\n"))
        self.assertEqual(["b"],
                         found("struct a {\n    _Atomic bool\n        b;\n};\n", "lib/x/a.c"))
        self.assertEqual([], found("struct a {\n    /* so */\n    bool b;\n};\n"))
        self.assertEqual([], found("struct nj_a\nnj_f(int b);\n"))


if __name__ == "__main__":
    unittest.main()
