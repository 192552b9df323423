# SPDX-License-Identifier: BSD-3-Clause
"""
nightjar top: what it prints once, and what it shows in a terminal of tmux. The server is a small
one of the test, with answers as those of a real one; e2e/test_top.py has a real one.
"""
import json
import os
import re
import shutil
import subprocess
import unittest

from tests.netlab.world import until
from tests.netlab.tmux import tmux_server
from tests.package.prefix import run
from tests.package.test_ctl import (OK, PROGRAM, REFUSED, UNREACHABLE, USAGE, CtlCase, answer,
                                    head)

COMMANDS = ("stats", "shards", "classes", "limits", "clients", "refused", "abuse")
MIB = 1 << 20
EVIL = "a\x1b[31mb\x9b2Jc\x07\u202ed"  # as a client may have in a path
LIMITS = {"version": 3, "server": {"rate": "100MiB/s"},
          "classes": [{"name": "default"},
                      {"name": "video", "rate": "5MiB/s", "client_rate": "1MiB/s", "streams": "4"},
                      {"name": "iso", "rate": "2MiB/s", "ceiling": "8MiB/s"}]}


def one_class(number, name, **more):
    return {"number": number, "name": name, "requests": 100, "refused": 0, "open": 0, "waiting": 0,
            "bytes": 0, "throttled_ms": 0, "requests_per_s": 0, "bytes_per_s": 0} | more


CLASSES = [one_class(0, "default", open=3, bytes=5 << 30, bytes_per_s=1536, requests_per_s=12),
           one_class(1, "video", open=40, waiting=7, bytes_per_s=5 * MIB, refused=9),
           one_class(2, "iso", open=2, bytes_per_s=3 * MIB, throttled_ms=61000)]


def one_client(client, key, **more):
    return {"number": 0, "client": client, "key": key, "connections": 0, "streams": 0,
            "requests": 1, "refused": 0, "bytes": 0, "throttled_ms": 0} | more


CLIENTS = [one_client("198.18.0.1", "662b659d0ddf3230", bytes=3 << 30, streams=1),
           one_client("2001:db8:0:1::/64", "662b659d0ddf3231", bytes=2 << 20, streams=12)]
TRANSFERS = [{"id": "1-2-3-4", "client": "198.18.0.1", "class": "iso",
              "path": "/pub/linux/releases/12/images/x.iso",
              "bytes_per_s": 2 * MIB, "bytes_done": 100 * MIB, "bytes_left": 120 * MIB,
              "why": "class"},
             {"client": "198.18.0.2", "class": "default", "path": EVIL, "bytes_per_s": 0,
              "bytes_done": 5,
              "bytes_left": 7, "why": "receiver"}]


class Server:
    """What the fake one answers. Lcores are busy for 62 % and 9 % of the time since the sample
    before; other counts stay."""

    def __init__(self, transfers=False, problems=None):
        self.asked = 0
        self.answers = {
            "GET /ready": head(200, b"ready\n"),
            "GET /version": answer({"version": "0.1.0", "started": "2026-11-30T18:00:00Z"}),
            "GET /api/v1": answer({"commands": [
                {"name": name, "path": f"/api/v1/{name}", "help": "", "parameters": []}
                for name in (*COMMANDS, *(("transfers",) if transfers else ()),
                             *(("problems",) if problems else ()))]}),
            "GET /api/v1/problems": answer({"problems": [
                {"number": i, "kind": "table-full", "text": text}
                for i, text in enumerate(problems or ())]}),
            "GET /api/v1/shards": self.shards,
            "GET /api/v1/stats": answer({"tx_bytes": 10, "rx_bytes": 20}),
            "GET /api/v1/classes": answer({"classes": CLASSES}),
            "GET /api/v1/limits": answer(LIMITS),
            "POST /api/v1/limits": answer(LIMITS),
            "GET /api/v1/refused": answer({"reasons": [
                {"name": "tls_failed_alpn", "count": 4, "client": "198.18.0.9", "others": True}]}),
            "GET /api/v1/abuse": answer({"reasons": [
                {"name": "h2_abuse_resets", "count": 37, "client": "198.18.0.8",
                 "others": False}]}),
            "GET /api/v1/transfers?limit=1000": answer({"transfers": TRANSFERS})}
        for by in ("bytes", "streams", "connections"):
            self.answers[f"GET /api/v1/clients?limit=200&by={by}"] = answer({"clients": CLIENTS})

    def shards(self):
        self.asked += 1
        return answer({"shards": [
            {"number": i, "lcore": i + 1, "cycles_busy": busy * self.asked,
             "cycles_idle": (100 - busy) * self.asked, "requests": 7, "connections": 21}
            for i, busy in enumerate((62, 9))]})


class TopCase(CtlCase):
    def serve(self, **more):
        self.server = Server(**more)
        return self.fake(self.server.answers)

    def top(self, *arguments, expected=OK, **more):
        done = subprocess.run([PROGRAM, "top", "--socket", self.folder, "--interval", "0.01",
                               *arguments], capture_output=True, timeout=60,
                              **({"env": os.environ | {"LC_ALL": "C.UTF-8"}} | more))
        out, errors = done.stdout.decode(), done.stderr.decode()
        self.assertEqual(expected, done.returncode, out + errors)
        self.assertNotRegex(out, r"[\x00-\x09\x0b-\x1f\x7f\x80-\x9f\u202e]")
        return errors if expected not in (OK, REFUSED) else out


class Once(TopCase):
    def test_a_frame(self):
        fake = self.serve(transfers=True)
        out = self.top("-b")
        lines = [" ".join(line.split()) for line in out.splitlines()]
        self.assertRegex(lines[0], r"^nightjar 0\.1\.0 up \S+ ready$")
        self.assertEqual("requests/s 0 out 0 bit/s connections 42 open 45 waiting 7 refused/s 0 "
                         "in 0 bit/s", lines[1])
        self.assertEqual("busy 36% lcore 1: 62% 2: 9%", lines[2])
        for line in ("(server) 45 7 8.0 MiB/s 100MiB/s 12 0 9 - - - 300 5.0 GiB 1m01s",
                     "video 40 7 5.0 MiB/s 5MiB/s 0 0 9 1MiB/s - 4 100 0 B 0s",
                     "iso 2 0 3.0 MiB/s 8MiB/s 0 0 0 - - - 100 0 B 1m01s",
                     "198.18.0.1 0 B/s 3.0 GiB 1 0 0 0 0 1 0s",
                     "198.18.0.1 /pub/linux/releases/12/images/x.iso 2.0 MiB/s 100.0 MiB 1m00s "
                     "class iso 120.0 MiB",
                     "198.18.0.2 a?[31mb?2Jc??d 0 B/s 5 B - receiver default 7 B",
                     "refused tls_failed_alpn 0 4 198.18.0.9 and others",
                     "abuse h2_abuse_resets 0 37 198.18.0.8"):
            self.assertIn(line, lines, out)
        self.assertLess(lines.index("classes"), lines.index("clients"))
        self.assertEqual(2, [asked for asked, _ in fake.requests].count("GET /api/v1/shards"))

    def test_a_server_without_transfers(self):
        fake = self.serve()
        self.assertNotIn("transfers", self.top("--once"))
        self.assertFalse([asked for asked, _ in fake.requests if "/transfers" in asked])

    def test_json(self):
        self.serve()
        model = json.loads(self.top("--json"))
        self.assertEqual([{"lcore": 1, "busy": 0.62}, {"lcore": 2, "busy": 0.09}], model["lcores"])
        self.assertEqual(["(server)", "default", "video", "iso"],
                         [one["name"] for one in model["classes"]])

    def test_not_ready(self):
        self.serve()
        self.server.answers["GET /ready"] = head(
            503, b"lcore 1 has not polled for 900 ms\nport 0: no \x1b[2Jlink\n")
        out = self.top("-b", expected=REFUSED)
        self.assertIn("NOT READY", out)
        self.assertIn("lcore 1 has not polled for 900 ms; port 0: no ?[2Jlink", out)

    def test_no_utf8(self):
        """Characters that the locale does not have."""
        self.serve(transfers=True)
        name = {"classes": [one_class(0, "gr\u00fc\u00df", open=3)]}
        self.server.answers["GET /api/v1/classes"] = answer(name)
        self.assertIn("gr??", self.top("-b", env=os.environ | {"LC_ALL": "C"}))
        self.assertIn("gr\u00fc\u00df", self.top("-b"))

    def test_lines_fit(self):
        self.serve(transfers=True)
        self.assertLessEqual(max(map(len, self.top("-b").splitlines())), 200)

    def test_answers_of_other_forms(self):
        """Nothing breaks if members are absent or of another type."""
        for value in ({}, {"x": 3}, [3, None, "x", [], {}], "x", -5, [{"name": "x", "bytes": "y"}],
                      [{"name": "x", "number": 1e308, "bytes": -1, "bytes_per_s": 1e308,
                        "bytes_left": 5}] * 3):
            with self.subTest(value=value):
                fake = self.serve(transfers=True)
                for name in (*COMMANDS, "transfers", "clients?limit=200&by=bytes"):
                    key = {"refused": "reasons", "abuse": "reasons"}.get(name, name.split("?")[0])
                    self.server.answers[f"GET /api/v1/{name}"] = answer({key: value, "x": value})
                self.server.answers["GET /version"] = answer({"version": value, "started": value})
                self.top("-b")
                fake.close()

    def test_garbage(self):
        fake = self.serve()
        for part, reply, pattern in (
                ("GET /api/v1/shards", head(200, b"[1]"), "the answer is no object of JSON"),
                ("GET /api/v1/shards", b"SSH-2.0-OpenSSH\r\n", "this is no answer of nightjar"),
                ("GET /api/v1/stats", head(500, b"bad\x1b[2J\nmore"), r"answers 500: bad\?\[2J\n$"),
                ("GET /version", answer({"error": "no"}, 404), "top: no\n$")):
            with self.subTest(part=part, reply=reply):
                before = fake.answers[part]
                fake.answers[part] = reply
                self.assertRegex(self.top("-b", expected=UNREACHABLE), pattern)
                fake.answers[part] = before
        self.top("-b")

    def test_no_server(self):
        self.assertRegex(self.top("-b", expected=UNREACHABLE), "^nightjar top: no server was found")

    def test_no_terminal(self):
        self.serve()
        errors = self.top(expected=USAGE)
        self.assertIn("nightjar ctl status", errors)
        self.assertIn("--once", errors)

    def test_usage(self):
        for arguments in (("--interval", "0"), ("--interval", "x"), ("now",), ("-x",)):
            self.assertRegex(self.top(*arguments, expected=USAGE), "^nightjar ctl: ")
        self.assertIn("nightjar top [", run(PROGRAM, "top", "--help"))


@unittest.skipUnless(shutil.which("tmux"), "no tmux")
class Terminal(TopCase):
    def tmux(self, *arguments, **more):
        return run("tmux", "-S", os.path.join(self.folder, "tmux"), "-f", "/dev/null", *arguments,
                   **more)

    def start(self, width, height, script="{}; echo ended $?"):
        """Run a script of the shell, in which {} is nightjar top, in a terminal of this size."""
        self.addCleanup(tmux_server(os.path.join(self.folder, "tmux")))
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("TMUX")} | {"LC_ALL": "C.UTF-8", "SHELL": "/bin/sh"}
        command = f"{PROGRAM} top --socket {self.folder} --interval 0.05"
        self.tmux("new-session", "-d", "-x", str(width), "-y", str(height),
                  script.format(command) + "; cat", env=environment)

    def screen(self):
        return self.tmux("capture-pane", "-p", "-N").split("\n")[:-1]

    def screen_text(self):
        return "".join(self.screen())

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def shows(self, pattern):
        """Wait until a line has it. Returns the screen."""
        until(f"{pattern} is shown",
              lambda: any(re.search(pattern, line) for line in self.screen()))
        return self.screen()

    def line(self, pattern, words):
        """Wait until a line that matches has these words."""
        until(f"{pattern}: {words}", lambda: any(
            re.search(pattern, line) and words in " ".join(line.split())
            for line in self.screen()))

    def test_80_columns(self):
        self.serve()
        self.start(80, 24)
        lines = self.shows(r"62%")
        self.assertEqual(24, len(lines))
        self.assertRegex(lines[0], r"^nightjar 0\.1\.0  up \S+  ready *$")
        self.assertEqual([
            "requests/s 0  out 0 bit/s  connections 42  open 45  waiting 7  refused/s 0  in >",
            "busy 36%  lcore 1: 62%  2: 9%",
            "",
            "[classes] clients  refusals   4  sorted by RATE",
            "CLASS               OPEN  WAITING         *RATE        LIMIT    REQ/S  REFUSED/S",
            "(server)              45        7     8.0 MiB/s     100MiB/s       12          0",
            "video                 40        7     5.0 MiB/s       5MiB/s        0          0",
            "iso                    2        0     3.0 MiB/s       8MiB/s        0          0",
            "default                3        0     1.5 KiB/s            -       12          0",
            *[""] * 13,
            "h help  q quit  s sort  / filter  e + - limit  x end  b block  p pause  c class>",
        ], [line.rstrip() for line in lines[1:]])

    def test_200_columns(self):
        self.serve(transfers=True)
        self.start(200, 50)
        lines = self.shows(r"62%")
        self.assertEqual(50, len(lines))
        self.assertEqual(
            "CLASS OPEN WAITING *RATE LIMIT REQ/S REFUSED/S REFUSED PER CLIENT PER REQUEST STREAMS "
            "REQUESTS SENT THROTTLED", " ".join(lines[5].split()))
        self.assertEqual("video 40 7 5.0 MiB/s 5MiB/s 0 0 9 1MiB/s - 4 100 0 B 0s",
                         " ".join(lines[7].split()))
        self.keys("t")
        self.line("^198.18.0.1", "/pub/linux/releases/12/images/x.iso 2.0 MiB/s 100.0 MiB 1m00s "
                  "class iso 120.0 MiB")
        self.line("^198.18.0.2", "a?[31mb?2Jc??d 0 B/s 5 B - receiver default 7 B")

    def test_long_paths_at_80_columns(self):
        self.serve(transfers=True)
        self.start(80, 24)
        self.shows("62%")
        self.keys("t")
        self.shows(r"^198\.18\.0\.1 +<\S*images/x\.iso +2\.0 MiB/s")

    def test_panels_sort_filter(self):
        fake = self.serve()
        self.start(80, 24)
        self.shows("62%")
        self.keys("l")
        self.shows(r"^198\.18\.0\.1 .*3\.0 GiB")
        self.keys("s", "s")  # by streams
        self.shows("sorted by STREAMS")
        until("the server is asked for those", lambda: any(
            "by=streams" in asked for asked, _ in fake.requests))
        lines = self.shows(r"^2001:db8:0:1::/64")
        self.assertRegex(lines[6], "^2001:db8")
        self.keys("/")
        self.keys("-l", "198.")
        self.shows("show rows with: 198.")
        self.keys("Enter")
        lines = self.shows('1 of 2 with "198."')
        self.assertFalse([line for line in lines if line.startswith("2001")])
        self.keys("Escape")
        self.shows("^2001")
        self.keys("r")
        self.line("^refused", "tls_failed_alpn 0 4 198.18.0.9")
        self.keys("t")
        self.shows("this server has no list of transfers")
        self.keys("h")
        self.shows("any key: back")
        self.keys("x", "q")
        self.shows("^ended 0$")

    def test_a_limit_is_changed(self):
        fake = self.serve()
        self.start(80, 24)
        self.shows("62%")
        posted = lambda: [body for asked, body in fake.requests if asked.startswith("POST")]
        self.keys("Down", "+")
        self.shows(r"change video: rate=6400KiB/s\?")
        self.keys("n")
        self.shows("nothing was changed")
        self.assertEqual([], posted())
        self.keys("+", "-", "-")
        self.shows(r"change video: rate=4MiB/s\?")
        self.keys("y")
        self.shows("changed: class=video,rate=4MiB/s")
        self.assertEqual(["class=video,rate=4MiB/s"], posted())
        self.keys("Up", "e", "C-u")
        self.keys("-l", "rate=none")
        self.shows("limits of the server, KEY=VALUE: rate=none")
        self.keys("Enter")
        fake.answers["POST /api/v1/limits"] = answer({"error": "no \x1b[2Jsuch"}, 422)
        self.shows(r"change the server: rate=none\?")
        self.keys("y")
        self.shows(r"not changed: no \?\[2Jsuch")
        self.assertEqual("rate=none", posted()[-1])

    def posted(self, fake):
        return [(asked, body) for asked, body in fake.requests if asked.startswith("POST")]

    def test_a_transfer_ends_and_a_client_is_blocked(self):
        fake = self.serve(transfers=True)
        fake.answers["POST /api/v1/transfers/end"] = answer({"ended": 1, "lcores_missing": 0})
        fake.answers["POST /api/v1/block"] = answer({"error": "a read-only token"}, 403)
        self.start(80, 24)
        self.shows("62%")
        self.keys("x")
        self.shows(r"select a transfer first \(t\)")
        self.keys("t")
        self.shows(r"^198\.18\.0\.1 ")
        self.keys("x")
        self.shows(r"end the transfer 1-2-3-4 of 198\.18\.0\.1\? \(y: yes, other keys: no\)")
        self.keys("n", "x", "y")
        self.shows("^ended: 1-2-3-4")
        self.keys("b")
        self.shows(r"block 198\.18\.0\.1 for 10 minutes\? \(y: yes, other keys: no\)")
        self.keys("y")
        self.shows("not blocked: a read-only token")
        self.assertEqual([("POST /api/v1/transfers/end", "1-2-3-4"),
                          ("POST /api/v1/block", "198.18.0.1,10m")], self.posted(fake))
        fake.answers["POST /api/v1/block"] = head(401, b"no token")
        self.keys("b", "y")
        self.shows("not blocked: /api/v1/block: the server answers 401: no token")
        fake.answers["POST /api/v1/transfers/end"] = answer({"ended": 0, "lcores_missing": 1})
        self.keys("x", "y")
        self.shows("not ended: an lcore has not answered; it may do it later")

    def test_problems(self):
        fake = self.serve(problems=["port 0 (net_tap0) has no link", "a \u202etable is full"])
        for width in (80, 200):
            self.start(width, 24) if width == 80 else self.tmux("resize-window", "-x", "200")
            lines = self.shows("62%")
            self.assertEqual("port 0 (net_tap0) has no link; a ?table is full", lines[3].rstrip())
        fake.answers["GET /api/v1/problems"] = answer({"problems": []})
        until("none is shown", lambda: self.screen()[3].strip() == "")

    def test_size_changes(self):
        self.serve()
        self.start(80, 24)
        self.shows("62%")
        for width, height in ((200, 50), (20, 5), (1, 1), (80, 24)):
            self.tmux("resize-window", "-x", str(width), "-y", str(height))
            until(f"it has {width} columns", lambda: len(self.screen()) == height)
            if height >= 24:
                self.shows(r"^h help.*" + ("refusals" if width == 200 else "class>"))
                self.shows(r"^video")

    def test_the_server_starts_again(self):
        fake = self.serve()
        self.start(80, 24)
        self.shows("62%")
        fake.close()
        self.shows("NOT REACHABLE")
        self.assertRegex(self.screen_text(), "no server was found|no server accepts")
        self.serve()
        self.server.answers["GET /version"] = answer({"version": "0.2.0"})
        self.shows(r"^nightjar 0\.2\.0  ready")
        self.shows("62%")
        self.server.answers["GET /api/v1/shards"] = b"\0\1garbage\r\n\r\n"
        self.shows("NOT REACHABLE")

    def test_keys_work_while_the_server_is_silent(self):
        fake = self.serve()
        self.start(80, 24)
        self.shows("62%")
        fake.answers["GET /api/v1/stats"] = None
        n_asked = len(fake.requests)
        until("it is asked", lambda: ("GET /api/v1/stats", "") in fake.requests[n_asked:])
        self.keys("h")
        self.shows("any key: back")
        self.keys("q")
        self.shows("^ended 0$")

    def test_pause(self):
        fake = self.serve()
        self.start(80, 24)
        self.shows("62%")
        self.keys("p")
        self.shows("ready  paused")
        n_asked = len(fake.requests)
        self.keys("Down", "Down")
        self.keys("p")
        until("it goes on", lambda: len(fake.requests) > n_asked)
        until("it is not paused", lambda: not any("paused" in line for line in self.screen()))

    def test_signals(self):
        """It gives the terminal back."""
        self.serve()
        self.start(80, 24, "trap : INT; {}; echo ended $?")
        self.shows("62%")
        self.keys("C-c")
        self.shows("^ended 0$")

    def test_terminals(self):
        self.serve()
        self.start(80, 24, "for TERM in nonesuch dumb ''; do {}; echo ended $?; done")
        until("it ran three times", lambda: self.screen_text().count("ended 2") == 3)
        text = self.screen_text()
        for name in ("nonesuch", "dumb", ""):
            self.assertIn(f"nightjar top: TERM={name}: this terminal is unknown", text)

    def test_a_locale_without_utf8(self):
        self.serve(transfers=True)
        self.server.answers["GET /api/v1/classes"] = answer(
            {"classes": [one_class(0, "gr\u00fc\u00df")]})
        self.start(80, 24, "LC_ALL=C {}")
        self.shows(r"^gr\?\? ")


if __name__ == "__main__":
    unittest.main()
