# SPDX-License-Identifier: BSD-3-Clause
"""Tests held.py: the table of what a peer can make the server hold."""
import unittest

from tests.tidy import held
from tests.tidy.tidy import Source

COUNTERS = 'NJ_COUNTER(EVENT,   conn_shed,   "text")\n'
PAGE = f"Before.\n{held.BEGIN}old\n{held.END}After.\n"


def page(*comments):
    sources = [Source(f"lib/tcp/{i}.c", f"/* {text} */\n") for i, text in enumerate(comments)]
    return held.page(PAGE, sources, COUNTERS)


class Held(unittest.TestCase):
    def test_rows_are_sorted_and_replace_the_old_ones(self):
        text, complaints = page("Held: b | client |\n * two lines | 1 s | none",
                                "Held: a | client | 4 | 5 s | conn_shed")
        self.assertEqual([], complaints)
        self.assertEqual(f"Before.\n{held.BEGIN}{held.HEAD}"
                         "| a | client | 4 | 5 s | `conn_shed` |\n"
                         f"| b | client | two lines | 1 s | none |\n{held.END}After.\n", text)

    def test_complaints(self):
        cases = {"Held: a | b | c": "write: Held:", "Held: a | b | | d | none": "write: Held:",
                 "Held: a | b | c | d | conn_shod": "no counter conn_shod"}
        for comment, want in cases.items():
            with self.subTest(comment):
                (path, line, complaint), = page(comment)[1]
                self.assertEqual(("lib/tcp/0.c", 1), (path, line))
                self.assertIn(want, complaint)

    def test_a_page_without_the_marks(self):
        self.assertIn("are missing", held.page("text", [], COUNTERS)[1][0][2])
