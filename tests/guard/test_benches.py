# SPDX-License-Identifier: BSD-3-Clause
"""
Tests of all benchmarks of ./dev bench, without a measurement: that what a benchmark starts is built
before it runs.
"""
import ast
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from perf.bench import record
from tests.netlab import programs
from tests.netlab.limits import time_limit

REPO = record.REPO
BUILD = os.path.join(REPO, os.environ.get("NJ_BUILD", "build"))
# Benchmarks, with the arguments that lead to them.
VERBS = {"h2load": [], "ewyk_delays": ["ewyk", "--delays"], "ewyk_server": ["ewyk", "--server"],
         "fiber": ["fiber", "--count"]}
# Arguments for which a benchmark starts more programs.
MORE = {"peers": ["--tls"], "memory": ["--tls"]}
# Prints the files of this repository that a module consists of, with those that it imports.
FILES_OF = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(*{m.__file__ for m in sys.modules.values() if getattr(m, "__file__", None)
        and m.__file__.startswith(sys.argv[2])}, sep="\\n")
"""


def benchmarks():
    """The modules of perf.bench that measure."""
    found = []
    for path in sorted(glob.glob(os.path.join(REPO, "perf", "bench", "*.py"))):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if re.search(r'^if __name__ == "__main__":', text, re.M) and "BENCHES" not in text and \
                os.path.basename(path) != "programs.py":
            found.append(os.path.basename(path).removesuffix(".py"))
    return found


def command_of(name):
    return [*VERBS.get(name, [name]), *MORE.get(name, [])]


class Programs(unittest.TestCase):
    """./dev bench, with ninja and dpkg-query replaced: it does not get as far as the benchmark."""

    @classmethod
    def setUpClass(cls):
        with open(os.path.join(BUILD, "meson-info", "intro-targets.json"), encoding="utf-8") as f:
            targets = [t for t in json.load(f) if t["type"] == "executable"]
        path = lambda t: os.path.relpath(t["filename"][0], BUILD)  # noqa: E731
        cls.paths = {t["name"]: path(t) for t in targets}
        cls.by_default = {path(t) for t in targets if t["build_by_default"]}
        scratch = tempfile.TemporaryDirectory(prefix="nj-benches-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder, cls.log = scratch.name, os.path.join(scratch.name, "log")
        cls.replace("meson", "exit 0")
        cls.replace("dpkg-query", "echo 'install ok installed'")
        cls.replace("dpkg", "exit 1")  # no version is too old
        # The targets are of interest, and then the command is to end.
        cls.replace("ninja", f'[ "$3" = build.ninja ] || {{ shift 2; echo "$@" >>{cls.log}; '
                             "exit 1; }")

    @classmethod
    def replace(cls, name, text):
        path = os.path.join(cls.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)

    def built(self, name):
        """The programs that ./dev bench builds for this benchmark."""
        with open(self.log, "w", encoding="utf-8"):
            pass
        done = subprocess.run([os.path.join(REPO, "dev"), "bench", *command_of(name)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=time_limit(),
                              env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"})
        with open(self.log, encoding="utf-8") as f:
            lines = f.read().splitlines()
        self.assertEqual(1, len(lines), f"{name}: {lines} {done.stdout}{done.stderr}")
        return set(lines[0].split()) or self.by_default

    def started(self, name):
        """The programs whose names are in the sources of the benchmark."""
        done = subprocess.run([sys.executable, "-c", FILES_OF, f"perf.bench.{name}", REPO],
                              cwd=REPO, capture_output=True, text=True, check=True)
        found = set()
        for path in done.stdout.splitlines():
            with open(path, encoding="utf-8") as f:
                words = {node.value for node in ast.walk(ast.parse(f.read()))
                         if isinstance(node, ast.Constant) and isinstance(node.value, str)}
            if path.endswith("tests/netlab/world.py"):
                words = {"nightjar"}  # its table has the programs of all tests
            elif os.sep + "perf" + os.sep in path:
                words -= {"nightjar", "nj-ahead"}  # a peer; callgrind's name of a program
            found |= {self.paths[name] for word in words
                      if (name := os.path.basename(word)) in self.paths}
        return found

    @unittest.skipIf(os.geteuid() != 0, "most benchmarks are for root")
    def test_each_benchmark_builds_what_it_starts(self):
        for name in benchmarks():
            with self.subTest(name):
                started = self.started(name)
                self.assertTrue(started)
                self.assertEqual(set(), started - self.built(name), "it starts them, and they are "
                                 "not built")

    def test_a_program_that_is_not_built_is_reported_before_the_benchmark(self):
        main = mock.Mock()
        with mock.patch.dict(programs._named, {"perf/x/nj-x": "/nowhere/nj-x"}), \
                mock.patch.object(sys, "argv", ["x"]), self.assertRaises(SystemExit) as ended:
            record.run_main("bench x", main)
        self.assertRegex(str(ended.exception), r"^bench x: not built: .*nowhere/nj-x.*"
                                               r"\./dev bench x builds ")
        main.assert_not_called()


if __name__ == "__main__":
    unittest.main()
