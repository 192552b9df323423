# SPDX-License-Identifier: BSD-3-Clause
"""The hardening that SECURITY.md documents for the release build, read from its binaries."""
import os
import re
import subprocess
import unittest

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RELEASE = os.path.join(REPO, "build-release")
PROGRAMS = ("app/nightjar/nightjar", "app/nightjar/nightjar-ctl",
            "app/examples/nightjar-examples")
LIBRARY = "lib/libnightjar.so"
X86 = os.uname().machine == "x86_64"


def readelf(option, path):
    return subprocess.run(["readelf", "--wide", option, path], check=True, capture_output=True,
                          text=True, env=os.environ | {"LC_ALL": "C"}).stdout


def imports(path):
    """Functions that the binary imports."""
    found = set()
    for line in readelf("--dyn-syms", path).split("\n"):
        if match := re.search(r" UND (\w+)", line):
            found.add(match[1])
    return found


def disassembled(path):
    return subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], check=True,
                          capture_output=True, text=True).stdout


@unittest.skipUnless(os.path.exists(os.path.join(RELEASE, PROGRAMS[0])), "no release is built")
class Hardening(unittest.TestCase):
    def each(self, paths):
        for path in paths:
            path = os.path.join(RELEASE, path)
            if os.path.exists(path):
                with self.subTest(binary=os.path.basename(path)):
                    yield path

    def test_programs_are_position_independent(self):
        for path in self.each(PROGRAMS):
            self.assertRegex(readelf("--file-header", path), r"Type:\s+DYN ")
            self.assertRegex(readelf("--dynamic", path), r"\(FLAGS_1\).*\bPIE\b")

    def test_relocations_are_bound_at_start_and_read_only(self):
        for path in self.each((*PROGRAMS, LIBRARY)):
            self.assertRegex(readelf("--dynamic", path), r"\(FLAGS_1\).*\bNOW\b")
            self.assertIn("GNU_RELRO", readelf("--program-headers", path))

    def test_no_memory_is_writable_and_executable(self):
        for path in self.each((*PROGRAMS, LIBRARY)):
            headers = readelf("--program-headers", path)
            self.assertRegex(headers, r"GNU_STACK\s+(?:0x\w+\s+){5}RW ")
            self.assertNotRegex(headers, r"LOAD\s+(?:0x\w+\s+){5}RWE")

    def test_stack_protector(self):
        for path in self.each((*PROGRAMS, LIBRARY)):
            self.assertIn("__stack_chk_fail", imports(path))

    def test_fortified(self):
        for path in self.each((LIBRARY,)):
            found = {name for name in imports(path) if name.endswith("_chk")}
            self.assertTrue(found & {"__snprintf_chk", "__fprintf_chk", "__vsnprintf_chk"}, found)
            # memcpy() with a run-time size: level 3, in some cases level 2
            self.assertIn("__memcpy_chk", found)

    def test_large_frames_probe_each_page(self):
        """Otherwise a large frame could skip a guard page."""
        for path in self.each((LIBRARY,)):
            if X86:  # one page at a time, each touched
                self.assertRegex(disassembled(path), r"sub\s+\$0x1000,%rsp\n\s*\w+:\s+orq\s+\$0x0,")


if __name__ == "__main__":
    unittest.main()
