# SPDX-License-Identifier: BSD-3-Clause
"""SIGHUP: what a reload takes, what it names, and what it does to downloads that run."""
import hashlib
import os
import re
import ssl
import subprocess

from tests.netlab import management
from tests.netlab.case import ServerCase
from tests.netlab.certificates import Authority
from tests.netlab.h2client import Client
from tests.netlab.limits import time_limit
from tests.netlab.world import until

NAME = "www.example.org"
NOBODY = 65534
POLICY = """\
[class shut]
path = /shut/
action = {action}
request_rate = 4MiB/s
[class default]
request_rate = {rate}
[limits]
max_body = {max_body}
idle_timeout = {idle}
[log]
access_log = {log}
log_format = {format}
[site default]
header = set X-Round: {round}
{more}"""


class ReloadCase(ServerCase):
    plain_build = "speed"

    def text(self, **values):
        return POLICY.format(**({
            "action": "serve", "rate": "4MiB/s", "max_body": "none", "idle": "60s",
            "log": os.path.join(self.world.scratch, "a.log"), "format": "combined", "round": 0,
            "more": ""} | values))

    @classmethod
    def prepare(cls):
        os.mkdir(os.path.join(cls.root, "shut"))
        os.link(os.path.join(cls.root, "10MiB"), os.path.join(cls.root, "shut", "10MiB"))
        cls.world.options += ["--config", cls.policy_path, "--management-listen", "127.0.0.1:9180"]
        cls.write_policy(cls.text(cls))

    def setUp(self):
        super().setUp()
        self.change_policy(self.text())

    def download(self, path, *options):
        return self.world.client_popen("curl", "-sS", *options, self.world.url(path),
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def upload(self):
        """The status of a request with a body of 2,000 bytes, for a file."""
        return self.curl("-o", "/dev/null", "-w", "%{http_code}", "-d", "x" * 2000,
                         self.world.url("/one"))

    def said(self):
        """All of standard error, of which World.errors() has the end."""
        with open(self.world.server_errors.name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def since(self, n):
        return self.said()[n:]

    def refused(self, text):
        """A reload of a bad file: returns what was logged."""
        n, before = len(self.said()), self.limits()
        self.read_policy(text)
        until("the reasons", lambda: "keeping the current policy" in self.since(n))
        self.assertEqual(before, self.limits())
        return self.since(n)


class Reload(ReloadCase):
    def test_downloads_run_on(self):
        """Their bytes are exact, and no connection ends, while all that can change changes."""
        versions = ("--http1.1", "--http2-prior-knowledge")
        downloads = [self.download("/10MiB", versions[i % 2]) for i in range(8)]
        until("all run", lambda: self.counted("tcp_accepted") == 8)
        for number in range(20):
            self.change_policy(self.text(rate=f"{4 + number % 2}MiB/s", round=number,
                                         format=("json", "logfmt")[number % 2],
                                         max_body=f"{1 + number}KiB", idle=f"{50 + number}s",
                                         more="[list l]\nnetworks = 192.0.2.0/24\n"))
        for process in downloads:
            out, error = process.communicate(timeout=time_limit())
            self.assertEqual((0, b""), (process.returncode, error))
            self.assertEqual(self.sums["10MiB"], hashlib.sha256(out).hexdigest())
        self.assertEqual((8, 0), (self.counted("tcp_accepted"), self.counted("request_refused")))
        self.assertIn("x-round: 19\n", self.curl("-I", self.world.url("/one")))

    def test_a_forbidden_download_ends(self):
        """And is counted. Others of the same connection run on."""
        client = self.client()
        shut, fine = client.request("/shut/10MiB"), client.request("/10MiB")
        alone = self.download("/shut/10MiB", "--http1.1")
        until("three run", lambda: self.counted("requests") == 3)
        self.change_policy(self.text(action="forbid"))
        until("two have ended", lambda: self.counted("request_refused") == 2)
        _, error = alone.communicate(timeout=time_limit())
        self.assertEqual(56, alone.returncode, error)  # the connection was reset
        status, _, body = client.response(fine)
        self.assertEqual((200, self.sums["10MiB"]), (status, hashlib.sha256(body).hexdigest()))
        self.assertTrue(client.ended(shut))
        self.assertLess(self.counted("body_bytes"), 3 * 10 << 20)
        self.assertEqual(403, client.get("/shut/10MiB")[0])
        client.close()

    def test_a_download_that_a_site_denies_ends(self):
        """That of the path whose section denies its client, and no other."""
        before = self.counted("request_refused")
        client = self.client()
        shut, fine = client.request("/shut/10MiB"), client.request("/10MiB")
        until("both run", lambda: self.server.telemetry("/nightjar/transfers")["running"] == 2)
        self.change_policy(self.text(more="[path default /shut/]\ndeny = l\n"
                                          "[list l]\nnetworks = 198.18.0.0/16\n"))
        until("one has ended", lambda: self.counted("request_refused") == before + 1)
        status, _, body = client.response(fine)
        self.assertEqual((200, self.sums["10MiB"]), (status, hashlib.sha256(body).hexdigest()))
        self.assertTrue(client.ended(shut))
        self.assertEqual(403, client.get("/shut/10MiB")[0])
        client.close()

    def test_a_token_comes_and_goes(self):
        """With the key of its file."""
        path, token = os.path.join(self.world.scratch, "token"), "x" * 32
        with open(path, "w", opener=lambda *a: os.open(*a, mode=0o600), encoding="utf-8") as f:
            f.write(token)
        os.chown(path, NOBODY, NOBODY)
        status = lambda: management.ask(("127.0.0.1", 9180), "GET", "/api/v1/limits", token=token,
                                        namespace=self.world.server_ns).status
        self.assertEqual(403, status())
        self.write_policy(self.text(more=f"[management]\ntoken = {path}\n"))
        told = management.ask(self.world.management, "POST", "/api/v1/reload").json()
        self.assertEqual([], told["errors"])
        until("it is valid", lambda: status() == 200)
        self.change_policy(self.text())
        until("it is not valid any more", lambda: status() == 403)

    def test_limits(self):
        self.assertEqual("405", self.upload())
        client = self.client()
        self.assertEqual(200, client.get("/one")[0])
        self.change_policy(self.text(max_body="1KiB", idle="300ms"))
        while client.read():  # the server closes it
            pass
        self.assertEqual(1, self.counted("conn_timeout"))
        self.assertEqual("413", self.upload())
        self.change_policy(self.text())
        self.assertEqual("405", self.upload())

    def test_another_log(self):
        path = os.path.join(self.world.scratch, "b.log")
        self.curl("-o", "/dev/null", self.world.url("/one?before"))
        self.wait_for_log()
        self.change_policy(self.text(log=path, format="json"))

        def has_line():
            """The log changes after the policy."""
            self.curl("-o", "/dev/null", self.world.url("/one?after"))
            self.wait_for_log()
            return os.path.exists(path) and os.path.getsize(path) > 0
        until("the other log has a line", has_line)
        with open(path) as f, open(os.path.join(self.world.scratch, "a.log")) as was:
            lines, former = f.read(), was.read()
        self.assertRegex(lines, r'^\{.*"/one\?after".*\}\n$')
        self.assertIn("/one?before", former)
        self.assertNotIn("{", former)
        told = self.refused(self.text(log=os.path.join(self.world.scratch, "no", "such.log"),
                                      max_body="1KiB"))
        self.assertIn("such.log can't be written", told)
        self.assertEqual("405", self.upload())

    def test_a_bad_file_changes_nothing(self):
        told = self.refused(self.text(max_body="1KiB", more="rate = fast\n[limits x]\ny = 1\n"))
        n_lines = self.text().count("\n")
        self.assertIn(f"{self.policy_path}:{n_lines + 1}: rate: ", told)
        self.assertIn(f"{self.policy_path}:{n_lines + 2}: [limits x]: ", told)
        told = self.refused(self.text(max_body="1KiB", more="[files]\nindex = a/b\n"))
        self.assertIn(f"{self.policy_path}:{n_lines + 2}: index", told)
        told = self.refused(self.text(max_body="1KiB", more="[tls]\nkey = k.pem\n"))
        self.assertIn("there are 0 certificates and 1 keys", told)
        self.assertEqual("405", self.upload())

    def test_keys_that_need_a_restart(self):
        """They are named with the values before and after. The rest applies."""
        n, n_lines = len(self.said()), self.text().count("\n")
        self.change_policy(self.text(max_body="1KiB", more="[network]\nrx-ring = 2048\n"
                                     "no_http1 = yes\n[process]\nworkers = 3\n"
                                     "drain_timeout = 3s\n[eal]\narguments = --no-shconf\n"))
        until("all", lambda: "[eal]" in self.since(n))
        for line, told in ((2, "[network] rx_ring: not set -> 2048"),
                           (3, "[network] no_http1: not set -> yes"),
                           (5, "[process] workers: not set -> 3"), (8, "[eal] changed")):
            with self.subTest(line=line):
                self.assertRegex(self.since(n),
                                 re.escape(f"{self.policy_path}:{n_lines + line}: {told}") +
                                 ": needs a restart; \"Upgrade\" in docs/deploy.md")
        self.assertEqual(4, self.since(n).count("needs a restart"))
        self.assertEqual("413", self.upload())
        self.curl("--http1.1", "-o", "/dev/null", self.world.url("/one"))


class ReloadOfTls(ReloadCase):
    """Other files of certificates, in the same step as all else."""

    @classmethod
    def prepare(cls):
        folder = cls.world.scratch
        cls.authority = Authority(folder, "authority")
        cls.pair = [cls.authority.sign(name, f"/CN={name}", serial, f"subjectAltName=DNS:{NAME}")
                    for serial, name in enumerate(("first", "second"), 7)]
        super().prepare()

    def text(self, cert=0, key=None, **values):
        key = cert if key is None else key
        return ReloadCase.text(self, more=f"[tls]\ncert = {self.pair[cert][0]}\n"
                                          f"key = {self.pair[key][1]}\n", **values)

    def shown(self):
        done = self.world.client("openssl", "s_client", "-connect", "198.18.0.2:443", "-servername",
                                 NAME, "-alpn", "h2", input="", check=False)
        return re.search(r"subject=CN = (.*)", done.stdout).group(1)

    def test_another_certificate(self):
        context = ssl.create_default_context(cafile=self.authority.cert)
        context.set_alpn_protocols(["h2"])
        client = Client(context.wrap_socket(self.world.connect(port=443), server_hostname=NAME))
        self.assertEqual("first", self.shown())
        self.change_policy(self.text(cert=1))
        self.assertEqual("second", self.shown())
        told = self.refused(self.text(cert=0, key=1, max_body="1KiB"))
        self.assertIn("the former certificates stay in use", told)
        self.assertEqual(("second", "405"), (self.shown(), self.upload()))
        self.assertEqual(200, client.get("/one")[0])  # the connection has not ended
        client.close()

    def test_no_certificate_needs_a_restart(self):
        n = len(self.said())
        self.change_policy(ReloadCase.text(self, max_body="1KiB"))
        until("a line", lambda: f"[tls] cert: {self.pair[0][0]} -> not set: needs a restart"
              in self.since(n))
        self.assertEqual(("first", "413"), (self.shown(), self.upload()))
