# SPDX-License-Identifier: BSD-3-Clause
"""
nightjar ctl and the JSON of a running server: each answer has the form of docs/api/openapi.yaml and
agrees with telemetry; limits and the configuration change. package/test_ctl.py has wrong answers.
"""
import json
import os
import signal
import subprocess
import unittest

from tests.netlab.case import ServerCase
from tests.netlab.world import server_path, until
from tests.openapi import BASE, check, document, has_json

OK, REFUSED, USAGE, UNREACHABLE = range(4)
POLICY = "[class default]\nrate = 100MiB/s\n[class video]\npath = /video/\n"


class CtlCase(ServerCase):
    policy = POLICY

    @classmethod
    def setUpClass(cls):
        options = subprocess.run([server_path(), "--help", "all"], capture_output=True, text=True)
        if "--management-socket" not in options.stdout:
            raise unittest.SkipTest("this server has no management listener")
        super().setUpClass()
        until("it is ready", lambda: not subprocess.run(
            [server_path(), "ctl", "--socket", cls.socket, "status"],
            stdout=subprocess.DEVNULL).returncode)

    @classmethod
    def prepare(cls):
        cls.socket = os.path.join(cls.world.scratch, "nightjar.sock")
        cls.world.options += ["--management-socket", cls.socket]

    def run_ctl(self, *arguments):
        return subprocess.run([server_path(), "ctl", "--socket", self.socket, *arguments],
                              capture_output=True, text=True, timeout=60)

    def ctl(self, *arguments, expected=OK):
        done = self.run_ctl(*arguments)
        self.assertEqual(expected, done.returncode, done.stdout + done.stderr)
        return done.stdout if expected == OK else done.stderr

    def json(self, *arguments):
        return json.loads(self.ctl("--json", *arguments))


class Answers(CtlCase):
    def test_each_answer_has_its_form(self):
        self.curl("-o", os.devnull, self.world.url("/200KiB"))
        commands = self.json("get")
        check(BASE, commands)
        for command in commands["commands"]:
            name = command["name"]
            params = [(), *((f"{one}=0",) for one in command["parameters"][:1]
                            if one in ("shard", "port"))]
            for given in params:
                with self.subTest(name=name, params=given):
                    check(f"{BASE}/{name}", self.json("get", name, *given))
        self.assertEqual({f"{BASE}/{one['name']}" for one in commands["commands"]} |
                         {BASE, f"{BASE}/diff"},
                         {path for path, methods in document()["paths"].items()
                          if "get" in methods and has_json(methods["get"])})

    def test_it_agrees_with_telemetry(self):
        self.curl("-o", os.devnull, self.world.url("/200KiB"))
        default = lambda: self.server.telemetry("/nightjar/classes")["class0"]
        until("it is at rest", lambda: default()["open"] == default()["bytes_per_s"] == 0)
        self.assertEqual(self.server.telemetry("/nightjar/classes"),
                         {f"class{one.pop('number')}": one
                          for one in self.json("classes")["classes"]})
        self.assertEqual([0, 1], [one["number"] for one in self.json("shards")["shards"]])
        self.assertEqual(self.server.telemetry("/nightjar/version"), self.json("get", "version"))
        self.assertEqual(self.server.addresses(),
                         {f"{one['address']}/{one['prefix']}": one["state"]
                          for one in self.json("get", "addresses")["addresses"]})

    def test_parameters(self):
        for arguments in (("limit=3",), ("by=streams",), ("limit=2", "by=connections")):
            check(f"{BASE}/clients", self.json("clients", *arguments))
        self.assertIn("nightjar ctl: ", self.ctl("clients", "limit=0", expected=REFUSED))
        self.assertIn("nightjar ctl: ", self.ctl("get", "stats", "x=1", expected=REFUSED))
        self.assertIn("nightjar ctl: ", self.ctl("get", "none", expected=REFUSED))
        before = self.json("limits")
        self.ctl("get", "limits", "rate=1MiB/s", expected=REFUSED)
        self.assertEqual(before, self.json("limits"))

    def test_tables(self):
        for name in ("status", "clients", "classes", "shards", "limits", "version"):
            with self.subTest(name=name):
                lines = self.ctl(name).splitlines()
                self.assertGreater(len(lines), 1 if name != "version" else 0)
                self.assertLessEqual(max(map(len, lines)), 160)
        self.assertIn(": ready\n", self.ctl("status"))
        self.assertIn("default", self.ctl("classes"))


class Handlers(CtlCase):
    program = "nightjar-examples"

    def test_routes(self):
        self.curl("-o", os.devnull, self.world.url("/hello"))
        whole = self.json("get", "ewyk")
        check(f"{BASE}/ewyk", whole)
        hello = next(one for one in whole["routes"] if one["route"].endswith("/hello"))
        until("it is counted", lambda: self.json("get", "ewyk", f"route={hello['number']}")
              ["routes"][0]["pc"] == 1)
        one = self.json("get", "ewyk", f"route={hello['number']}")
        check(f"{BASE}/ewyk", one)
        self.assertEqual(self.lcores, len(one["routes"][0]["shards"]))
        parts = [self.json("get", "ewyk", f"route={hello['number']}", f"shard={i}")["routes"][0]
                 for i in range(self.lcores)]
        self.assertEqual(1, sum(part["pc"] for part in parts))
        self.ctl("get", "ewyk", "reset", expected=REFUSED)
        self.assertEqual(1, self.json("get", "ewyk", f"route={hello['number']}")["routes"][0]["pc"])


class Transfers(CtlCase):
    policy = ("[server]\ndeny_action = reset\n" + POLICY +
              "[class slow]\npath = /10MiB\nrequest_rate = 100KiB/s\n")

    def download(self, *options):
        """A download of which the server has sent a part."""
        curl = self.world.client_popen("curl", "-sS", "-o", os.devnull, *options,
                                       self.world.url("/10MiB"))
        self.addCleanup(curl.wait)
        self.addCleanup(curl.kill)
        return curl

    def transfers(self, n, *parameters):
        def all_of_them():
            found = self.json("transfers", *parameters)
            check(f"{BASE}/transfers", found)
            self.assertEqual(0, found["lcores_missing"])
            rows = found["transfers"]
            is_all = len(rows) == n and all(row["bytes_done"] for row in rows)
            return (rows,) if is_all else None
        return until(f"{n} transfers run", all_of_them)[0]

    def test_one_is_seen_and_ended(self):
        curls = self.download("--http2-prior-knowledge"), self.download("--http1.1")
        rows = self.transfers(2)
        self.assertEqual({"h2", "http/1"}, {row["protocol"] for row in rows})
        for row in rows:
            self.assertEqual(("/10MiB", "slow", "class", 200, 10 << 20),
                             (row["path"], row["class"], row["why"], row["status"],
                              row["bytes_done"] + row["bytes_left"]))
        self.assertIn("/10MiB", self.ctl("transfers", "limit=1"))
        for row, curl in zip(sorted(rows, key=lambda row: row["protocol"]), curls):
            self.assertEqual("1 ended\n", self.ctl("kill", row["id"]))
            self.assertNotEqual(0, curl.wait(60))
            self.assertIn("no such transfer", self.ctl("kill", row["id"], expected=REFUSED))
        self.assertEqual([], self.transfers(0))

    def test_those_of_a_network_are_ended(self):
        client = self.download("--http2-prior-knowledge")
        address = self.transfers(1)[0]["client"]
        self.assertEqual([], self.transfers(0, "client=203.0.113.0/24"))
        self.assertEqual(1, len(self.transfers(1, f"client={address}")))
        self.assertEqual("0 ended\n", self.ctl("kill", "203.0.113.0/24"))
        self.assertEqual("1 ended\n", self.ctl("kill", f"{address}/32"))
        self.assertNotEqual(0, client.wait(60))

    def test_a_block_ends_and_refuses(self):
        client = self.download("--http2-prior-knowledge")
        address = self.transfers(1)[0]["client"]
        self.addCleanup(self.run_ctl, "unblock", address)
        self.assertIn(address, self.ctl("block", address, "--for", "1h"))
        self.assertNotEqual(0, client.wait(60))
        blocks = self.json("blocks")
        check(f"{BASE}/blocks", blocks)
        self.assertEqual([f"{address}/32"], [one["network"] for one in blocks["blocks"]])
        refused = self.world.client("curl", "-sS", "--http2-prior-knowledge", self.world.url("/"))
        self.assertNotEqual(0, refused.returncode)
        self.ctl("reload")
        self.assertEqual(1, len(self.json("blocks")["blocks"]))
        self.ctl("unblock", address)
        self.assertEqual({"blocks": []}, self.json("blocks"))
        self.assertIn("not blocked", self.ctl("unblock", address, expected=REFUSED))
        until("it is served again", lambda: self.world.client(
            "curl", "-sS", "--http2-prior-knowledge", self.world.url("/")).returncode == 0)

    def test_what_cannot_be_done(self):
        for command in (("kill", "x"), ("kill", "0-0-0"), ("kill", "198.18.0.1/16"),
                        ("block", "198.18.0.0/33"), ("block", "--for", "x", "198.18.0.9"),
                        ("block", "--for", "400d", "198.18.0.9"), ("unblock", "x"),
                        ("transfers", "limit=0"), ("transfers", "client=x")):
            with self.subTest(command=command):
                self.assertIn("nightjar ctl: ", self.ctl(*command, expected=REFUSED))
        self.ctl("kill", expected=USAGE)
        self.ctl("reload", "--for", "1m", expected=USAGE)
        self.assertEqual({"blocks": []}, self.json("blocks"))


class Changes(CtlCase):
    def test_limits(self):
        before = self.json("limits")
        out = self.ctl("limits", "class=video", "rate=5MiB/s", "streams=4")
        self.assertIn("5MiB/s", out)
        after = self.json("limits")
        self.assertEqual(before["version"] + 1, after["version"])
        video = next(one for one in after["classes"] if one["name"] == "video")
        self.assertEqual(("5MiB/s", "4"), (video["rate"], video["streams"]))
        self.assertIn("there is no such class",
                      self.ctl("limits", "class=none", "rate=1MiB/s", expected=REFUSED))
        self.assertEqual(after, self.json("limits"))
        self.ctl("reload")
        self.assertEqual(after["changes"], self.json("limits")["changes"])
        self.assertRegex(self.server.stderr_text,
                         r"policy \d+: class video: rate \S+ -> 5MiB/s, .*streams none -> 4")
        self.assertRegex(self.server.stderr_text, r"management: POST /api/v1/limits "
                         rf"class=video,rate=5MiB/s,streams=4 from user {os.getuid()} ")

    def test_limits_for_a_time(self):
        self.ctl("limits", "--for", "2h", "class=default", "client_rate=7MiB/s", "then=9MiB/s")
        self.ctl("limits", "class=default", "--for", "1m", "streams=3")
        limits = self.json("limits")
        check(f"{BASE}/limits", limits)
        self.assertEqual([("client_rate", "7MiB/s", "9MiB/s"), ("streams", "3", "none")],
                         [(one["key"], one["value"], one["then"]) for one in limits["changes"]
                          if "seconds_left" in one])
        self.assertIn("9MiB/s", self.ctl("limits"))
        self.ctl("limits", "class=default", "streams=none")
        self.ctl("limits", "class=default", "--for", "1s", "streams=3")
        until("its end has come", lambda: "streams" not in
              [one["key"] for one in self.json("limits")["changes"] if "seconds_left" in one])
        self.assertNotIn("streams", self.json("limits")["classes"][0])
        self.ctl("limits", "class=default", "client_rate=none")  # no time is left that would differ
        self.assertIn("expected a time", self.ctl("limits", "--for", "x", "rate=1MiB/s",
                                                  expected=REFUSED))
        self.ctl("limits", "--for", "1m", expected=USAGE)

    def diff(self, expected=REFUSED):
        done = self.run_ctl("--json", "diff")
        self.assertEqual(expected, done.returncode, done.stdout + done.stderr)
        answer = json.loads(done.stdout)
        check(f"{BASE}/diff", answer)
        self.assertEqual(expected == OK, answer["equal"])
        return answer

    def test_diff(self):
        self.write_policy(POLICY)
        self.ctl("reload")
        self.ctl("limits", "class=video", "rate=none", "streams=none")
        self.diff(OK)
        self.assertEqual("equal\n", self.ctl("diff"))
        before = self.json("limits")
        self.write_policy("[process]\nfibers = 300\n" +
                          POLICY.replace("100MiB", "50MiB").replace("path", "host = x\npath"))
        self.ctl("limits", "class=video", "rate=5MiB/s")
        self.ctl("block", "203.0.113.0/24", "--for", "1h")
        self.addCleanup(self.run_ctl, "unblock", "203.0.113.0/24")
        answer = self.diff()
        self.assertIn({"section": "class default", "key": "rate", "running": "100MiB/s",
                       "file_has": "50MiB/s", "file": self.policy_path, "line": 4},
                      [{key: one[key] for key in one if key != "number"}
                       for one in answer["changes"]])
        self.assertIn("needs a restart", answer["restart"][0])
        self.assertIn(("class video", "host", None, "x"), [
            (one["section"], one["key"], one.get("running"), one["file_has"])
            for one in answer["changes"]])
        self.assertIn(("video", "rate", "5MiB/s"), [(one["class"], one["key"], one["running"])
                                                    for one in answer["limits"]])
        self.assertEqual("203.0.113.0/24", answer["blocks"][0]["network"])
        self.assertNotEqual(before, self.json("limits"))
        self.assertEqual("100MiB/s", self.json("limits")["classes"][0]["rate"])
        lines = self.run_ctl("diff").stdout
        self.assertRegex(lines, r"class default +rate +100MiB/s +50MiB/s ")
        self.write_policy(POLICY.replace("rate", "rat"))
        answer = self.diff(USAGE)
        self.assertIn(f"{self.policy_path}:2: ", answer["errors"][0])
        self.assertIn(f"{self.policy_path}:2: ", self.ctl("diff", expected=USAGE))
        self.write_policy(POLICY)

    def test_reload(self):
        before = self.json("limits")
        self.write_policy(POLICY.replace("100MiB", "50MiB"))
        self.ctl("reload")
        after = self.json("limits")
        self.assertGreater(after["version"], before["version"])
        self.assertEqual("50MiB/s", after["classes"][0]["rate"])

    def test_reload_of_a_bad_file(self):
        before = self.json("limits")
        self.write_policy(POLICY.replace("rate", "rat"))
        errors = self.ctl("reload", expected=REFUSED)
        self.assertIn(f"{self.policy_path}:2: ", errors)
        self.assertIn("rat", errors)
        self.assertEqual(before, self.json("limits"))
        self.write_policy(POLICY)
        self.ctl("reload")


class Ends(CtlCase):
    def test_a_stopped_process(self):
        """The server does not answer: the time-out ends the command."""
        self.ctl("version")
        self.ctl("--pid", str(self.server.process.pid), "version")
        self.assertIn("no socket of process 1,", self.ctl("--pid", "1", "version",
                                                          expected=UNREACHABLE))
        self.server.signal(signal.SIGSTOP)
        try:
            self.assertIn("did not answer within 0.1 s",
                          self.ctl("--timeout", "0.1", "version", expected=UNREACHABLE))
        finally:
            self.server.signal(signal.SIGCONT)
        self.ctl("version")
