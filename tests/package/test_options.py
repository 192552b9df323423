# SPDX-License-Identifier: BSD-3-Clause
"""
docs/options.md, man/nightjar.1 and `nightjar --help` agree with lib/config/option_table.c.
`./dev options` writes the two files.
"""
import json
import os
import re
import shutil
import unittest

from tests.package.prefix import BUILD, REPO, run

PAGE, MAN = "docs/options.md", "man/nightjar.1"
PROGRAM, WRITER = (os.path.join(BUILD, "app/nightjar", name)
                   for name in ("nightjar", "nj-option-docs"))
COLUMNS = 100


def read(path):
    with open(os.path.join(REPO, path), encoding="utf-8") as f:
        return f.read()


class Options(unittest.TestCase):
    def test_the_files_are_up_to_date(self):
        for form, path in ("markdown", PAGE), ("man", MAN):
            with self.subTest(path=path):
                self.assertEqual(run(WRITER, form), read(path), "./dev options writes it")

    def test_help_has_the_same_options(self):
        text = run(PROGRAM, "--help")
        documented = re.findall(r"^\| `--([\w-]+)", read(PAGE), re.M)
        self.assertIn("addr", documented)
        self.assertEqual(documented, re.findall(r"^  --([\w-]+)", text, re.M))
        self.assertLessEqual(max(map(len, text.splitlines())), COLUMNS)

    def test_help_has_all_texts(self):
        text = " ".join(run(PROGRAM, "--help").split())
        meanings = re.findall(r"^\| (?:`--.*?[^\\]`|\d) \| (.*?) \|", read(PAGE), re.M)
        self.assertGreater(len(meanings), 60)
        for meaning in meanings:
            self.assertIn(meaning, text)

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_the_manual_page_is_valid(self):
        done = run("sh", "-c", 'exec groff -man -ww -Tutf8 -z "$1" 2>&1', "sh",
                   os.path.join(REPO, MAN))
        self.assertEqual("", done)

    def test_the_manual_page_is_installed(self):
        with open(os.path.join(BUILD, "meson-info/intro-install_plan.json"), encoding="utf-8") as f:
            plan = json.load(f)["man"]
        self.assertEqual({os.path.join(REPO, MAN): "{mandir}/man1/nightjar.1"},
                         {source: entry["destination"] for source, entry in plan.items()})


if __name__ == "__main__":
    unittest.main()
