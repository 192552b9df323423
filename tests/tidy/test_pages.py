# SPDX-License-Identifier: BSD-3-Clause
"""Tests pages.py: files that pages name, columns, and README's figure."""
import os
import unittest

from tests.tidy import pages, tidy

FILES = {"lib", "lib/tcp", "lib/tcp/input.c", "lib/tcp/loss", "lib/tcp/loss/rack.c", "docs/adr",
         "docs/tls.md", "lib/telem/counters.def"}


def found(text, page="docs/a.md"):
    return [complaint for _, complaint in pages.check(page, text, FILES)]


class Pages(unittest.TestCase):
    def test_files(self):
        for good in ("`lib/tcp/input.c`", "`input.c`", "`loss/rack.c`", "[adr](docs/adr)",
                     "lib/tcp/*.c, and lib/tcp/.", "`lib/tcp/in*`", "[tls](tls.md)",
                     "`counters.def`", "https://example.org/lib/x.c", "TLS 1.3 and testssl.sh",
                     "Next to come: `lib/h1` beside h2."):
            self.assertEqual([], found(good), good)
        for bad in ("`lib/tcp/output.c`", "`output.c`", "in lib/h1.", "`loss/input.c`",
                    "lib/h2/*.c", "[adr](docs/adrs)"):
            self.assertEqual(1, len(found(bad)), bad)

    def test_identifiers(self):
        page = "`nj_f()` of `struct nj_s`, as `nj_noun_verb`, and /nightjar/nj_x of njrun"
        known = {"nj_f", "nj_s"}
        self.assertEqual([], list(pages.check("a.md", page, FILES, known)))
        self.assertEqual([(1, "no source has nj_f, name what is there now")],
                         list(pages.check("a.md", page, FILES, {"nj_s"})))

    def test_columns(self):
        self.assertEqual(["101 columns, break it at 100"], found("x" * 101, "ARCHITECTURE.md"))
        self.assertEqual([], found("x" * 100, "ARCHITECTURE.md") + found("x" * 101))

    def test_figure(self):
        measured = "| 16x32 over memif, requests per core-second | >= 0.7 M | 1.873 M | reached |\n"
        readme = "A\nserver: [1.87 million\nrequests per second](docs/performance.md).\n"
        self.assertEqual([], list(pages.figure(readme, measured)))
        self.assertEqual([2], [n for n, _ in pages.figure(readme, measured.replace("873", "7"))])
        self.assertEqual([1], [n for n, _ in pages.figure("A server.\n", measured)])

    def test_tree(self):
        files = pages.tree(tidy.REPO)
        self.assertTrue({"README.md", "dev", "lib/tcp", "docs/adr"} <= files)
        self.assertFalse([name for name in files if name.startswith((".git/", "build/"))])
        self.assertIn(os.path.join("perf", "README.md"), pages.pages(files))


if __name__ == "__main__":
    unittest.main()
