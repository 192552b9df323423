# SPDX-License-Identifier: BSD-3-Clause
"""`nightjar doctor`: its command line, its JSON and the commands of its advice.
tests/unit/app_doctor*.c checks its lines for many kinds of hosts."""
import json
import os
import re
import subprocess
import tempfile
import unittest

from tests.netlab.limits import time_limit
from tests.netlab.world import REPO, server_for_nobody

NIC = "0000:03:00.0"
NODE = "sys/devices/system/node/node0/hugepages/hugepages-2048kB"
CPU = "sys/devices/system/cpu"
TYPE1 = "sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts"
NOBODY = 65534  # uid of `nightjar doctor`
NJ = 4242  # uid of the server

# A host on which every check of a file fails. "->" is a symbolic link.
BROKEN = {
    "proc/sys/kernel/osrelease": "6.1.0-test",
    "proc/cmdline": "quiet",
    "proc/meminfo": "MemAvailable:    8000000 kB\nHugepagesize:       2048 kB",
    "proc/mounts": "nodev /dev/hugepages hugetlbfs rw,pagesize=2M 0 0",
    "proc/interrupts": " 24:  1  0  IO-APIC   5-edge  ACPI:Ged",
    "proc/net/route": "Iface\tDestination",
    f"{NODE}/nr_hugepages": "0",
    f"{NODE}/free_hugepages": "-> nr_hugepages",
    "sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]",
    f"{CPU}/online": "0-1",
    f"{CPU}/isolated": "1",
    f"{CPU}/nohz_full": "1",
    f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave",
    f"sys/bus/pci/devices/{NIC}/class": "0x020000",
    f"sys/bus/pci/devices/{NIC}/driver": "-> ../../../../bus/pci/drivers/vfio-pci",
    f"sys/bus/pci/devices/{NIC}/iommu_group": "-> ../../../../kernel/iommu_groups/7",
    f"sys/kernel/iommu_groups/7/devices/{NIC}": "-> x",
    "sys/module/vfio_pci/refcnt": "0",
    TYPE1: "N",
    "etc/passwd": f"root:x:0:0::/:/bin/sh\nnj:x:{NJ}:{NJ}::/:/bin/false",
    "etc/group": f"nj:x:{NJ}:",
    "etc/sysctl.d/.keep": "",
    "etc/modprobe.d/.keep": "",
    "etc/security/limits.d/.keep": "",
    "etc/udev/rules.d/.keep": "",
    f"etc/driverctl.d/pci-{NIC}": "vfio-pci",
    "dev/hugepages/.keep": "",
    "dev/vfio/vfio": "",
    "dev/vfio/7": "",
    "dev/net/tun": "",
}


def fill(root, files):
    for name, text in files.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if text.startswith("-> "):
            os.symlink(text[3:], path)
        else:
            with open(path, "w") as f:
                f.write(text + "\n")
            os.chmod(path, 0o600 if name.startswith("dev/") else 0o644)


def snapshot(root):
    """{path: (status, content)} of all files in a folder."""
    found = {}
    for folder, folders, names in os.walk(root):
        for path in (os.path.join(folder, name) for name in folders + names):
            st = os.lstat(path)
            found[path] = (st.st_mode, st.st_uid, st.st_mtime_ns, st.st_size)
    return found


class Doctor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="nj-doctor-")
        cls.addClassCleanup(folder.cleanup)
        cls.program, cls.variables = server_for_nobody(folder.name)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="nj-host-")
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        os.chmod(self.root, 0o755)

    def run_it(self, *args, uid=NOBODY, sudo_user=None):
        env = dict(os.environ, **self.variables)
        env.pop("SUDO_USER", None)
        if sudo_user:
            env["SUDO_USER"] = sudo_user
        return subprocess.run([self.program, "doctor", *args], capture_output=True, text=True,
                              env=env, timeout=time_limit(), preexec_fn=lambda: os.setuid(uid))

    def lines(self, *args, uid=NOBODY):
        """(exit status, {id: line}) of the JSON output."""
        done = self.run_it("--json", *args, uid=uid)
        self.assertEqual("", done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual({"version", "lines"}, set(answer))
        for line in answer["lines"]:
            self.assertEqual({"id", "verdict", "what", "advice"}, set(line))
            self.assertIn(line["verdict"], ("ok", "warning", "error"))
        lines = {line["id"]: line for line in answer["lines"]}
        self.assertEqual(len(answer["lines"]), len(lines), "two lines have the same id")
        return done.returncode, lines

    def check_advice(self, lines):
        """The shell accepts all commands of the advice."""
        for line in lines.values():
            done = subprocess.run(["sh", "-n"], input=line["advice"], capture_output=True,
                                  text=True, timeout=time_limit())
            self.assertEqual("", done.stderr, line)

    def type_advice(self, line):
        """Runs the commands of the advice on the files of the tree."""
        script = re.sub(r"(?<=[ (])/(?=(sys|etc|dev)/)", self.root + "/", line["advice"])
        script = script.replace("chown nj", f"chown {NJ}")
        done = subprocess.run(["sh", "-e"], input=script, capture_output=True, text=True,
                              timeout=time_limit())
        self.assertEqual("", done.stderr, script)

    def test_each_advice_makes_its_line_ok(self):
        fill(self.root, BROKEN)
        options = ("--sysroot", self.root, "--user", "nj")
        status, lines = self.lines(*options, uid=0)
        self.assertEqual(1, status)
        self.check_advice(lines)
        typed = [name for name, line in lines.items() if line["verdict"] != "ok"]
        self.assertEqual(
            ["hugepages/node0", "hugepages/boot", "transparent-hugepages", "interrupt-remapping",
             "governor", "memlock", "permission/dev/hugepages", "permission/dev/vfio/vfio",
             "permission/dev/vfio/7", "permission/dev/net/tun"], typed)
        for name in typed:
            self.type_advice(lines[name])
        status, lines = self.lines(*options, uid=0)
        self.assertEqual([], [line for line in lines.values() if line["verdict"] != "ok"])
        self.assertEqual(0, status)

    def test_text_says_the_same(self):
        fill(self.root, BROKEN)
        status, lines = self.lines("--sysroot", self.root, "--user", "nj")
        done = self.run_it("--sysroot", self.root, "--user", "nj")
        self.assertEqual((status, ""), (done.returncode, done.stderr))
        text = "".join(
            f"{line['verdict']:<8} {line['id']:<26} {line['what']}\n" +
            "".join(f"         {command}\n" for command in line["advice"].splitlines())
            for line in lines.values())
        said, last = done.stdout[:len(text)], done.stdout[len(text):]
        self.assertEqual(text, said)
        self.assertRegex(last, r"\A\d+ errors?, \d+ warnings?: nightjar cannot start on a NIC "
                               r"of this host yet\n\Z")
        self.assertIn("| sudo tee ", text)  # the test's user is not root

    def test_by_sudo(self):
        """Under sudo the advice is for the shell of the user who called sudo."""
        fill(self.root, BROKEN)
        root, op = (self.run_it("--sysroot", self.root, "--user", "nj", uid=0,
                                sudo_user=user).stdout for user in (None, "op"))
        self.assertIn("| tee ", root)
        self.assertEqual(root, op.replace("sudo ", ""))

    def test_nothing_is_changed(self):
        fill(self.root, BROKEN)
        before = snapshot(self.root)
        self.lines("--sysroot", self.root, "--user", "nj", uid=0)
        self.assertEqual(before, snapshot(self.root))

    def test_an_empty_tree(self):
        status, lines = self.lines("--sysroot", self.root)
        self.assertEqual(1, status)
        self.assertEqual("error", lines["nics"]["verdict"])
        self.check_advice(lines)

    def test_this_host_without_root(self):
        for options in (), ("--user", "root"), ("--lcores", "0"):
            status, lines = self.lines(*options)
            is_bad = any(line["verdict"] == "error" for line in lines.values())
            self.assertEqual(int(is_bad), status)
            self.check_advice(lines)

    def test_invalid_options(self):
        for args, what in (
                (("--sort",), "--sort: there is no such option; see nightjar doctor --help"),
                (("--user",), "--user: expected a value; see nightjar doctor --help"),
                (("now",), "now: unexpected argument; see nightjar doctor --help"),
                (("--user", "nobody-knows"), "--user nobody-knows: there is no such user"),
                (("--lcores", "x"), "--lcores x: expected 1 to 64 CPUs such as 2-5,8"),
                (("--sysroot", "/none"), "--sysroot /none: there is no such folder")):
            done = self.run_it(*args)
            self.assertEqual((2, "", f"nightjar: {what}\n"),
                             (done.returncode, done.stdout, done.stderr))

    def test_help(self):
        done = self.run_it("--help")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        for option in ("--user", "--lcores", "--json", "--sysroot"):
            self.assertIn(f"  {option} ", done.stdout)

    def test_dev_doctor(self):
        done = subprocess.run([f"{REPO}/dev", "doctor"], capture_output=True, text=True, cwd="/",
                              timeout=time_limit())
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertRegex(done.stdout, r"(?m)^(ok|warn) +packages ")
        self.assertRegex(done.stdout, r"(?m)^(ok|warning|error) +nics ")
