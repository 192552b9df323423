# SPDX-License-Identifier: BSD-3-Clause
"""
Tests of all benchmarks of ./dev bench, without a measurement: that what a benchmark starts is built
before it runs, and that its results are written before they are judged.
"""
import ast
import contextlib
import glob
import importlib
import io
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


class Judged(Exception):
    """A function that prints or judges results was called."""


class Case:
    """A benchmark that measures nothing, and whose judgement fails."""

    def __init__(self, command, judges, **replaced):
        self.command, self.judges, self.replaced = command.split(), judges, replaced

    def run(self, path, written):
        """Calls main(). `written` is called in the place of functions that write results."""
        module = importlib.import_module(f"perf.bench.{self.command[0]}")
        fail = mock.Mock(side_effect=Judged)
        with contextlib.ExitStack() as stack:
            for name in self.judges:
                stack.enter_context(mock.patch(f"perf.bench.{name}", fail))
            for name, value in self.replaced.items():
                stack.enter_context(mock.patch(f"perf.bench.{name.replace('__', '.')}", value))
            stack.enter_context(mock.patch.object(record.Run, "row", mock.MagicMock()))
            stack.enter_context(mock.patch.object(record.Run, "write", written))
            stack.enter_context(mock.patch.object(record, "dump", written))
            stack.enter_context(mock.patch.object(sys, "argv", [*self.command, "--json", path]))
            stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
            module.main()


def returns(value):
    return lambda *_, **__: value


ANY = mock.MagicMock()  # whose attributes, items and results are ANY, too; it iterates over nothing


def cases(written, folder):
    """Names are of perf.bench; __ is a dot."""
    run, worlds = mock.Mock(write=written), mock.MagicMock()
    worlds.return_value.scratch = folder
    return [
        Case("ahead plain", ["ahead.table"], ahead__clock=returns([[1]]), ahead__figures=ANY,
             ahead__simulate=ANY, ahead__columns=ANY),
        Case("attacks", ["attacks.table", "attacks.verdicts"], attacks__Memory=ANY,
             attacks__Site=ANY, attacks__measure=returns(({}, {}, ANY))),
        Case("cache --seeds 1 zipf-1.0", ["cache.table", "cache.targets"], cache__of_seed=ANY),
        Case("differential", ["differential.report"], differential__measure=ANY,
             differential__backlog_drops=returns(0), differential__instrument=ANY,
             differential__Cell__result=ANY,
             differential__subprocess__run=returns(mock.Mock(returncode=0, stdout="{}"))),
        Case("disk", ["disk.table", "disk.judged", "disk.verdicts", "disk.remarks"],
             disk__measure=returns((ANY, {}, ANY)),
             disk__Site=ANY, disk__sites=ANY, disk__versions=returns({})),
        Case("downloads", ["downloads.table", "downloads.limits", "downloads.chart"],
             downloads__SHAPES={"article": returns(({}, []))}, downloads__backlog_drops=returns(0)),
        Case("echo", ["echo.table"], echo__Memory=ANY, echo__Bench=ANY, echo__shutil__which=ANY),
        Case("ewyk", ["ewyk.table", "ewyk.tell_others"], ewyk__measure=returns({})),
        Case("ewyk --targets", ["ewyk_targets.verdicts", "ewyk_targets.tell"],
             ewyk_targets__measure=returns({})),
        Case("ewyk_delays --quick", ["ewyk_delays.table"], ewyk_delays__run=returns({})),
        Case("ewyk_server", ["ewyk_server.table"], ewyk_server__measure=returns({})),
        Case("fiber --count", ["fiber.tell"], fiber__per_task=ANY, guard__tools=ANY),
        Case("guard", ["guard.judge", "guard.renew"], guard__count=ANY, guard__tools=ANY),
        Case("guard --profile 1", ["guard.profile"], guard__count=ANY, guard__tools=ANY),
        Case("guard --cache-sim", ["guard.show_misses"], guard__count=ANY, guard__tools=ANY),
        Case("h2load", ["h2load.table"], h2load__World=ANY, h2load__tsc_hz=ANY,
             h2load__run=returns((1, 1))),
        Case("handshakes", [f"handshakes.{name}" for name in
                            ("table", "show_lcore", "verdicts", "verdict", "summary")],
             handshakes__make_site=ANY, handshakes__Ours=ANY, handshakes__Theirs=ANY,
             handshakes__look_at_lcore=ANY, handshakes__versions=returns({}),
             handshakes__rounds_of=returns(({}, ANY))),
        Case("handshakes --flood", ["handshakes.show_floods", "handshakes.verdict"],
             handshakes__make_site=ANY, handshakes__Served=ANY, handshakes__under_flood=ANY),
        Case("idle", ["idle.tell"], idle__floor=returns([1]), idle__measure=ANY),
        Case("memory", ["memory.show"], memory__measure=ANY, memory__check_room=ANY),
        Case("scrape", ["scrape.show"], scrape__measure=ANY, scrape__check_room=ANY),
        Case("memory --tls", ["memory_tls.verdict"], memory_tls__measure=returns(1)),
        Case("pages", ["pages.judge"], pages__measure=returns([])),
        Case("peers --tls", [f"peers.{name}" for name in ("table", "wanted", "verdicts",
                                                          "tls_targets", "summary", "chart")],
             peers__bench=returns((run, {}, {}, ANY))),
        Case("peers --http1", ["peers.table", "peers.http1_ratios"],
             peers__bench=returns((run, {}, {}, ANY))),
        Case("reloads", ["reloads.judge"], reloads__run=returns({}), reloads__show=ANY),
        Case("serve", ["serve.table", "serve.label"], serve__Memory=ANY, serve__Bench=ANY),
        Case("synflood", ["synflood.report"], synflood__World=worlds, synflood__Router=ANY,
             synflood__first_of=ANY, synflood__watch=returns({})),
    ]


class Results(unittest.TestCase):
    def test_results_are_written_before_they_are_judged(self):
        for at in range(len(cases(None, ""))):
            written = mock.Mock()
            with tempfile.TemporaryDirectory(prefix="nj-benches-") as folder:
                case = cases(written, folder)[at]
                path = os.path.join(folder, "results.json")
                with self.subTest(" ".join(case.command)):
                    self.assertRaises(Judged, case.run, path, written)
                    self.assertTrue(written.called or os.path.exists(path), "no results")

    def test_each_benchmark_is_tested(self):
        """nj-exchange prints its results itself."""
        self.assertEqual(set(benchmarks()) - {"exchange"},
                         {case.command[0] for case in cases(None, "")})


if __name__ == "__main__":
    unittest.main()
