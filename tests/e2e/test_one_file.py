# SPDX-License-Identifier: BSD-3-Clause
"""A server whose command line is --config FILE alone."""
import os
import subprocess

from tests.netlab.case import ServerCase
from tests.netlab.world import Server, server_path, until


class FileServer(Server):
    path = None

    def command(self, program, options, eal):
        done = subprocess.run([server_path(), "convert", *eal, "--", *options], check=True,
                              capture_output=True, text=True)
        with open(self.path, "w") as f:
            f.write(f"include = {os.path.dirname(self.path)}/conf.d/*.conf\n{done.stdout}")
        return [server_path(program), "--config", self.path]


class OneFile(ServerCase):
    options = ("--cache", "64MiB", "--idle-timeout", "50s")

    @classmethod
    def prepare(cls):
        FileServer.path = os.path.join(cls.world.scratch, "nightjar.conf")
        os.mkdir(os.path.join(cls.world.scratch, "conf.d"))
        cls.world.server_class = FileServer

    def write(self, name, text):
        path = os.path.join(self.world.scratch, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o644)

    def test_it_serves(self):
        self.assertIn("--config", self.server.process.args)
        self.assertNotIn("--", self.server.process.args)
        self.assertEqual("<title>nightjar</title>\n", self.curl(self.world.url("/")))

    def test_a_reload(self):
        """What it can change applies, also of a file that is new. It names the rest."""
        with open(FileServer.path) as f:
            text = f.read()
        self.addCleanup(self.write, "nightjar.conf", text)
        version = self.limits()["version"]
        self.write("conf.d/10-classes.conf", "[class a]\npath = /a/\nrequest_rate = 3MiB/s\n"
                   "[site a]\n[path a /x/]\nredirect = none\n")
        self.write("nightjar.conf", text.replace("idle_timeout = 50s", "idle_timeout = 51s")
                   .replace("arguments = ", "arguments = --no-shconf ", 1))
        self.server.signal(1)
        until("the class is in force", lambda: self.limits()["version"] > version)
        until("its counts", lambda: ": 2 classes, 1 rule, 1 site, 1 path in force, "
              in self.world.errors())
        self.assertEqual("3MiB/s", self.limits()["class_a"]["request_rate"])
        until("a line", lambda: "[eal] changed: needs a restart" in self.world.errors())
        self.assertNotIn("idle_timeout: ", self.world.errors())  # it applies
        version = self.limits()["version"]
        self.write("conf.d/20-bad.conf", "\nx = 1\n")
        self.server.signal(1)
        until("a line", lambda: "conf.d/20-bad.conf:2: x: expected a [SECTION] before it"
              in self.world.errors())
        self.assertEqual(version, self.limits()["version"])
        os.unlink(os.path.join(self.world.scratch, "conf.d/20-bad.conf"))
