# SPDX-License-Identifier: BSD-3-Clause
"""nightjar.service as it is installed: systemd accepts it, and its exposure is low."""
import filecmp
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

from tests.package.prefix import BUILD, REPO, run

UNIT = os.path.join(BUILD, "systemd/nightjar.service")
TEMPLATE = UNIT.replace(".service", "@.service")
SAMPLE = os.path.join(REPO, "systemd/nightjar.default")
THRESHOLD = 30  # of 100
ANALYZE = shutil.which("systemd-analyze")


def settings(name):
    """The values of a setting of the unit, in order."""
    with open(UNIT, encoding="utf-8") as f:
        return re.findall(rf"^{name}=(.*)$", f.read(), re.M)


def sample():
    """{variable: words} of the sample, as a shell reads it, which systemd does here, too."""
    with open(SAMPLE, encoding="utf-8") as f:
        text = f.read()
    return {name: value.replace("\\\n", " ").split()
            for name, value in re.findall(r'^(\w+)="((?:\\\n|[^"])*)"$', text, re.M)}


class Service(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="nj-service-")
        self.addCleanup(folder.cleanup)
        self.unit = os.path.join(folder.name, "nightjar.service")
        self.write(lambda text: text)

    def write(self, change):
        """The unit with the program of the build, in a folder of its own."""
        with open(UNIT, encoding="utf-8") as f:
            text = f.read()
        program, = re.findall(r"^ExecStart=(\S+)", text, re.M)
        self.assertEqual(3, text.count(f"{program} "))
        text = text.replace(program, f"{BUILD}/app/nightjar/nightjar")
        with open(self.unit, "w", encoding="utf-8") as f:
            f.write(change(text))

    def analyze(self, *arguments):
        return subprocess.run([ANALYZE, *arguments, self.unit], capture_output=True, text=True,
                              env=os.environ | {"LC_ALL": "C", "SYSTEMD_LOG_LEVEL": "warning"})

    @unittest.skipUnless(ANALYZE, "no systemd-analyze")
    def test_systemd_accepts_the_unit(self):
        done = self.analyze("verify", "--man=no")
        self.assertEqual((0, ""), (done.returncode, done.stdout + done.stderr))
        self.write(lambda text: text.replace("ProtectClock=yes", "ProtectClocks=yes"))
        self.assertIn("ProtectClocks", self.analyze("verify", "--man=no").stderr)

    @unittest.skipUnless(ANALYZE, "no systemd-analyze")
    def test_exposure(self):
        secure = "security", "--offline=true", f"--threshold={THRESHOLD}", "--no-pager"
        done = self.analyze(*secure)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.write(lambda text: re.sub("^(User|CapabilityBoundingSet|SystemCallFilter)=.*\n", "",
                                       text, flags=re.M))
        self.assertEqual(1, self.analyze(*secure).returncode)

    def test_the_sample_is_valid(self):
        """nightjar accepts its options, and the unit uses its variables."""
        variables = sample()
        self.assertEqual({"NIGHTJAR_EAL", "NIGHTJAR_OPTIONS"}, set(variables))
        command, = settings("ExecStart")
        self.assertEqual(["--file-prefix", "%N", "$NIGHTJAR_EAL", "--", "$NIGHTJAR_OPTIONS"],
                         shlex.split(command)[1:])
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)  # the server's user writes the log
            options = " ".join(variables["NIGHTJAR_OPTIONS"])
            for path in "/srv/www", "/var/log/nightjar":
                self.assertIn(path, options)
                options = options.replace(path, folder)
            run(f"{BUILD}/app/nightjar/nightjar", "--check", *options.split())
        eal = variables["NIGHTJAR_EAL"]
        preset = eal[eal.index("--preset") + 1]
        self.assertIn("0000:03:00.0", run(f"{BUILD}/app/nightjar/nightjar", "--print-preset",
                                          preset))

    def test_files_are_installed(self):
        """Where systemd looks for them below /usr and /usr/local."""
        with open(os.path.join(BUILD, "meson-info/intro-installed.json"), encoding="utf-8") as f:
            places = json.load(f)
        prefix = os.path.commonpath(places.values())
        for source, place in ((UNIT, "lib/systemd/system/nightjar.service"),
                              (TEMPLATE, "lib/systemd/system/nightjar@.service"),
                              (f"{REPO}/systemd/nightjar.sysusers", "lib/sysusers.d/nightjar.conf"),
                              (SAMPLE, "share/nightjar/nightjar.default")):
            self.assertEqual(os.path.join(prefix, place), places[source])
        self.assertTrue(filecmp.cmp(UNIT, TEMPLATE, shallow=False))
        command, = settings("ExecStart")
        self.assertEqual(os.path.join(prefix, "bin/nightjar"), command.split()[0])

    def test_settings_agree_with_the_program(self):
        """What other tests show of the program, and what it needs of the unit."""
        self.assertEqual(["notify"], settings("Type"))
        self.assertEqual(["2"], settings("RestartPreventExitStatus"))  # invalid options
        reload, = settings("ExecReload")
        script = shlex.split(reload)
        self.assertEqual(shlex.split(settings("ExecStart")[0].replace(" -- ", " -- --check ")),
                         script[3:])
        self.assertIn("nightjar ctl --pid $MAINPID reload;", script[2])
        self.assertIn("kill -HUP $MAINPID", script[2])
        self.assertEqual(settings("AmbientCapabilities"), settings("CapabilityBoundingSet"))


if __name__ == "__main__":
    unittest.main()
