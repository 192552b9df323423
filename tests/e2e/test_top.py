# SPDX-License-Identifier: BSD-3-Clause
"""
nightjar top of a running server: a paced download is in the panels, and a limit changes by a key.
package/test_top.py has all else, with a server of its own.
"""
import json
import os
import re
import shutil
import subprocess
import unittest

from tests.e2e import test_ctl
from tests.netlab.tmux import tmux_server
from tests.netlab.world import server_path, until

OK, REFUSED, USAGE, UNREACHABLE = range(4)
POLICY = "[class default]\n[class video]\npath = /200KiB\nrate = 4KiB/s\nburst = 5840B\n"


class TopCase(test_ctl.CtlCase):
    policy = POLICY

    def command(self, *arguments):
        return [server_path(), "top", "--socket", self.socket, "--interval", "0.2", *arguments]

    def top(self, *arguments):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=60)
        self.assertEqual(OK, done.returncode, done.stdout + done.stderr)
        return done.stdout

    def model(self):
        return json.loads(self.top("--json"))

    def download(self):
        """One that takes 40 seconds at least, if it is not ended."""
        process = self.world.client_popen("curl", "-sS", "--http2-prior-knowledge", "-o",
                                          os.devnull, self.world.url("/200KiB"))

        def end():
            process.kill()
            process.communicate()
        self.addCleanup(end)
        until("a response is open", lambda: self.video(self.model())["open"] == 1)

    def video(self, model):
        return next(one for one in model["classes"] if one["name"] == "video")


class Once(TopCase):
    def test_what_it_tells(self):
        self.download()
        model = self.model()
        self.assertTrue(model["ready"])
        self.assertEqual([], model["why"])
        self.assertLess(model["up_s"], 3600)
        self.assertEqual(2, len(model["lcores"]))
        for one in model["lcores"]:
            self.assertTrue(0 <= one["busy"] <= 1, one)
        for name in ("requests_per_s", "tx_bits_per_s", "rx_bits_per_s", "refused_per_s"):
            self.assertGreaterEqual(model["totals"][name], 0)
        self.assertEqual((1, 1), (model["totals"]["connections"], model["totals"]["open"]))
        self.assertEqual(["(server)", "default", "video"],
                         [one["name"] for one in model["classes"]])
        self.assertEqual(("4KiB/s", "rate"), (self.video(model)["limit"],
                                               self.video(model)["limit_key"]))
        client = next(one for one in model["clients"] if one["streams"])
        self.assertEqual(1, client["streams"])
        text = self.top("-b")
        self.assertRegex(text, r"^nightjar \S.*  ready\n")
        self.assertRegex(text, r"(?m)^video +1 .* 4KiB/s ")
        self.assertRegex(text, rf"(?m)^{re.escape(client['client'])} ")


@unittest.skipUnless(shutil.which("tmux"), "no tmux")
class Terminal(TopCase):
    def tmux(self, *arguments, **more):
        tmux = ("tmux", "-S", os.path.join(self.world.scratch, "tmux"), "-f", "/dev/null")
        done = subprocess.run([*tmux, *arguments], capture_output=True, text=True, timeout=60,
                              **more)
        return done.stdout

    def shows(self, pattern):
        until(f"{pattern} is shown",
              lambda: re.search(pattern, self.tmux("capture-pane", "-p"), re.M))

    def test_keys_change_the_server(self):
        self.download()
        self.addCleanup(tmux_server(os.path.join(self.world.scratch, "tmux")))
        self.tmux("new-session", "-d", "-x", "100", "-y", "24", " ".join(self.command()) +
                  "; echo ended $?; cat", env=os.environ | {"LC_ALL": "C.UTF-8",
                                                            "SHELL": "/bin/sh"})
        self.shows(r"^video +1 .* 4KiB/s ")
        self.tmux("send-keys", "/")
        self.tmux("send-keys", "-l", "video")
        self.tmux("send-keys", "Enter", "+")
        self.shows(r"change video: rate=5KiB/s,burst=5840B\?")
        self.tmux("send-keys", "y")
        self.shows("changed: class=video,rate=5KiB/s,burst=5840B")
        self.shows(r"^video .* 5KiB/s ")
        video = next(one for one in self.json("limits")["classes"] if one["name"] == "video")
        self.assertEqual(("5KiB/s", "5840B"), (video["rate"], video["burst"]))
        self.tmux("send-keys", "Escape", "t")
        self.shows(r"/200KiB ")
        self.tmux("send-keys", "x")
        self.shows(r"end the transfer \S+ of \S+\? ")
        self.tmux("send-keys", "y")
        self.shows("^ended: ")
        until("it has ended", lambda: not self.json("transfers")["transfers"])
        self.tmux("send-keys", "l")
        self.shows(r"\*RATE")
        self.shows(r"^198\.")
        self.tmux("send-keys", "b")
        self.shows(r"block \S+ for 10 minutes\? ")
        self.tmux("send-keys", "y")
        self.shows("^blocked: ")
        self.assertTrue(590 < self.json("blocks")["blocks"][0]["seconds_left"] <= 600)
        self.tmux("send-keys", "q")
        self.shows("^ended 0$")
