# SPDX-License-Identifier: BSD-3-Clause
"""Tests ewyk.py: recognition of tests that cite a sentence, and reports of missing ones."""
import unittest

from tests.tidy import ewyk, tidy
from tests.tidy.tidy import Source

TEST = "Test(sched, eats)\n{\n    f();\n}\n"


def whole(excuses=()):
    """A list of all sentences; {number: excuse}."""
    excuses = dict(excuses)
    return "\n".join(f"{n} | It holds." + (f" | {excuses[n]}" if n in excuses else "")
                     for n in range(1, ewyk.LAST + 1))


def complaints(text, *sources):
    return [c for _, c in ewyk.matrix(text, sources, tidy.functions)[1]]


class Ewyk(unittest.TestCase):
    def test_citations(self):
        cases = {
            "/* So. EWYK 5.3, EWYK 5.62 */\n" + TEST: {3: {("unit/a.c", "sched_eats")},
                                                      62: {("unit/a.c", "sched_eats")}},
            "int f(void)\n{\n    g(); /* EWYK 5.1 */\n}\n": {1: {("unit/a.c", "f")}},
            '"EWYK 5.1";\n' + TEST: {},
            "/* EWYK 6.1, EWYK 5 */\n" + TEST: {},
        }
        for code, wanted in cases.items():
            with self.subTest(code=code):
                source = Source("tests/unit/a.c", code)
                self.assertEqual(wanted, ewyk.tests_of([source], tidy.functions))
        python = Source("tests/e2e/test_a.py", 'def test_x():\n    """EWYK 5.14"""\n')
        self.assertEqual({14: {("e2e/test_a.py", "test_x")}},
                         ewyk.tests_of([python], tidy.functions))

    def test_missing(self):
        some = {n: "n/a: no" for n in range(2, ewyk.LAST + 1)}
        named = Source("tests/unit/a.c", "/* EWYK 5.1 */\n" + TEST)
        self.assertEqual([], complaints(whole(some), named))
        self.assertEqual(["sentence 1 has no test, write one or say why not"],
                         complaints(whole(some)))
        self.assertEqual(['sentence 1 has a test, remove "not yet: x"'],
                         complaints(whole({**some, 1: "not yet: x"}), named))
        beyond = Source("tests/unit/a.c", "/* EWYK 5.1, EWYK 5.63 */\n" + TEST)
        self.assertIn("which is not in the list", complaints(whole(some), beyond)[0])

    def test_list(self):
        self.assertIn("write:", complaints(whole().replace("7 | It", "7 It", 1))[0])
        self.assertIn("the numbers are not", complaints("1 | It holds.")[0])
        self.assertIn("write:", complaints(whole({4: "later"}))[0])


if __name__ == "__main__":
    unittest.main()
