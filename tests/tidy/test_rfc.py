# SPDX-License-Identifier: BSD-3-Clause
"""Tests rfc.py: recognition of citations and tests, and reports of missing ones."""
import unittest

from tests.tidy import rfc, tidy
from tests.tidy.tidy import Source

LIST = "[One]\n1 | RFC 9293 3.8.4 | It holds.\n"
LISTED = rfc.List("docs/rfc/one-clauses.txt", "docs/rfc/one.md", "ONE", 1, 1, "More of it.")


def source(path, code):
    return Source(path, "/* SPDX-License-Identifier: BSD-3-Clause */\n" + code)


def matrix(text, *sources, scripts=(), adrs=()):
    code = rfc.code_of(sources, tidy.functions)
    tests = rfc.tests_of(sources, dict(scripts))
    page, complaints = rfc.matrix(LISTED, text, code, tests, list(adrs))
    return page, [c for _, c in complaints]


class Differences(unittest.TestCase):
    def test_rows(self):
        table = """static const struct row rows[] = {
            {"one", "RFC 1 2", "a | b", WE_REFUSE_HEAD, ANY, "x", NULL, 0, NULL},
            {"two", "RFC 1 3", "long "
             "text", PERSISTS, ANY, "", NULL, 0, NULL},
        };"""
        self.assertEqual(["| one | RFC 1 2 | a \\| b | nightjar refuses |",
                          "| two | RFC 1 3 | long text | neither |"],
                         rfc.differences("a.h", table).splitlines()[-2:])


class Comments(unittest.TestCase):
    def test_citations(self):
        cases = {
            "/* RFC 9293 3.8.4: so */": {("RFC 9293", "3.8.4")},
            "/* RFC 6298 5.2, 5.3; RFC 8985 7.2 */": {("RFC 6298", "5.2"), ("RFC 6298", "5.3"),
                                                      ("RFC 8985", "7.2")},
            "/* RFC 6298 5.4 - 5.6. */": {("RFC 6298", "5.4"), ("RFC 6298", "5.5"),
                                          ("RFC 6298", "5.6")},
            "/* RFC 7323 2.2 and 3.2. */": {("RFC 7323", "2.2"), ("RFC 7323", "3.2")},
            "/* RFC 9293\n * 3.10.7.4 fifth */": {("RFC 9293", "3.10.7.4 fifth")},
            "/* RFC 9293 3.10.7.4, first; x */": {("RFC 9293", "3.10.7.4 first")},
            "/* RFC 8985 6.2 steps 1 - 3 */": {("RFC 8985", "6.2")},
            "/* by the tag (IEEE 802.1Q). */": {("IEEE 802.1Q", "")},
            "/* RFC 1337: no */": {("RFC 1337", "")},
            "/* (RFC 1071 2B), RFC 6298's 1 s */": {("RFC 1071", ""), ("RFC 6298", "")},
            "/* RFC 9293 3.1, MUST-6 */": {("RFC 9293", "3.1")},
        }
        for comment, wanted in cases.items():
            with self.subTest(comment=comment):
                self.assertEqual(wanted, rfc.citations_of(comment))

    def test_a_part_matches_the_whole_but_not_the_reverse(self):
        self.assertTrue(rfc.answers(("RFC 9293", "3.8.6.1"), ("RFC 9293", "3.8.6")))
        self.assertTrue(rfc.answers(("RFC 9293", "3.8.6"), ("RFC 9293", "")))
        self.assertTrue(rfc.answers(("RFC 9293", "3.10.7.4 fifth"), ("RFC 9293", "3.10.7.4")))
        self.assertFalse(rfc.answers(("RFC 9293", "3.8"), ("RFC 9293", "3.8.6")))
        self.assertFalse(rfc.answers(("RFC 9293", "3.8.61"), ("RFC 9293", "3.8.6")))
        self.assertFalse(rfc.answers(("RFC 5681", "3.8.6"), ("RFC 9293", "3.8.6")))

    def test_sentences(self):
        cases = {"/* Sentence 7: so. */": {7}, "/* RFC 1 2; sentences 43, 45 */": {43, 45},
                 "/* sentences 54, 98 - 100 */": {54, 98, 99, 100},
                 "// Sentences 32 to 34": {32, 33, 34},
                 "/* Sentences 11 and 13\n * for it */": {11, 13},
                 "/* sentences\n * 1, 2 */": {1, 2},
                 "/* 12 sentences */": set()}
        for comment, wanted in cases.items():
            with self.subTest(comment=comment):
                self.assertEqual(wanted, rfc.sentences_of(comment))


class Matrix(unittest.TestCase):
    CODE = source("lib/tcp/a.c", "/* RFC 9293 3.8.4 */\nvoid f(void)\n{\n}\n")
    TEST = source("tests/unit/tcp_a.c", "/* Sentence 1 */\nTest(tcp_a, b)\n{\n}\n")

    def test_whole(self):
        page, complaints = matrix(LIST, self.CODE, self.TEST)
        self.assertEqual([], complaints)
        self.assertIn("| 1 | It holds. | RFC 9293 3.8.4 | `tcp/a.c` f | `unit/tcp_a.c` tcp_a_b |",
                      page)
        self.assertNotIn(":2", page)  # no line numbers
        self.assertIn("# Requirements of ONE, and their tests\n", page)
        self.assertIn("from `docs/rfc/one-clauses.txt`", page)
        self.assertIn("\nMore of it.\n", page)

    def test_without_code(self):
        _, complaints = matrix(LIST, self.TEST)
        self.assertEqual(1, len(complaints))
        self.assertIn("no code names RFC 9293 3.8.4", complaints[0])

    def test_one_clause_of_two_without_code(self):
        _, complaints = matrix(LIST.replace("3.8.4 ", "3.8.4; RFC 1337 "), self.CODE, self.TEST)
        self.assertEqual(1, len(complaints))
        self.assertIn("no code names RFC 1337", complaints[0])

    def test_without_test(self):
        for other in ("/* Sentence 1 */\nint x;\nTest(a, b)\n{\n}\n",
                      "Test(a, b)\n{\n    /* sentence 1 */\n}\n", '#define X "sentence 1"\n'):
            with self.subTest(other=other):
                _, complaints = matrix(LIST, self.CODE, source("tests/unit/tcp_a.c", other))
                self.assertEqual(1, len(complaints), complaints)
                self.assertIn("has no test", complaints[0])

    def test_other_tests(self):
        script = {"tests/script/a.pkt": "// RFC 1, sentence 1:\n// x\n+0 `x`\n"}
        self.assertEqual([], matrix(LIST, self.CODE, scripts=script)[1])
        late = {"tests/script/a.pkt": "// x\n+0 `x`\n// sentence 1\n"}
        self.assertEqual(1, len(matrix(LIST, self.CODE, scripts=late)[1]))
        pending = {"tests/script/pending/a.pkt": "// sentence 1\n"}
        self.assertEqual(1, len(matrix(LIST, self.CODE, scripts=pending)[1]))
        e2e = Source("tests/e2e/test_a.py", 'def test_a():\n    """Sentence 1."""\n')
        self.assertIn("`e2e/test_a.py` test_a", matrix(LIST, self.CODE, e2e)[0])

    def test_a_test_with_options(self):
        test = source("tests/unit/a.c", "/* Sentence 1 */\nTest(a, b, .init = c)\n{\n}\n")
        self.assertIn("`unit/a.c` a_b |", matrix(LIST, self.CODE, test)[0])

    def test_adr(self):
        text = LIST.replace("holds.", "holds. | ADR 12")
        page, complaints = matrix(text, adrs=["0012-why.md"])
        self.assertEqual([], complaints)
        self.assertIn("[ADR 12](../adr/0012-why.md)", page)
        self.assertIn("there is no ADR 12", matrix(text, adrs=["0001-why.md"])[1])

    def test_not_yet(self):
        page, complaints = matrix(LIST.replace("holds.", "holds. | not yet: needs more"))
        self.assertEqual([], complaints)
        self.assertIn("It holds. (not yet: needs more)", page)
        self.assertIn("1 sentences, 0 of them kept", page)

    def test_a_sentence_of_another_list(self):
        other = source("tests/unit/b.c", "/* Sentence 2 */\nTest(a, b)\n{\n}\n")
        self.assertEqual([], matrix(LIST, self.CODE, self.TEST, other)[1])

    def test_a_sentence_of_no_list(self):
        last = max(listed.last for listed in rfc.LISTS)
        tests = {last: {("unit/b.c", "b_a")}, 99999: {("unit/b.c", "b_b")}}
        self.assertEqual([("tests/unit/b.c", "b_b names sentence 99999, which is in no list")],
                         list(rfc.check_numbers(tests)))

    def test_no_number_is_in_two_lists(self):
        numbers = [n for one in rfc.LISTS for n in range(one.first, one.last + 1)]
        self.assertEqual(len(set(numbers)), len(numbers))

    def test_the_list(self):
        broken = ["1 | RFC 9293 3.8.4", "x | RFC 9293 | y", "1 | 3.8.4 | no document",
                  "1 | RFC 9293 | x | ADR x"]
        for row in broken:
            with self.subTest(row=row):
                self.assertTrue([c for _, c in rfc.parse_clauses(LISTED, row)[1]
                                 if "is not in the list" not in c])
        three = LISTED._replace(first=1, last=3)
        found, complaints = rfc.parse_clauses(three, "2 | RFC 1 | x\n1 | RFC 1 | x\n")
        self.assertEqual([(1, "the numbers do not ascend"), (1, "sentence 3 is not in the list")],
                         complaints)
        self.assertEqual([2, 1], [s.number for s in found])
        _, complaints = rfc.parse_clauses(LISTED, LIST + "2 | RFC 1 | x\n")
        self.assertEqual([(3, "the list has the numbers 1 - 1")], complaints)

    def test_places(self):
        code = source("lib/tcp/a.c", "/* RFC 1 1 */\n\n#define X 1 /* RFC 2 1 */\n/* RFC 3 1 */\n"
                      "#define Y 2\nint f(void)\n{\n    return 1; /* RFC 4 1 */\n}\n")
        places = rfc.code_of([code], tidy.functions)
        self.assertEqual([{("tcp/a.c", name)} for name in ("", "X", "Y", "f")],
                         [places[f"RFC {n}", "1"] for n in (1, 2, 3, 4)])


if __name__ == "__main__":
    unittest.main()
