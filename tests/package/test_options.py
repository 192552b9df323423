# SPDX-License-Identifier: BSD-3-Clause
"""
docs/options.md, the manual pages, --help and the completions of shells agree with the tables of
options of nightjar and nightjar-load, and libnightjar(3) with the headers. `./dev options` writes
the page and the manual pages.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from lib import exports, manual_page
from tests.package.prefix import BUILD, REPO, release, run

PAGE, MAN, CONF_MAN, CTL_MAN, LOAD_MAN, LIBRARY_MAN = (
    "docs/options.md", "man/nightjar.1", "man/nightjar.conf.5", "man/nightjar-ctl.1",
    "man/nightjar-load.1", "man/libnightjar.3")
MANUALS = (MAN, CONF_MAN, CTL_MAN, LOAD_MAN, LIBRARY_MAN)
PROGRAM, WRITER = (os.path.join(BUILD, "app/nightjar", name)
                   for name in ("nightjar", "nj-option-docs"))
LOAD = os.path.join(BUILD, "perf/tools/load/nightjar-load")
COLUMNS = 100


def read(path):
    with open(os.path.join(REPO, path), encoding="utf-8") as f:
        return f.read()


def help_of(program):
    return run(program, "--help", *(["all"] if program == PROGRAM else []))


def options_of_help(program):
    return re.findall(r"^  (?:-\w, |    )?(--[\w-]+)", help_of(program), re.M)


class Options(unittest.TestCase):
    def test_the_files_are_up_to_date(self):
        for form, path in (("markdown", PAGE), ("man", MAN), ("conf-man", CONF_MAN),
                           ("ctl-man", CTL_MAN), ("load-man", LOAD_MAN)):
            with self.subTest(path=path):
                self.assertEqual(run(WRITER, form), read(path), "./dev options writes it")

    def test_help_has_the_same_options(self):
        text = help_of(PROGRAM)
        documented = re.findall(r"^\| `--([\w-]+)", read(PAGE), re.M)
        self.assertIn("addr", documented)
        self.assertEqual(documented, re.findall(r"^  --([\w-]+)", text, re.M))
        self.assertLessEqual(max(map(len, text.splitlines())), COLUMNS)

    def test_help_has_all_texts(self):
        text = " ".join(help_of(PROGRAM).split())
        meanings = re.findall(r"^\| (?:`--.*?[^\\]`|\d) \| (.*?) \|", read(PAGE), re.M)
        self.assertGreater(len(meanings), 60)
        for meaning in meanings:
            self.assertIn(meaning, text)

    def test_help_of_topics(self):
        short = run(PROGRAM, "--help").splitlines()
        self.assertLess(len(short), 40)
        self.assertLessEqual(max(map(len, short)), COLUMNS)
        topics = re.findall(r"^  ([a-z]+) ", "\n".join(short[short.index(next(
            line for line in short if "--help TOPIC" in line)):]), re.M)
        groups = re.findall(r"^## ([a-z]+)$", read(PAGE), re.M)
        after = groups.index("policy") + 1
        self.assertEqual([*groups[:after], "sites", *groups[after:], "all"], topics)
        options = []
        for topic in groups:
            text = run(PROGRAM, "--help", topic)
            self.assertLessEqual(max(map(len, text.splitlines())), COLUMNS)
            options += re.findall(r"^  (--[\w-]+)", text, re.M)
        self.assertEqual(options_of_help(PROGRAM), options)
        done = subprocess.run([PROGRAM, "--help", "storag"], capture_output=True, text=True)
        self.assertEqual((2, ""), (done.returncode, done.stdout))
        self.assertIn("did you mean storage?", done.stderr)

    def test_each_option_has_a_key(self):
        rows = re.findall(r"^\| `--([\w-]+).*\| ([^|]*) \| ([^|]*) \|$", read(PAGE), re.M)
        self.assertGreater(len(rows), 60)
        page = read(CONF_MAN).replace("\\-", "-")
        for option, key, change in rows:
            if option in ("config", "check", "explain", "explain-from", "json", "help", "version",
                          "print-preset", "print-placement"):
                self.assertEqual("", key.strip())
                continue
            section, name = re.fullmatch(r"`\[([\w ]+)\]` `(\w+)`", key).groups()
            section = section.replace("class default", "class NAME")
            part = re.search(rf"^\.SS \[{section}\]\n(.*?)^\.S", page, re.M | re.S)[1]
            self.assertIn(f"\\fB{name}\\fR = ", part)
            self.assertRegex(change, "^(reload|restart)")

    def test_load_has_the_same_options(self):
        documented = re.findall(r"^(?:\\fB\\-\w\\fR, )?\\fB\\-\\-(\S+?)\\fR", read(LOAD_MAN), re.M)
        documented = [name.replace("\\", "") for name in documented]
        self.assertIn("in-flight", documented)
        text = run(LOAD, "--help")
        self.assertEqual(documented, re.findall(r"^  (?:-\w,|   ) --([\w-]+)", text, re.M))
        self.assertLessEqual(max(map(len, text.splitlines())), COLUMNS)


class Manuals(unittest.TestCase):
    def test_functions_of_the_library(self):
        """Each function of the headers, with its declaration, and each of its paragraphs."""
        headers = {path: read(path) for path in glob.glob("lib/include/nightjar/*.h",
                                                          root_dir=REPO)}
        page = read(LIBRARY_MAN)
        self.assertEqual(manual_page.page(release(), headers), page, "./dev options writes it")
        names = [name for text in headers.values() for name in exports.exported(text)]
        self.assertIn("nj_server_run", names)
        for name in names:
            self.assertEqual(1, len(re.findall(rf"^\.SS {name}\(\)$", page, re.M)), name)
        for label in manual_page.LABELS:
            labels = sum(len(re.findall(rf"^ \* {label}:", text, re.M))
                         for text in headers.values())
            self.assertEqual(labels, len(re.findall(rf"^\.B {label}$", page, re.M)), label)

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_they_are_valid(self):
        for path in MANUALS:
            with self.subTest(path=path):
                self.assertEqual("", run("sh", "-c", 'exec groff -man -ww -Tutf8 -z "$1" 2>&1',
                                         "sh", os.path.join(REPO, path)))

    @unittest.skipUnless(shutil.which("man") and shutil.which("groff"), "no man")
    def test_man_shows_them_without_warnings(self):
        for path in MANUALS:
            with self.subTest(path=path):
                done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z",
                                       os.path.join(REPO, path)], capture_output=True, text=True,
                                      env=os.environ | {"MANROFFSEQ": ""})
                self.assertEqual((0, ""), (done.returncode, done.stderr))

    def test_they_are_installed(self):
        with open(os.path.join(BUILD, "meson-info/intro-install_plan.json"), encoding="utf-8") as f:
            plan = json.load(f)["man"]
        self.assertEqual({os.path.join(REPO, path):
                          f"{{mandir}}/man{path[-1]}/{os.path.basename(path)}" for path in MANUALS},
                         {source: entry["destination"] for source, entry in plan.items()})


COMPLETE = """
source "$1"; shift
complete -p "$1" >&2 || exit
function=$(complete -p "$1" | sed 's/.*-F \\([^ ]*\\).*/\\1/')
[ -z "$PROGRAM" ] || set -- "$PROGRAM" "${@:2}"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
$function
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Completions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="nj-completions-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for form, name in (("bash", "nightjar"), ("load-bash", "nightjar-load"),
                           ("zsh", "_nightjar"), ("load-zsh", "_nightjar-load")):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
                f.write(run(WRITER, form))

    def complete(self, *words, path=""):
        """What bash offers for the last word. `path`: of the program, in place of its name."""
        return run("bash", "--norc", "-c", COMPLETE, "bash", os.path.join(self.folder, words[0]),
                   *words, cwd=self.folder, env=os.environ | {"PROGRAM": path}).split()

    def test_bash_has_all_options(self):
        for program, path in ("nightjar", PROGRAM), ("nightjar-load", LOAD):
            options = options_of_help(path)
            self.assertGreater(len(options), 20)
            first = [] if program == "nightjar-load" else ["doctor", "convert", "ctl", "top"]
            self.assertEqual([*first, "--", *options], self.complete(program, ""))
            self.assertEqual(["--", *options], self.complete(program, "-"))

    def test_bash_completes_values(self):
        os.mkdir(os.path.join(self.folder, "site"))
        for words, offered in ((("--symlinks", ""), ["none", "owner", "beneath"]),
                               (("--symlinks", "o"), ["owner"]),
                               (("--idle", "s"), ["sleep", "spin"]),
                               (("--root", "s"), ["site"]),
                               (("--config", "_nightjar-"), ["_nightjar-load"]),
                               (("--upgrade-socket", "_nightjar-"), ["_nightjar-load"]),
                               (("--addr", ""), []),
                               (("do",), ["doctor"]),
                               (("--", "--rate-a"), ["--rate-after"])):
            with self.subTest(words=words):
                self.assertEqual(offered, self.complete("nightjar", *words))
        self.assertEqual(["tap"], self.complete("nightjar", "--preset", "ta", path=PROGRAM))
        self.assertEqual(["tap"], self.complete("nightjar-load", "--preset", "ta", path=LOAD))
        self.assertEqual([], self.complete("nightjar-load", "-d", "1"))
        self.assertEqual(["site"], self.complete("nightjar-load", "--json", "si"))

    def test_bash_completes_doctor(self):
        """Its own options, all but the one for tests."""
        options = [name for name in re.findall(r"^  (--[\w-]+)", run(PROGRAM, "doctor", "--help"),
                                               re.M) if name != "--sysroot"]
        self.assertIn("--lcores", options)
        self.assertEqual(options, self.complete("nightjar", "doctor", "--"))
        self.assertIn("root", self.complete("nightjar", "doctor", "--user", "roo"))
        self.assertEqual([], self.complete("nightjar", "doctor", "--lcores", ""))

    def test_bash_completes_ctl(self):
        """Its commands and options."""
        text = run(PROGRAM, "ctl", "--help")
        commands = re.findall(r"^  ([a-z]+)\b", text, re.M)
        options = re.findall(r"^  (--[\w-]+)", text, re.M)
        self.assertIn("reload", commands)
        self.assertIn("--socket", options)
        self.assertEqual(commands + options, self.complete("nightjar", "ctl", ""))
        self.assertEqual(["clients", "classes"], self.complete("nightjar", "ctl", "cl"))
        self.assertEqual(options, self.complete("nightjar", "top", ""))
        self.assertEqual(["_nightjar-load"], self.complete("nightjar", "ctl", "--socket",
                                                           "_nightjar-"))

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh_completes_ctl(self):
        """As in bash."""
        specs = run("zsh", "-fc", '_arguments() { print -rl -- "$@" }; words=(nightjar ctl --); '
                    "CURRENT=3; source $1", "zsh", os.path.join(self.folder, "_nightjar"))
        self.assertEqual(["socket", "pid", "json", "timeout", "interval", "once", "for", "client",
                          "port", "snaplen", "seconds", "packets", "requests", "help"],
                         re.findall(r"^--([\w-]+)\[", specs, re.M))
        self.assertRegex(specs, r"(?m)^2:command:\(status limits .*version capture trace top\)$")

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh_completes_doctor(self):
        """As in bash."""
        specs = run("zsh", "-fc", '_arguments() { print -rl -- "$@" }; words=(nightjar doctor --); '
                    "CURRENT=3; source $1", "zsh", os.path.join(self.folder, "_nightjar"))
        self.assertEqual(["user", "lcores", "json", "help"],
                         re.findall(r"^--([\w-]+)\[", specs, re.M))

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh(self):
        """zsh can parse the files and finds them by the programs' names. What they pass to
        _arguments has all options."""
        for program, path in ("nightjar", PROGRAM), ("nightjar-load", LOAD):
            file = os.path.join(self.folder, "_" + program)
            self.assertEqual("", run("zsh", "-n", file))
            self.assertEqual("_" + program, run(
                "zsh", "-fc", "fpath=($1 $fpath); autoload -Uz compinit; compinit -D -u; "
                "print $_comps[$2]", "zsh", self.folder, program).strip())
            specs = run("zsh", "-fc", '_arguments() { print -rl -- "$@" }; source $1', "zsh", file)
            names = re.findall(r"^\*?--([\w-]+)\[", specs, re.M)
            self.assertEqual(options_of_help(path), ["--" + name for name in names])
            self.assertRegex(specs, r"(?m)^\*--addr\[.*\]:ADDRESS/PREFIX")

    def test_they_are_installed(self):
        with open(os.path.join(BUILD, "meson-info/intro-installed.json"), encoding="utf-8") as f:
            places = set(json.load(f).values())
        for place in ("bash-completion/completions/nightjar",
                      "bash-completion/completions/nightjar-load",
                      "zsh/site-functions/_nightjar", "zsh/site-functions/_nightjar-load"):
            self.assertTrue(any(path.endswith("/share/" + place) for path in places), place)


if __name__ == "__main__":
    unittest.main()
