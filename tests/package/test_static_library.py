# SPDX-License-Identifier: BSD-3-Clause
"""
Programs outside of the tree that are linked with the static library, by pkg-config and by CMake,
which also finds the shared one.
"""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from tests.package.prefix import BUILD, REPO, Prefix, release, run
from tests.package.test_pkg_config import PROGRAM

# Functions that the library has, too, for itself.
CLASHES = "void nj_log(void) {}\nint nj_fiber_self(void) { return 1; }\n"
CMAKE = """
cmake_minimum_required(VERSION 3.18)
project(program C)
find_package(nightjar {version} REQUIRED)
add_executable(shared program.c)
target_link_libraries(shared nightjar::nightjar)
add_executable(static program.c)
target_link_libraries(static nightjar::nightjar-static)
"""


def needed(program):
    text = run("readelf", "--wide", "--dynamic", program)
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))


class StaticLibrary(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix="nj-static-")
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.prefix = Prefix(os.path.join(cls.scratch, "prefix"))
        cls.source = os.path.join(cls.scratch, "program.c")
        with open(cls.source, "w", encoding="utf-8") as f:
            f.write(PROGRAM + CLASHES)

    def check(self, program, is_static):
        self.assertRegex(run(program, env=self.prefix.env), r"^\d+\.\d+\.\d+\S* 80\n$")
        self.assertEqual(is_static, not any("nightjar" in name for name in needed(program)))
        self.assertEqual(is_static, "librte_eal" in " ".join(needed(program)))

    def test_a_program_is_linked_with_pkg_config(self):
        program = os.path.join(self.scratch, "program")
        run("cc", "-Wall", "-Wextra", "-Werror", "-o", program,
            *self.prefix.flags("--cflags", "nightjar-static"), self.source,
            *self.prefix.flags("--libs", "nightjar-static"))
        self.check(program, is_static=True)

    def test_only_the_public_functions_are_global(self):
        public = set(re.findall(r"(?m)^    (nj_\w+);$", self.exports()))
        text = run("nm", "--extern-only", "--defined-only",
                   os.path.join(self.prefix.lib, "libnightjar.a"))
        self.assertEqual(public, set(re.findall(r"(?m)^[0-9a-f]+ \w (\S+)$", text)))

    def exports(self):
        with open(os.path.join(BUILD, "lib/nightjar.map"), encoding="utf-8") as f:
            return f.read()

    def configure(self, version):
        """Runs cmake with the installed package. Returns its result and the folder."""
        folder = tempfile.mkdtemp(dir=self.scratch)
        shutil.copy(self.source, folder)
        with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as f:
            f.write(CMAKE.format(version=version))
        return subprocess.run(
            ["cmake", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix.folder}", "-S", folder,
             "-B", os.path.join(folder, "build")], capture_output=True, text=True,
            check=False), os.path.join(folder, "build")

    def test_cmake(self):
        major, minor, _ = release().split(".")
        done, folder = self.configure(f"{major}.{minor}")
        self.assertEqual(0, done.returncode, done.stderr)
        run("ninja", "-C", folder)
        for name in "shared", "static":
            self.check(os.path.join(folder, name), is_static=name == "static")
        compiled = run("ninja", "-C", folder, "-t", "commands")
        self.assertEqual(2, compiled.count("-fstack-clash-protection"), compiled)

    def test_cmake_with_a_later_version(self):
        done, _ = self.configure("99.0")
        self.assertIn("compatible with requested version", done.stderr)


class Version(unittest.TestCase):
    def test_the_header_has_the_version_of_meson(self):
        with open(os.path.join(REPO, "lib/include/nightjar/version.h"), encoding="utf-8") as f:
            parts = re.findall(r"(?m)^#define NJ_VERSION_(?:MAJOR|MINOR|PATCH) +(\d+)", f.read())
        self.assertEqual(release(), ".".join(parts))

    def test_versions_are_compared_as_numbers(self):
        text = """#include <nightjar/version.h>
#if NJ_VERSION < NJ_VERSION_NUMBER(NJ_VERSION_MAJOR, NJ_VERSION_MINOR, NJ_VERSION_PATCH)
#error "less than itself"
#endif
#if NJ_VERSION_NUMBER(0, 10, 0) <= NJ_VERSION_NUMBER(0, 9, 99)
#error "0.10.0 is before 0.9.99"
#endif
"""
        subprocess.run(["cc", "-fsyntax-only", "-x", "c", "-I",
                        os.path.join(REPO, "lib/include"), "-"], input=text, text=True, check=True)


if __name__ == "__main__":
    unittest.main()
