# SPDX-License-Identifier: BSD-3-Clause
"""The version of the programs, which has the commit: lib/version.py, and what a build does."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from tests.package.prefix import BUILD, REPO, release, run

RELEASE = "0.1.0"
TIME = "2026-11-26T18:38:59+00:00"
OBJECT = "lib/libnj_version.a.p/meson-generated_.._version.c.o"
PROGRAMS = ("app/nightjar/nightjar", "app/examples/nightjar-examples",
            "perf/tools/load/nightjar-load")


def script(sources):
    return run(os.path.join(sources, "lib", "version.py"), RELEASE).removesuffix("\n")


class Sources(unittest.TestCase):
    """What lib/version.py prints for different kinds of sources."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="nj-version-")
        self.addCleanup(scratch.cleanup)
        self.top = scratch.name
        self.sources = os.path.join(self.top, "nightjar")
        os.makedirs(os.path.join(self.sources, "lib"))
        shutil.copy(os.path.join(REPO, "lib", "version.py"), os.path.join(self.sources, "lib"))

    def git(self, *command, folder=None):
        who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
               for what, value in (("NAME", "nj"), ("EMAIL", "nj"), ("DATE", TIME))}
        return run("git", "-c", "safe.directory=*", *command, cwd=folder or self.sources,
                   env={"PATH": os.environ["PATH"], "HOME": self.top, **who})

    def commit(self, folder=None):
        self.git("init", "-q", folder=folder)
        self.git("add", ".", folder=folder)
        self.git("commit", "-q", "-m", "first", folder=folder)
        return self.git("rev-parse", "--short=8", "HEAD", folder=folder).strip()

    def changelog(self, text):
        os.makedirs(os.path.join(self.sources, "debian"), exist_ok=True)
        with open(os.path.join(self.sources, "debian", "changelog"), "w", encoding="utf-8") as f:
            f.write(text)

    def test_a_commit_has_its_time_and_hash(self):
        commit = self.commit()
        self.assertEqual(f"{RELEASE}~git202611261838.{commit}", script(self.sources))

    def test_changes_that_are_not_committed(self):
        commit = self.commit()
        with open(os.path.join(self.sources, "new"), "w", encoding="utf-8"):
            pass
        self.assertEqual(f"{RELEASE}~git202611261838.{commit}+changed", script(self.sources))

    def test_the_commit_of_the_release_has_its_tag(self):
        commit = self.commit()
        self.git("tag", "v0.0.9")
        self.assertEqual(f"{RELEASE}~git202611261838.{commit}", script(self.sources))
        self.git("tag", f"v{RELEASE}")
        self.assertEqual(RELEASE, script(self.sources))

    def test_sources_without_git_have_the_version_of_the_package(self):
        for version in (f"{RELEASE}-1+deb12", f"{RELEASE}~git202611261838.b86b4def-1+deb13"):
            self.changelog(f"nightjar ({version}) bookworm; urgency=medium\n\n  * Text.\n")
            self.assertEqual(version, script(self.sources))

    def test_a_folder_in_another_repository_is_not_a_clone(self):
        self.commit(self.top)
        self.assertEqual(RELEASE, script(self.sources))
        self.changelog(f"nightjar ({RELEASE}-1+deb12) bookworm; urgency=medium\n")
        self.assertEqual(f"{RELEASE}-1+deb12", script(self.sources))

    def test_sources_with_neither_have_the_release(self):
        self.assertEqual(RELEASE, script(self.sources))
        for text in ("", "another (1.0-1) bookworm; urgency=medium\n", 'nightjar (1"\\) x\n'):
            self.changelog(text)
            self.assertEqual(RELEASE, script(self.sources), text)

    def test_a_machine_without_git(self):
        self.commit()
        self.changelog(f"nightjar ({RELEASE}-1+deb12) bookworm; urgency=medium\n")
        path = os.path.join(self.sources, "lib", "version.py")
        self.assertEqual(f"{RELEASE}-1+deb12\n", run("/usr/bin/python3", path, RELEASE,
                                                     env={"PATH": self.top}))

    def test_a_clone_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        commit = self.commit()
        for folder, _, files in os.walk(self.sources):
            for name in (".", *files):
                os.chown(os.path.join(folder, name), 65534, 65534)
        self.assertEqual(f"{RELEASE}~git202611261838.{commit}", script(self.sources))


class Build(unittest.TestCase):
    """A new commit compiles one source."""

    def query(self, what):
        """The files that are made of this one."""
        text = run("ninja", "-C", BUILD, "-t", "query", what)
        return set(text.partition("outputs:")[2].split()) - {"all"}

    def test_one_object_is_made_of_the_version(self):
        self.assertEqual({OBJECT}, self.query("lib/version.c"))
        self.assertEqual({"lib/libnj_version.a"}, self.query(OBJECT))

    def test_few_programs_are_linked_again(self):
        """The others use a shared library, whose names stay, or have no version."""
        linked = self.query("lib/libnj_version.a")
        libraries = {file for file in linked if re.match(r"lib/libnightjar[-\w]*\.so", file)}
        self.assertEqual({"perf/tools/load/nightjar-load", "lib/static/libnightjar.a"},
                         linked - libraries)

    def test_no_argument_of_a_compiler_has_the_version(self):
        with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as f:
            commands = json.load(f)
        head = subprocess.run(["git", "-c", "safe.directory=*", "rev-parse", "--short=8", "HEAD"],
                              cwd=REPO, capture_output=True, text=True, check=False).stdout.strip()
        for one in commands:
            self.assertNotIn("NJ_VERSION", one["command"])
            if head:
                self.assertNotIn(head, one["command"])

    def test_programs_have_the_version_of_the_sources(self):
        wanted = run(os.path.join(REPO, "lib", "version.py"), release()).strip()
        for program in PROGRAMS:
            said = run(os.path.join(BUILD, program), "--version").strip()
            # A test may have written a file since.
            self.assertEqual(f"{os.path.basename(program)} {wanted}".removesuffix("+changed"),
                             said.removesuffix("+changed"))


if __name__ == "__main__":
    unittest.main()
