# SPDX-License-Identifier: BSD-3-Clause
"""Tests lib/nightjar-gdb.py in a program that runs, in its core dump, and without symbols."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from tests.package.prefix import BUILD, REPO, run

PROGRAM = os.path.join(BUILD, "tests/gdb/nightjar-test-parked")
LIBRARY = os.path.join(BUILD, "lib/libnightjar-internal.so")
SCRIPT = os.path.join(REPO, "lib/nightjar-gdb.py")


def gdb(*commands, program=PROGRAM, environment=None):
    """What gdb prints. The script ends at the first command that fails."""
    arguments = [word for command in commands for word in ("-ex", command)]
    return subprocess.run(
        ["gdb", "-nx", "-batch", "-ex", "set confirm off", "-ex", "set debuginfod enabled off",
         "-ex", f"source {SCRIPT}", *arguments, program], capture_output=True, text=True,
        env=os.environ | (environment or {}), timeout=120, check=False)


@unittest.skipUnless(shutil.which("gdb"), "no gdb")
class Gdb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="nj-gdb-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        core = os.path.join(cls.folder, "core")
        registers = ("info registers rip rsp rbp rbx r12 r15",) if os.uname().machine == "x86_64" \
            else ("info registers pc sp",)
        done = gdb("break they_wait", "run", *registers, "echo FIBERS\\n", "nj fibers",
                   "echo SLEEP\\n", "nj bt 0", "echo AWAIT\\n", "nj bt 2 -full",
                   "echo WRONG\\n", f"gcore {core}", "echo AFTER\\n", *registers, "bt 1",
                   "echo END\\n", "continue")
        cls.said, cls.errors = done.stdout, done.stderr
        done = gdb(f"core-file {core}", "echo FIBERS\\n", "nj fibers", "nj bt 1")
        cls.of_core = done.stdout + done.stderr

    def part(self, name):
        match = re.search(rf"(?ms)^{name}$\n(.*?)(?=^[A-Z]+$|\Z)", self.said)
        self.assertTrue(match, self.said + self.errors)
        return match[1]

    def check_list(self, text, request=r"\[{}\]"):
        lines = [line for line in text.split("\n") if "waits for" in line]
        wanted = (("GET /sleep", "GET /sleep", r"nj_sleep\(\), [45]\d\d\d\.\d ms left"),
                  (r"POST /read/\*", "POST /read/file", r"nj_request_read\(\)"),
                  ("GET /await", "GET /await", r"nj_await\(\)"),
                  ("GET /write", "GET /write", r"nj_response_write\(\)"))
        self.assertEqual(len(wanted), len(lines), text + self.errors)
        for number, (line, (route, target, call)) in enumerate(zip(lines, wanted)):
            self.assertRegex(line, rf"^{number}  thread 1(?: \(\S+\))?  {route}  "
                                   rf"{request.format(target)}  waits for {call}$")

    def test_fibers(self):
        self.check_list(self.part("FIBERS"))

    def test_backtrace(self):
        text = self.part("SLEEP")
        self.assertIn("route GET /sleep [GET /sleep]", text)
        names = re.findall(r"(?m)^#\d+ .*?(?:in )?(\w+) \(", text)
        self.assertEqual("leave", names[0], text)
        at = names.index("nj_sleep")
        self.assertEqual("sleeps", names[at + 1], text)
        self.assertEqual("body", names[-1], text)
        self.assertEqual(list(range(len(names))),
                         [int(n) for n in re.findall(r"(?m)^#(\d+)", text)], text)

    def test_backtrace_with_variables(self):
        text = self.part("AWAIT")
        self.assertEqual(4, len(re.findall(r"in wait_in_a_function \(", text)), text)
        self.assertRegex(text, r"(?m)wait_in_a_function \(.*depth=3\)")

    def test_nothing_of_the_program_changes(self):
        before = re.search(r"(?ms)((?:^[a-z]\w+ +0x.*?\n)+)FIBERS", self.said)
        self.assertTrue(before, self.said)
        self.assertIn(before[1], self.part("AFTER"))
        self.assertRegex(self.part("AFTER"), r"(?m)^#0  they_wait \(")
        self.assertIn("exited normally", self.said)

    def test_a_core_dump(self):
        """It has no requests (docs/adr/0014-what-a-core-dump-leaves-out.md)."""
        self.check_list(self.of_core, request=r"\[\?\]")
        self.assertRegex(self.of_core, r"(?m)^#\d+ .*in reads \(")

    def test_errors(self):
        for command in "nj fibers", "nj bt 0":
            self.assertIn("no program runs here", gdb(command).stderr)
        program = os.path.join(self.folder, os.path.basename(PROGRAM))
        library = os.path.join(self.folder, os.path.basename(LIBRARY))
        for source, copy in (PROGRAM, program), (LIBRARY, library):
            run("objcopy", "--strip-debug", source, copy)
        done = gdb("break they_wait", "run", "nj fibers", program=program,
                   environment={"LD_LIBRARY_PATH": self.folder})
        self.assertIn("libnightjar has no debug symbols", done.stderr)


if __name__ == "__main__":
    unittest.main()
