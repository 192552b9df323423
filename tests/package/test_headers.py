# SPDX-License-Identifier: BSD-3-Clause
"""The public headers compile as C11 and as C++17, each alone and twice, without warnings."""
import glob
import os
import subprocess
import tempfile
import unittest

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INCLUDE = os.path.join(REPO, "lib/include")
HEADERS = sorted(os.path.relpath(path, INCLUDE)
                 for path in glob.glob(os.path.join(INCLUDE, "nightjar/*.h")))
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
# C++: functions need their C names, or no program links.
LANGUAGES = {"c": ("gcc", "-std=c11"), "cpp": ("g++", "-std=c++17")}
VERSION = "const char *used(void); const char *used(void) { return nj_version(); }\n"


class Headers(unittest.TestCase):
    def compiled(self, suffix, text):
        """Compiles `text`. Returns the output of nm for the object."""
        compiler = LANGUAGES[suffix]
        with tempfile.TemporaryDirectory(prefix="nj-headers-") as folder:
            source, made = (os.path.join(folder, name) for name in ("header." + suffix, "header.o"))
            with open(source, "w", encoding="utf-8") as f:
                f.write(text)
            done = subprocess.run([*compiler, *WARNINGS, f"-I{INCLUDE}", "-c", source, "-o", made],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), " ".join(compiler))
            return subprocess.run(["nm", made], capture_output=True, text=True, check=True).stdout

    def test_each_header_compiles_alone_and_twice(self):
        self.assertIn("nightjar/server.h", HEADERS)
        for header in HEADERS:
            for suffix in LANGUAGES:
                with self.subTest(header=header, language=suffix):
                    self.compiled(suffix, f"#include <{header}>\n" * 2 + "int of_a_source;\n")

    def test_functions_have_the_same_name_in_cpp(self):
        includes = "".join(f"#include <{header}>\n" for header in HEADERS)
        for suffix in LANGUAGES:
            with self.subTest(language=suffix):
                self.assertRegex(self.compiled(suffix, includes + VERSION), r"U nj_version\n")


if __name__ == "__main__":
    unittest.main()
