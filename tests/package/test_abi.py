# SPDX-License-Identifier: BSD-3-Clause
"""
Compares the binary interface of libnightjar.so (exported functions, types of the public headers)
with docs/abi/libnightjar.abi. `test_abi.py --renew` writes that file.

A program runs with each later library of the same soname. Therefore the library must be compatible
with every version of the file, in this repository's history, that has its soname. Reads the
development build, because a release has no debug information.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(REPO, os.environ.get("NJ_BUILD", "build"))
NAME = "docs/abi/libnightjar.abi"
APPENDED = os.path.join(REPO, "docs/abi/libnightjar.suppr")  # changes that are compatible
LIBRARY = os.path.join(BUILD, "lib", "libnightjar.so")
HEADERS = os.path.join(REPO, "lib/include/nightjar")
RENEW = "/usr/bin/python3 -m tests.package.test_abi --renew"
# Without source locations, machine paths, and types that are not in a public header.
SMALL = ("--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed",
         "--no-parameter-names", "--exported-interfaces-only", "--drop-private-types",
         "--type-id-style", "hash", "--headers-dir")


def described(library, headers=HEADERS):
    return sorted_by_name(subprocess.run(["abidw", *SMALL, headers, library], check=True,
                                         capture_output=True, text=True).stdout)


def sorted_by_name(abi):
    """abidw writes the types and functions of each source file, a type where it finds it first. In
    one list, by name, what did not change keeps its place, and so does a function that moved."""
    root = ET.fromstring(abi)
    units = root.findall("abi-instr")
    children = {}
    for child in (child for unit in units for child in unit):
        key = child.tag, child.get("name", ""), child.get("id", "")
        assert key not in children, f"abidw describes {key} twice"
        children[key] = child
    for unit in units:
        root.remove(unit)
    if units:
        one = ET.SubElement(root, "abi-instr", {**units[0].attrib, "path": "libnightjar.c"})
        one.extend(child for _, child in sorted(children.items()))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def differences(old, new, *options):
    """
    The output of abidiff for two descriptions, '' if they are equal. Descriptions have no source
    locations, so for the library itself abidiff would drop the public types as well.
    """
    with tempfile.TemporaryDirectory(prefix="nj-abi-") as folder:
        paths = [os.path.join(folder, name) for name in ("old.abi", "new.abi")]
        for path, text in zip(paths, (old, new)):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        done = subprocess.run(["abidiff", "--no-show-locs", *options, *paths], capture_output=True,
                              text=True)
    if done.returncode & 3:  # 4 and 8 mean differences
        raise RuntimeError(f"abidiff: {done.stdout}{done.stderr}")
    return done.stdout if done.returncode else ""


def soname(abi):
    return re.search(r"""\bsoname=['"]([^'"]*)""", abi)[1]


def committed():
    """{commit: version of the file} of each commit that changed it; None without git (tarball)."""
    def git(*command):
        return subprocess.run(["git", "-c", f"safe.directory={REPO}", *command], cwd=REPO,
                              capture_output=True, text=True)
    try:
        log = git("log", "--format=%h", "--", NAME)
    except FileNotFoundError:
        return None
    if log.returncode:
        return None
    shown = {commit: git("show", f"{commit}:{NAME}") for commit in log.stdout.split()}
    return {commit: done.stdout for commit, done in shown.items() if done.returncode == 0}


@unittest.skipUnless(os.uname().machine == "x86_64", f"{NAME} is of x86_64")
class Abi(unittest.TestCase):
    def test_the_file_is_up_to_date(self):
        with open(os.path.join(REPO, NAME), encoding="utf-8") as f:
            found = differences(f.read(), described(LIBRARY))
        self.assertEqual(found, "", f"""
The library's interface is not that of {NAME}. To renew the file, run
    {RENEW}
and commit it with the change. When the change is incompatible, give the library another soname
(soversion in lib/meson.build) in the same commit.""")

    def test_an_incompatible_change_has_another_soname(self):
        now = described(LIBRARY)
        name, versions = soname(now), committed()
        if versions is None:
            self.skipTest("no history")
        self.assertTrue(versions, f"no commit has {NAME}")
        for commit, abi in versions.items():
            with self.subTest(commit=commit):
                found = soname(abi) == name and differences(
                    abi, now, "--no-added-syms", "--suppressions", APPENDED)
                self.assertFalse(found, f"""{found}
The library is incompatible with that of commit {commit}, whose soname {name} it has. Give it
another soname (soversion in lib/meson.build), and renew {NAME}:
    {RENEW}""")


class Compared(unittest.TestCase):
    """Recognition of differences, tested with libraries of a few lines."""
    HEADER = "struct n_c { int a; }; int n_f(struct n_c *c); int n_g(long b);"
    BODIES = "int n_f(struct n_c *c) { return c->a; } int n_g(long b) { return (int)b; }"

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="nj-abi-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.old = self.described(self.HEADER, self.BODIES)

    def described(self, header, *bodies):
        path = os.path.join(self.folder, "libn.so")
        files = {f"n{i}.c": f'#include "n.h"\n{body}' for i, body in enumerate(bodies)}
        for name, text in {"n.h": header, **files}.items():
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
                f.write(text + "\n")
        subprocess.run(["cc", "-g", "-shared", "-fPIC", "-Wl,-soname,libn.so.0",
                        *(os.path.join(self.folder, name) for name in files), "-o", path],
                       check=True)
        return described(path, self.folder)

    def changed(self, old, new, *options):
        changed = (text.replace(old, new) for text in (self.HEADER, self.BODIES))
        return differences(self.old, self.described(*changed), *options)

    def test_nothing(self):
        self.assertEqual(soname(self.old), "libn.so.0")
        self.assertEqual(self.changed("return", " return"), "")

    def test_a_function_that_moves_changes_no_line(self):
        bodies = self.BODIES.split(" int n_g")
        self.assertEqual(self.described(self.HEADER, bodies[0], "int n_g" + bodies[1]), self.old)

    def test_a_new_function_adds_lines(self):
        new = self.described(self.HEADER + " int n_h(void);",
                             "int n_h(void) { return 1; }" + self.BODIES)
        self.assertLess(set(self.old.split("\n")), set(new.split("\n")))

    def test_a_new_function_is_compatible(self):
        new = self.described(self.HEADER + " int n_h(void);",
                             self.BODIES + " int n_h(void) { return 1; }")
        self.assertIn("n_h", differences(self.old, new))
        self.assertEqual(differences(self.old, new, "--no-added-syms"), "")

    def test_incompatible_changes(self):
        for old, new in (("int n_g(long b)", "static int g(long b)"), ("long b", "int b"),
                         ("int a;", "int a, b;"), ("int a;", "long a;")):
            with self.subTest(new=new):
                self.assertNotEqual(self.changed(old, new, "--no-added-syms"), "")


def renew():
    os.makedirs(os.path.dirname(os.path.join(REPO, NAME)), exist_ok=True)
    with open(os.path.join(REPO, NAME), "w", encoding="utf-8") as f:
        f.write(described(LIBRARY))


if __name__ == "__main__":
    sys.exit(renew() if sys.argv[1:] == ["--renew"] else unittest.main())
