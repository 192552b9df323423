# SPDX-License-Identifier: BSD-3-Clause
"""The configuration file: what is said of bad ones, and how another one comes into force."""
import json
import os
import re
import subprocess
import tempfile
import unittest

from tests.netlab.case import ServerCase
from tests.netlab.certificates import Authority
from tests.netlab.h2client import Client
from tests.netlab.limits import time_limit
from tests.netlab.world import CLIENT_ADDR, REPO, World, server_path, until

FAULTS = """\
[server]
rate = 20MiB
[class video]
ratte = 5MiB/s
path = /video/
nonsense
[list bots]
networks = 192.0.2.1/24
"""


EVERYTHING = """\
[server]
rate = 800Mbit/s
deny = bots
[list bots]
networks = 192.0.2.0/24, 2001:db8::/32
[class gold]
path = /iso/, /a/
host = x.example
list = bots
header = X-Tier: gold
hours = 22:00-06:00
[class gold 23:00-01:00]
rate = 5MiB/s
[class video]
path = /v/*
path = /iso/ ; images
[site www.example.org]
name = *.example.net
header = set X-A: b
[path www.example.org /old/]
redirect = 301 https://new.example.org/$rest
[files]
listing = yes
[limits]
body_timeout = 500ms
max_body = 1MiB
min_rate = none
[log]
access_log = -
"""

SHOWN = """\
listener 80
    protocols = HTTP/2, HTTP/1.1
server
    rate = 800Mbit/s
    ceiling = 800Mbit/s
    deny = bots
    deny_action = drop
client
    by = address
    prefix4 = 32
    prefix6 = 64
class default
    limits = none
    matches = everything else
class gold
    hours = 22:00-06:00
    limits = none
    path = /iso/, /a/
    host = x.example
    list = bots
    header = x-tier: gold
class video
    limits = none
    path = /v/*, /iso/ ; images
class gold
    hours = 23:00-01:00
    rate = 5MiB/s
list bots
    networks = 192.0.2.0/24, 2001:db8::/32
site www.example.org
    name = *.example.net
    header = set x-a: b
    matches = www.example.org, *.example.net
path www.example.org /old/
    redirect = 301 https://new.example.org/$rest
    matches = /old and all paths below it
time zone
    hours = UTC0 (now UTC, UTC+0000)
files
    listing = yes
limits
    max_body = 1MiB
    body_timeout = 500ms
    min_rate = none
log
    access_log = -
"""


def check(*options):
    return subprocess.run([server_path(), "--check", *options], capture_output=True, text=True,
                          timeout=time_limit(), env=dict(os.environ) | {"TZ": "UTC0"})


class Check(unittest.TestCase):
    """nightjar --check, which starts nothing."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o777)  # files are checked as the server's user
        self.path = os.path.join(folder.name, "policy.conf")

    def write(self, text, name=None):
        with open(name or self.path, "w") as f:
            f.write(text)

    def test_every_fault_has_file_and_line(self):
        self.write(FAULTS)
        done = check("--config", self.path)
        self.assertEqual(2, done.returncode)
        self.assertEqual("", done.stdout)
        told = done.stderr.splitlines()
        self.assertEqual([2, 4, 6, 8],
                         sorted(int(re.match(rf"{self.path}:(\d+): ", t)[1]) for t in told))
        self.assertIn("did you mean rate?", done.stderr)

    def test_a_good_one_is_shown(self):
        self.write("[class video]\npath = /video/\nrate = 5MiB/s\n")
        done = check("--config", self.path, "--rate", "20MiB/s")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn("server\n    rate = 20MiB/s\n", done.stdout)
        self.assertIn("class video\n    rate = 5MiB/s\n", done.stdout)
        self.assertIn("client\n    by = address\n    prefix4 = 32\n    prefix6 = 64\n", done.stdout)
        self.write("[client]\nby = header X-Customer\n")
        self.assertIn("client\n    by = header x-customer, else address\n",
                      check("--config", self.path).stdout)

    def test_files_of_tls_are_read(self):
        folder = os.path.dirname(self.path)
        authority, stranger = Authority(folder, "authority"), Authority(folder, "stranger")
        cert, key = authority.sign("server", "/CN=server", 7, "subjectAltName=DNS:nightjar.test")
        ocsp = authority.ocsp(cert, 7)
        good = ("--tls-cert", cert, "--tls-key", key, "--tls-ocsp", ocsp, "--tls-client-ca",
                authority.cert)
        done = check(*good)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        for options, message in (
                (("--tls-cert", cert, "--tls-key", authority.key), "is not the private key of"),
                ((*good[:4], "--tls-ocsp", cert), "cannot be used as OCSP response"),
                ((*good[:4], "--tls-client-ca", key), "authority of client certificates"),
                (("--tls-cert", stranger.cert, "--tls-key", stranger.key, *good[4:6]),
                 "it is not about a certificate of this server")):
            with self.subTest(options=options):
                done = check(*options)
                self.assertEqual((2, ""), (done.returncode, done.stdout))
                self.assertIn(message, done.stderr)

    def test_everything_is_shown(self):
        """What classes match, lists, files, limits; and what is probably not meant, on stderr."""
        self.write(EVERYTHING)
        done = check("--config", self.path)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(SHOWN, done.stdout.partition("access log\n")[0])
        self.assertEqual([f"{self.path}:{line}: warning:" for line in (15, 16)],
                         [" ".join(x.split()[:2]) for x in done.stderr.splitlines()], done.stderr)

    def test_json(self):
        """What is shown, warnings and errors are objects with file and line."""
        def items(text, status, *options):
            self.write(text)
            done = check("--json", "--config", self.path, *options)
            self.assertEqual((status, ""), (done.returncode, done.stderr))
            return json.loads(done.stdout)

        def lines(items, kind):
            return [i["line"] for i in items if i["kind"] == kind and i["file"] == self.path]

        shown = items(EVERYTHING, 0)
        self.assertEqual([15, 16], lines(shown, "warning"))
        self.assertEqual([17], lines(shown, "site"))
        self.assertIn("needed for a start", [i["kind"] for i in shown])
        self.assertEqual([2, 4, 6, 8], lines(items(FAULTS, 2), "error"))
        authority = Authority(os.path.dirname(self.path), "authority")
        cert, key = authority.sign("server", "/CN=server", 300,
                                   "subjectAltName=DNS:nightjar.test,IP:192.0.2.1")
        for file in (cert, key):
            os.chmod(file, 0o644)
        shown = items("", 0, "--tls-cert", cert, "--tls-key", key)
        found = [i for i in shown if i["kind"] == "certificate"]
        self.assertEqual([cert], [i["name"] for i in found])
        values = {k["key"]: k["value"] for k in found[0]["keys"]}
        self.assertEqual("nightjar.test, 192.0.2.1", values["names"])
        self.assertRegex(values["expires"], r"^20\d\d-\d\d-\d\dT")

    def test_files_are_tried_as_the_user(self):
        os.chmod(os.path.dirname(self.path), 0o755)
        self.write("192.0.2.1\n", hidden := os.path.join(os.path.dirname(self.path), "list"))
        os.chmod(hidden, 0o600)
        self.write(f"[list l]\nfile = {hidden}\n[server]\ndeny = l\n[user]\nname = nobody\n")
        done = check("--config", self.path)
        self.assertEqual(2, done.returncode)
        self.assertIn(f"list {hidden}: user nobody (group nogroup) cannot read it", done.stderr)
        self.assertIn(f"file {hidden}\n    of = list\n    user = nobody\n    may = not use it\n",
                      done.stdout)
        os.chmod(hidden, 0o644)
        self.assertEqual(0, check("--config", self.path).returncode)

    def test_help_about_sites(self):
        done = subprocess.run([server_path(), "--help", "sites"], capture_output=True, text=True,
                              timeout=time_limit())
        self.assertEqual(0, done.returncode, done.stderr)
        for word in ("[site NAME] redirect = ", "[site NAME] try = "):
            self.assertIn(word, done.stdout)
        self.assertNotIn("[class NAME]", done.stdout)

    def test_a_rate_is_shown_as_it_was_written(self):
        for rate in ("800Mbit/s", "20MiB/s", "1Gbit/s", "123457B/s"):
            self.assertIn(f"server\n    rate = {rate}\n", check("--rate", rate).stdout)

    def test_unknown_options_have_a_suggestion(self):
        for option, told in (("--ratte=1MiB/s", "--ratte: there is no such option: did you mean "
                              "--rate?"),
                             ("--chekc", "did you mean --check?"), ("-x", "options begin with --"),
                             ("--qqqqqqqqq", "--qqqqqqqqq: there is no such option; see --help"),
                             ("--rate", "--rate: expected a value"),
                             ("--listing=yes", "--listing: expected no value")):
            with self.subTest(option=option):
                done = check(option)
                self.assertEqual((2, ""), (done.returncode, done.stdout))
                self.assertEqual(1, done.stderr.count("\n"), done.stderr)
                self.assertIn(told, done.stderr)

    def test_before_the_dashes_it_is_ours_too(self):
        """The EAL's arguments may stand there: they are not looked at."""
        for before in (("--check",), ("-l", "0", "--check"), ("--check", "--no-huge")):
            done = subprocess.run([server_path(), *before, "--", "--rate", "20MiB/s"],
                                  capture_output=True, text=True, timeout=time_limit())
            self.assertEqual((0, ""), (done.returncode, done.stderr))
            self.assertIn("server\n    rate = 20MiB/s\n", done.stdout)

    def test_trusted_proxies_are_shown(self):
        self.write("[client]\nby = header X-Forwarded-For\ntrusted_proxy = 2001:db8:1::/48\n")
        done = check("--config", self.path, "--trusted-proxy", "10.0.0.0/8")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn("client\n    by = header x-forwarded-for, else address\n", done.stdout)
        self.assertIn("    trusted_proxy = 10.0.0.0/8\n", done.stdout)
        self.assertIn("    trusted_proxy = 2001:db8:1::/48\n", done.stdout)
        done = check("--trusted-proxy", "proxy.example.org")
        self.assertEqual(2, done.returncode)
        self.assertIn("--trusted-proxy: proxy.example.org: expected an address", done.stderr)

    def test_a_part_of_a_name_is_no_option(self):
        for short, meant in (("--rate-p=1MiB/s", "one of --rate-per-client, --rate-per-request?"),
                             ("--max=16", "one of --max-body, "), ("--add", "did you mean --addr?"),
                             ("--rate-per-c=1MiB/s", "did you mean --rate-per-client?")):
            done = check(short)
            self.assertEqual(2, done.returncode, short)
            self.assertIn(meant, done.stderr)

    def test_options_are_checked_too(self):
        for options, word in ((("--rate", "fast"), "--rate fast: expected"),
                              (("--root", "/nowhere"), "/nowhere"),
                              (("--addr", "198.18.0.2"), "--addr"),
                              (("--config", "/nowhere/policy"), "/nowhere/policy")):
            done = check(*options)
            self.assertEqual(2, done.returncode)
            self.assertIn(word, done.stderr)

    def test_the_access_log_is_tried(self):
        folder = os.path.dirname(self.path)
        log = os.path.join(folder, "access.log")
        done = check("--access-log", log)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn(f"access log {log}: would be made", done.stdout)
        self.write(f"[log]\naccess_log = {folder}/nowhere/access.log\n")
        done = check("--config", self.path)
        self.assertEqual((2, ""), (done.returncode, done.stdout))
        self.assertIn("nowhere/access.log can't be written: No such file", done.stderr)
        self.assertEqual(["policy.conf"], os.listdir(folder), "nothing is made")

    def test_the_server_does_not_start_with_a_bad_one(self):
        self.write(FAULTS)
        done = subprocess.run([server_path(), "--no-such-eal-argument", "--", "--addr",
                               "198.18.0.2/24", "--root", "/run", "--config", self.path],
                              capture_output=True, text=True, timeout=time_limit())
        self.assertEqual(2, done.returncode)
        self.assertIn(f"{self.path}:4: ", done.stderr)
        self.assertIn(f"nightjar: error: {self.path}: 4 errors", done.stderr)
        self.assertNotIn("EAL", done.stderr)

    def test_examples_of_the_guide(self):
        """Each block of docs/policy.md that is a policy is a good one."""
        with open(os.path.join(REPO, "docs/policy.md")) as f:
            blocks = re.findall(r"^```ini\n(.*?)^```", f.read(), re.M | re.S)
        self.assertGreaterEqual(len(blocks), 6)
        folder = os.path.dirname(self.path)
        self.write("192.0.2.0/24\n2001:db8:bad::/48  # theirs\n",
                   os.path.join(folder, "banned.txt"))
        os.makedirs(os.path.join(folder, "root"), exist_ok=True)
        for name in ("404.html", "429.html"):
            self.write("<title>no</title>\n", os.path.join(folder, "root", name))
        for block in blocks:
            with self.subTest(first=block.splitlines()[0]):
                self.write(block)
                done = check("--config", self.path, "--root", os.path.join(folder, "root"))
                self.assertEqual((0, ""), (done.returncode, done.stderr))


class Changes(ServerCase):
    """SIGHUP and telemetry, in a server that runs."""

    policy = "[server]\nrate = 50MiB/s\n[class slow]\npath = /200KiB\nrequest_rate = 100KiB/s\n"

    def setUp(self):
        super().setUp()
        self.change_policy(self.policy)

    def test_a_good_file_is_in_force(self):
        self.assertEqual({"rate": "50MiB/s", "ceiling": "50MiB/s"}, self.limits()["server"])
        after = self.change_policy(
            "[server]\nrate = 10MiB/s\n[class other]\npath = /\nstreams = 7\n")
        self.assertEqual({"rate": "10MiB/s", "ceiling": "10MiB/s"}, after["server"])
        self.assertEqual({"streams": "7"}, after["class_other"])
        self.assertNotIn("class_slow", after)

    def test_a_bad_file_changes_nothing(self):
        before = self.limits()
        self.read_policy(FAULTS)
        until("faults told", lambda: "keeping the current policy" in self.world.errors())
        for line in (2, 4, 6, 8):
            self.assertIn(f"{self.policy_path}:{line}: ", self.world.errors())
        self.assertEqual(before, self.limits())
        self.curl("-o", "/dev/null", self.world.url("/one"))

    def test_what_is_probably_not_meant_is_told(self):
        self.change_policy("[class slow]\npath = /iso/*\n")
        until("a warning", lambda: f"warning: {self.policy_path}:2: path = /iso/*: * is taken "
              "literally" in self.world.errors())

    def test_telemetry_changes_it(self):
        version = self.limits()["version"]
        now = self.limits(",class=slow,request_rate=1MiB/s,streams=3")
        self.assertEqual(version + 1, now["version"])
        self.assertEqual({"request_rate": "1MiB/s", "request_ceiling": "1MiB/s", "streams": "3"},
                         now["class_slow"])
        self.assertEqual("30MiB/s", self.limits(",ceiling=30MiB/s")["server"]["ceiling"])
        self.assertEqual({}, self.limits(",rate=none")["server"])
        self.assertEqual("1MiB/s", self.limits()["class_slow"]["request_rate"])

    def test_changes_that_make_no_sense(self):
        before = self.limits()
        for params, word in ((",class=none,rate=1MiB/s", "no such class"), (",rate=fast", "a rate"),
                             (",class=slow", "nothing to change"), (",rate", "KEY=VALUE"),
                             (",streams=3", "[server]"), (',ra"te=1', "expected"),
                             (",class=slow,connections=3", "default"),
                             (",rate=2MiB/s,ceiling=1MiB/s", "must not exceed"),
                             ("," + "x" * 900, "expected")):
            with self.subTest(params=params):
                self.assertIn(word, self.limits(params)["error"])
        self.assertEqual(before, self.limits())

    def test_many_changes(self):
        """What lcores have replaced is freed: there is room for 16 that they have not."""
        def change(n):
            answer = self.limits(f",rate={n}MiB/s")
            return "error" not in answer and answer
        for n in range(1, 60):
            answer = until("a change", lambda: change(n))
            self.assertEqual(f"{n}MiB/s", answer["server"]["rate"])
        self.curl("-o", "/dev/null", self.world.url("/one"))

    def test_a_change_reaches_what_is_under_way(self):
        """At 20 KiB/s this download would take 8 minutes."""
        self.change_policy("[class default]\nrequest_rate = 20KiB/s\n")
        client = Client(self.world.connect())
        stream = client.request("/10MiB")
        while not any(type(e).__name__ == "DataReceived" for e in client.events):
            self.assertTrue(client.read())
        self.assertEqual({}, self.limits(",class=default,request_rate=none")["class_default"])
        status, _, body = client.response(stream)
        self.assertEqual((200, 10 << 20), (status, len(body)))
        client.close()

    def test_a_slot_with_a_download_is_not_given_anew(self):
        """31 other classes need all 31 slots; one of them is in use for 100 seconds."""
        def many(letter):
            return "".join(f"[class {letter}{i}]\npath = /10MiB\nrequest_rate = 100KiB/s\n"
                           for i in range(31))
        before = self.change_policy(many("a"))
        client = Client(self.world.connect())
        client.request("/10MiB")
        while not any(type(e).__name__ == "DataReceived" for e in client.events):
            self.assertTrue(client.read())
        self.read_policy(many("b"))
        until("it is refused", lambda: "no free slot" in self.world.errors())
        self.assertIn(f"{self.policy_path}:91: class b30: ", self.world.errors())
        self.assertEqual(before, self.limits())
        client.close()
        until("none open", lambda: not any(
            one["open"] for one in self.server.telemetry("/nightjar/classes").values()))
        self.assertIn("class_b30", self.change_policy(many("b")))

    def test_as_many_classes_as_there_can_be(self):
        """All of them fit into an answer, with all they can say."""
        every = "".join(f"{key} = 123457B/s\n" for key in ("rate", "client_rate", "request_rate"))
        every += "".join(f"{key} = 345679B/s\n"
                         for key in ("ceiling", "client_ceiling", "request_ceiling"))
        every += "".join(f"{key} = 123457B\n"
                         for key in ("burst", "client_burst", "request_burst", "rate_after"))
        every += "".join(f"{key} = 123457\n" for key in ("streams", "requests", "requests_burst"))
        text = "[class default]\nconnections = 123457\n"
        for i in range(31):
            text += f"[class {'c' * 29}{i}]\npath = /{i}/\nretry_after = 12345s\n"
            text += "action = 429\n" + every
        now = self.change_policy(text)
        self.assertEqual(34, len(now))
        for i in range(31):
            self.assertEqual(16, len(now[f"class_{'c' * 29}{i}"]))


class Verdicts(ServerCase):
    """What a request meets in its class."""

    policy = """\
[client]
by = header X-Me
[class closed]
path = /closed/
action = forbid
[class later]
path = /later/
action = 429
retry_after = 7s
[class rude]
path = /rude/
action = reset
[class gold]
header = X-Tier: gold
[class few]
path = /
requests = 1
requests_burst = 2
host = few.example
"""

    def status(self, path, *options):
        return self.curl("-o", "/dev/null", "-w", "%{http_code}", "--path-as-is", *options,
                         self.world.url(path))

    def test_paths(self):
        for path, status in (("/closed/x", "403"), ("/%63losed/x", "403"), ("//closed/x", "403"),
                             ("/one/../closed/x", "400"), ("/closed%2fx", "400"),
                             ("/closed", "404"), ("/closed/../one", "400"), ("/one", "200"),
                             ("/later/", "429")):
            with self.subTest(path=path):
                self.assertEqual(status, self.status(path))

    def test_later(self):
        head = self.curl("-o", "/dev/null", "-D", "-", self.world.url("/later/x"))
        self.assertRegex(head, r"(?m)^retry-after: 7\s*$")

    def test_reset(self):
        client = Client(self.world.connect())
        stream = client.request("/rude/x")
        while not client.ended(stream):
            self.assertTrue(client.read())
        reset = [e for e in client.events if type(e).__name__ == "StreamReset"]
        self.assertEqual([7], [int(e.error_code) for e in reset])  # REFUSED_STREAM
        self.assertEqual(200, client.get("/one")[0], "the connection is none the worse for it")
        client.close()

    def test_requests_per_client(self):
        """Two at once, then no more than one a second; somebody else is somebody else."""
        client = Client(self.world.connect())
        for me in ("somebody", "else"):
            more = {":authority": "few.example", "x-me": me}
            streams = [client.prepare("/one", **more) for _ in range(6)]
            client.flush()
            answers = [client.response(stream) for stream in streams]
            self.assertEqual(200, answers[0][0])
            late = [fields for status, fields, _ in answers if status == 429]
            self.assertTrue(late)
            self.assertEqual("1", late[0]["retry-after"])
        client.close()


class Proxied(ServerCase):
    """Only a trusted proxy is believed, and has as many connections as it wants."""

    policy = """\
[client]
by = header X-Forwarded-For
[class default]
requests = 1
requests_burst = 1
connections = 3
"""
    options = ("--trusted-proxy", f"{CLIENT_ADDR}/32")

    def answers(self, source, *headers):
        """What requests with these fields meet that come at once on a connection of `source`."""
        client = Client(self.world.connect(source=source))
        streams = [client.prepare("/one", **{"x-forwarded-for": h}) for h in headers]
        client.flush()
        answers = [client.response(stream)[0] for stream in streams]
        client.close()
        return answers

    def test_clients_of_a_proxy(self):
        self.assertEqual([200, 200, 429, 200], self.answers(
            CLIENT_ADDR, "203.0.113.1", "203.0.113.2", "203.0.113.9, 203.0.113.1", "203.0.113.3"))

    def test_strangers_invent_nobody(self):
        stranger = self.world.more_addresses(1)[0]
        self.assertEqual([200, 429, 429], self.answers(
            stranger, "203.0.113.11", "203.0.113.12", "203.0.113.13"))

    def test_connections_of_a_proxy(self):
        clients = [Client(self.world.connect(source=CLIENT_ADDR)) for _ in range(8)]
        for client in clients:
            client.ping()
            client.close()
        self.assertEqual(0, self.counted("conn_client_full"))


class Lists(ServerCase):
    """Who is on a list of banned networks hears nothing."""
    policy = "[server]\ndeny = banned\n[list banned]\nnetworks = 203.0.113.0/24\n"

    def test_silence(self):
        self.curl("-o", "/dev/null", self.world.url("/one"))
        self.change_policy(self.policy.rstrip() + ", 198.18.0.0/24\n")
        done = self.world.client("curl", "-sS", "--connect-timeout", "2",
                                 "--http2-prior-knowledge", self.world.url("/one"))
        self.assertEqual(28, done.returncode, done.stderr)  # nothing came, not even a RST
        self.change_policy(self.policy)
        self.curl("-o", "/dev/null", self.world.url("/one"))


class TimeZone(unittest.TestCase):
    """Which zone the hours of classes are in is told by --check and at the start."""
    GOOD = "CET-1CEST,M3.5.0,M10.5.0/3"

    def check(self, zone):
        done = subprocess.run([server_path(), "--check", "--config", self.policy],
                              capture_output=True, text=True, timeout=time_limit(),
                              env=dict(os.environ) | {"TZ": zone})
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout, done.stderr

    def setUp(self):
        self.world = World(root="/run")
        self.addCleanup(self.world.close)
        self.policy = os.path.join(self.world.scratch, "policy")
        with open(self.policy, "w", encoding="ascii") as f:
            f.write("[class night]\npath = /n/\nhours = 22:00-06:00\n")

    def test_check(self):
        out, errors = self.check(self.GOOD)
        self.assertRegex(out, r"time zone\n    hours = CET-1CEST\S+ \(now CES?T, UTC\+0[12]00\)")
        self.assertNotIn("TZ", errors)
        out, errors = self.check("Europe/Nowhere")
        self.assertIn("time zone\n    hours = UTC\n", out)
        self.assertIn("TZ: warning: Europe/Nowhere: there is no such time zone in "
                      "/usr/share/zoneinfo: UTC applies", errors)

    def test_start(self):
        self.world.options += ["--config", self.policy]
        self.world.variables["TZ"] = "Europe/Nowhere"
        self.world.make_namespaces()
        self.world.start()
        self.assertIn("warning: TZ: Europe/Nowhere: there is no such time zone",
                      self.world.errors())
        self.assertIn("policy: hours of classes are in the time zone UTC", self.world.errors())
        self.assertEqual(0, self.world.stop())
