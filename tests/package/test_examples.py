# SPDX-License-Identifier: BSD-3-Clause
"""The programs of examples/, built outside of the tree with pkg-config only."""
import glob
import os
import re
import shutil
import tempfile
import unittest

from tests.package.prefix import EXAMPLES, Prefix, run

NAMES = sorted(os.path.basename(path)[:-2] for path in glob.glob(os.path.join(EXAMPLES, "*.c")))
DPDK = re.compile(r"\b(?:rte_\w+\.h|RTE_\w+)|dpdk", re.I)
REFERENCE_LINES_MAX = 40
LINES_MAX = 120


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.mkdtemp(prefix="nj-package-")
        cls.addClassCleanup(shutil.rmtree, scratch)
        cls.prefix = Prefix(os.path.join(scratch, "prefix"))
        cls.folder = os.path.join(scratch, "examples")
        cls.output = cls.prefix.make_examples(cls.folder, CFLAGS="-O2 -Werror")

    def test_each_program_is_built(self):
        self.assertEqual(["events", "hello", "json_api", "kv", "paced", "reference"], NAMES)
        for name in NAMES:
            with self.subTest(program=name):
                self.assertTrue(os.access(os.path.join(self.folder, name), os.X_OK), self.output)

    def test_nothing_of_dpdk_is_exposed(self):
        """The flags expose no header, macro or library of DPDK."""
        for which in ("--cflags", "--libs", "--static --libs"):
            flags = run("pkg-config", *which.split(), "nightjar", env=self.prefix.env)
            self.assertNotRegex(flags, DPDK)
            self.assertNotRegex(flags, r"-march|-include|-mss")
        for name in NAMES:
            with self.subTest(program=name):
                source = os.path.join(self.folder, name + ".c")
                compiler = ("cc", *self.prefix.flags("--cflags"), "-E")
                self.assertNotRegex(run(*compiler, "-M", source), DPDK)
                self.assertNotRegex(run(*compiler, "-dM", source), DPDK)
                needed = run("readelf", "--wide", "--dynamic", os.path.join(self.folder, name))
                self.assertEqual({"libnightjar.so.3", "libc.so.6"},
                                 set(re.findall(r"\(NEEDED\).*\[(.*)\]", needed)))

    def test_usage(self):
        """A program without arguments prints its usage."""
        for name in NAMES:
            with self.subTest(program=name):
                with self.assertRaisesRegex(AssertionError, r"usage: \S+ ADDRESS/PREFIX "):
                    run(os.path.join(self.folder, name), env=self.prefix.env)

    def test_reference_c_is_short(self):
        with open(os.path.join(EXAMPLES, "reference.c"), encoding="utf-8") as f:
            self.assertLessEqual(len(f.readlines()), REFERENCE_LINES_MAX)

    def test_programs_are_short(self):
        for name in NAMES:
            with self.subTest(program=name), open(os.path.join(EXAMPLES, name + ".c"),
                                                  encoding="utf-8") as f:
                self.assertLessEqual(len(f.readlines()), LINES_MAX)

    def test_handlers_without_a_server(self):
        """The examples' own tests."""
        tested = sorted(os.path.basename(path)[:-len("_test.c")]
                        for path in glob.glob(os.path.join(EXAMPLES, "tests", "*_test.c")))
        output = run("make", "-C", self.folder, "check", env=self.prefix.env)
        self.assertEqual(tested, sorted(re.findall(r"^(\w+): ok$", output, re.M)))

    def test_clean(self):
        run("make", "-C", self.folder, "clean")
        self.assertEqual([], [name for name in NAMES if name in os.listdir(self.folder)])
        run("make", "-C", self.folder, env=self.prefix.env)


if __name__ == "__main__":
    unittest.main()
