# SPDX-License-Identifier: BSD-3-Clause
"""Messages of tests/nic about a missing kernel, missing QEMU and failures; and its cleanup."""
import contextlib
import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from tests.netlab import reaper
from tests.netlab.world import REPO, Failed, until
from tests.nic import guest, kernel, run

NO_NETWORK = "echo 'E: Could not resolve deb.debian.org' >&2; exit 100"
KNOWN = "echo '  Depends: linux-image-6.1.0-1-cloud-amd64'"
MAKES_ARCHIVE = "touch linux-image.deb"
UNPACKS = 'mkdir -p "$3/boot" "$3/lib/modules/6.1" && touch "$3/boot/vmlinuz-6.1"'


class NoReaper:
    @staticmethod
    def will_make(*_):
        pass


class Kernel(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(mock.patch.object(kernel, "CACHE", f"{self.folder}/cache"))
        self.enterContext(mock.patch.dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}"))

    def program(self, name, script):
        """Makes a program that replaces the one of Debian."""
        with open(f"{self.folder}/{name}", "w") as f:
            f.write(f"#!/bin/sh\n{script}\n")
        os.chmod(f.name, 0o755)

    def failure(self):
        with self.assertRaises(Failed) as caught:
            kernel.kernel(NoReaper)
        return str(caught.exception)

    def test_downloaded_once(self):
        self.program("apt-cache", KNOWN)
        self.program("apt-get", MAKES_ARCHIVE)
        self.program("dpkg-deb", UNPACKS)
        first = kernel.kernel(NoReaper)
        self.assertTrue(first[0].endswith("boot/vmlinuz-6.1"), first)
        self.assertTrue(first[1].endswith("lib/modules/6.1"), first)
        self.program("apt-get", NO_NETWORK)
        self.assertEqual(first, kernel.kernel(NoReaper))

    def test_no_network(self):
        self.program("apt-cache", KNOWN)
        self.program("apt-get", NO_NETWORK)
        self.assertRegex(self.failure(),
                         "no kernel for the guest: apt-get download .*Could not resolve")

    def test_network_that_hangs(self):
        self.program("apt-get", "exec sleep 1000")
        with mock.patch.multiple(kernel, COMMAND_SECONDS_MAX=0.1, package_name=lambda: "linux"):
            self.assertRegex(self.failure(), "no kernel for the guest: not within 0.1 s: apt-get")

    def test_lists_are_fetched(self):
        self.program("apt-cache", f"[ ! -e {self.folder}/updated ] || {KNOWN}")
        self.program("apt-get", f"touch {self.folder}/updated")
        self.assertEqual("linux-image-6.1.0-1-cloud-amd64", kernel.package_name())

    def test_no_such_package(self):
        self.program("apt-cache", "exit 0")
        self.program("apt-get", "exit 0")
        self.assertRegex(self.failure(), "apt knows no package linux-image-cloud")


class Channel(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.channel = guest.Channel(f"{folder}/socket")
        self.addCleanup(self.channel.close)
        self.qemu = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.qemu.close)
        self.qemu.connect(f"{folder}/socket")
        self.channel.accept(lambda: True)

    def test_answers_in_pieces(self):
        self.qemu.sendall(b"some output\n\x01")
        self.assertIsNone(self.channel.read_until(rb"\x01(\d+)\x01\n", 0.01))
        self.qemu.sendall(b"12\x01\nnext")
        found, before = self.channel.read_until(rb"\x01(\d+)\x01\n", 10)
        self.assertEqual((b"12", b"some output\n"), (found[1], before))
        self.assertEqual(b"next", self.channel.unread)

    def test_a_connection_that_ends(self):
        self.qemu.sendall(b"half")
        self.qemu.close()
        self.assertIsNone(self.channel.read_until(b"whole", 10))

    def test_qemu_that_has_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            channel = guest.Channel(f"{folder}/socket")
            self.addCleanup(channel.close)
            with self.assertRaisesRegex(Failed, "QEMU did not connect"):
                channel.accept(lambda: False)


class Report(unittest.TestCase):
    def setUp(self):
        self.report = run.Report()
        self.out = self.enterContext(contextlib.redirect_stdout(io.StringIO()))

    def test_results_and_messages(self):
        def fails():
            raise Failed("no page\nat all")
        self.assertEqual("ok", self.report.check("nic.page", lambda: None))
        self.assertEqual("rings", self.report.check("nic.rss", lambda: "rings"))
        self.assertEqual("FAILED", self.report.check("nic.sha256", fails))
        self.assertEqual("FAILED", self.report.check("nic.flap", lambda: 1 // 0))
        self.assertEqual((2, 2), (self.report.passed, self.report.failed))
        text = self.out.getvalue()
        self.assertRegex(text, r"^ok   nic.page \(\d+.\d s\)\nok   nic.rss")
        self.assertRegex(text, r"FAIL nic.sha256 \(\d+.\d s\)\n     no page\n     at all\n")
        self.assertIn("ZeroDivisionError", text)

    def test_table(self):
        self.report.rows = [(("e1000", "vfio-pci", "1"), {"start": "ok", "page": "FAILED"})]
        self.report.not_run("igb", "QEMU 7.2 does not emulate it")
        self.report.not_run("igb", "QEMU 7.2 does not emulate it")
        head, line, row, *rest = self.report.table().splitlines()
        self.assertEqual([3 + len(run.CHECKS) + 1] * 3, [x.count("|") for x in (head, line, row)])
        self.assertTrue(row.startswith("| e1000 | vfio-pci | 1 | ok | FAILED | - |"), row)
        self.assertEqual(["", "Not run:", "", "- igb: QEMU 7.2 does not emulate it"], rest)
        self.assertEqual(1, self.out.getvalue().count("not run igb"))

    def test_missing_program(self):
        with mock.patch.object(run, "QEMU", "qemu-of-nobody"):
            with self.assertRaisesRegex(Failed, "no qemu-of-nobody: install Debian's package"):
                run.prepare(None)

    def test_a_missing_package(self):
        """It is a failure, except with --optional."""
        missing = mock.Mock(side_effect=kernel.Missing("no qemu"))
        for optional, failed in ((False, 1), (True, 0)):
            self.report = run.Report()
            with mock.patch.multiple(run, Lab=contextlib.nullcontext, prepare=missing):
                run.run(self.report, mock.Mock(quick=True, optional=optional))
            self.assertEqual(failed, self.report.failed)
        self.assertIn("not run nic.quick: no qemu\n", self.out.getvalue())


@unittest.skipUnless(os.geteuid() == 0 and shutil.which(run.QEMU), "needs root, and QEMU")
class Killed(unittest.TestCase):
    def test_resources_are_removed(self):
        tests = subprocess.Popen([sys.executable, "-m", "tests.nic.run", "--quick"], cwd=REPO,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(tests.communicate)
        self.addCleanup(tests.kill)
        name = f"njt-{tests.pid}-1"

        def qemu():
            if tests.poll() is not None:
                text = tests.stdout.read()
                (self.skipTest if "no kernel for the guest" in text else self.fail)(text)
            for pid in reaper.pids_in(name + "s"):
                if reaper.name_of(pid).startswith("qemu"):
                    return pid
            return None
        pid = until("QEMU runs", qemu, 60)
        tests.send_signal(signal.SIGKILL)
        until("all resources are removed", lambda: not any(
            map(os.path.exists, (f"/proc/{pid}", f"/run/netns/{name}s", f"/run/{name}"))), 30)


if __name__ == "__main__":
    unittest.main()
