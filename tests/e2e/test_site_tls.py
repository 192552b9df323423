# SPDX-License-Identifier: BSD-3-Clause
"""Certificates, client certificates and 421 by site, with curl, OpenSSL and Python's ssl."""
import json
import os
import re
import ssl
import subprocess

from tests.netlab.case import ServerCase
from tests.netlab.certificates import Authority
from tests.netlab.h2client import Client
from tests.netlab.limits import time_limit
from tests.netlab.world import SERVER_ADDR, server_path, until

# Certificates by name of their files. `one` has two sites.
NAMES = {"one": ("one.test", "same.test"), "two": ("two.test",), "three": ("three.test",),
         "wild": ("*.wild.test",), "other": ("other.test",), "again": ("one.test",)}
CONFIG = """\
[site one.test]
{one}
[site same.test]
{one}
[site two.test]
{two}
client_ca = {folder}/of-two.crt
[site three.test]
{three}
client_ca = {folder}/of-three.crt
client_optional = yes
cors = *
[path three.test /private/]
client_cert = required
[site moved.test]
{one}
client_ca = {folder}/of-three.crt
client_optional = yes
client_cert = required
redirect = https
[site *.wild.test]
{wild}
[site default]
{other}
"""
# What a server name has; names with equal values share a connection.
SITES = {"one.test": "one", "same.test": "one", "two.test": "two", "three.test": "three",
         "x.y.wild.test": "*.wild", "nowhere.test": "other", "other.test": "other"}
VERSIONS = ("--http2", "--http1.1")


class SiteTlsCase(ServerCase):
    config = CONFIG

    @classmethod
    def prepare(cls):
        folder = cls.world.scratch
        cls.authority = Authority(folder, "authority")
        cls.pairs = {name: cls.authority.sign(name, f"/CN={name}", serial, "subjectAltName=" +
                                              ",".join(f"DNS:{host}" for host in hosts))
                     for serial, (name, hosts) in enumerate(NAMES.items(), 1)}
        cls.clients = {name: Authority(folder, f"of-{name}").sign(f"client-{name}",
                                                                  f"/CN=client-{name}", 7)
                       for name in ("two", "three")}
        os.mkdir(os.path.join(cls.root, "private"))
        with open(os.path.join(cls.root, "private", "x"), "w") as f:
            f.write("x\n")
        cls.write_policy(cls.text())
        cls.world.options += ["--config", cls.policy_path]

    @classmethod
    def text(cls, **changed):
        keys = {name: "cert = {}\nkey = {}".format(*pair) for name, pair in cls.pairs.items()}
        return cls.config.format(folder=cls.world.scratch, **(keys | changed))

    def ask(self, url, *options, shown=None):
        """The exit status of curl and the status of the response."""
        if shown:
            options += ("--cert", self.clients[shown][0], "--key", self.clients[shown][1])
        done = self.world.client(
            "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--cacert", self.authority.cert,
            "--connect-to", f"::{SERVER_ADDR}:", *options, url, check=False)
        return done.returncode, int(done.stdout)

    def subject(self, *options):
        """The common name of the certificate that `openssl s_client` gets."""
        done = self.world.client("openssl", "s_client", "-connect", f"{SERVER_ADDR}:443", "-alpn",
                                 "h2", *options, input="", check=False)
        return re.search(r"(?m)^subject=CN ?= ?(.*)$", done.stdout).group(1)

    def check(self, *options, status=0):
        done = subprocess.run([server_path(), "--check", "--json", "--root", self.root, "--config",
                               self.policy_path, *options], capture_output=True, text=True,
                              timeout=time_limit())
        self.assertEqual(status, done.returncode, done.stdout + done.stderr)
        return [(item["kind"], item.get("name"), {k["key"]: k["value"] for k in item["keys"]})
                for item in json.loads(done.stdout)]


class SiteTls(SiteTlsCase):
    def setUp(self):
        super().setUp()
        self.context = ssl.create_default_context(cafile=self.authority.cert)
        self.context.set_alpn_protocols(["h2"])
        self.context.check_hostname = False
        self.context.load_cert_chain(*self.clients["two"])

    def connect(self, name, session=None):
        sock = self.context.wrap_socket(self.world.connect(port=443), server_hostname=name,
                                        session=session)
        self.addCleanup(sock.close)
        return Client(sock)

    def test_the_site_of_the_server_name_has_its_certificate(self):
        for name, cert in SITES.items():
            with self.subTest(name=name):
                self.assertEqual(cert.strip("*."), self.subject("-servername", name))
        self.assertEqual("wild", self.subject("-servername", "A.WILD.test"))
        self.assertEqual("other", self.subject("-servername", "wild.test"))
        self.assertEqual("other", self.subject("-noservername"))

    def test_misdirected_requests(self):
        """Each server name with each Host, in both versions of HTTP (RFC 9110 15.5.20)."""
        for name, cert in SITES.items():
            for host, of_host in SITES.items():
                for version in VERSIONS:
                    with self.subTest(name=name, host=host, version=version):
                        self.assertEqual(
                            (0, 200 if cert == of_host else 421),
                            self.ask(f"https://{name}/one", version, "-k", "-H", f"Host: {host}",
                                     shown="two" if name == "two.test" else None))

    def test_coalesced_requests(self):
        """Streams of one connection: 421 ends none of the others."""
        client = self.connect("one.test")
        for host, status in (("one.test", 200), ("two.test", 421), ("SAME.test:443", 200),
                             ("three.test", 421), ("one.test", 200)):
            got = client.get("/one", **{":authority": host})
            self.assertEqual(status, got[0], host)
            self.assertEqual(status == 421, got[2] == b"421 Misdirected Request\n", host)

    def test_cleartext_is_not_misdirected(self):
        for host in SITES:
            self.assertEqual((0, 200), self.ask(f"http://{host}/one"))

    def test_sessions_of_other_sites_are_not_resumed(self):
        for name in ("one.test", "two.test"):
            session = None
            for other in ("same.test", "one.test", "two.test", "x.wild.test", "nowhere.test"):
                with self.subTest(name=name, other=other):
                    client = self.connect(name)
                    self.assertEqual(200, client.get("/one", **{":authority": name})[0])
                    session = client.sock.session
                    again = self.connect(other, session)
                    self.assertEqual(SITES[name] == SITES.get(other), again.sock.session_reused)
                    self.assertEqual(200, again.get("/one", **{":authority": other})[0])
                    status = again.get("/one", **{":authority": name})[0]
                    self.assertEqual(200 if SITES[name] == SITES.get(other) else 421, status)

    def test_a_client_certificate_of_the_handshake(self):
        for host, shown, ok in (("one.test", None, True), ("two.test", None, False),
                                ("two.test", "two", True), ("two.test", "three", False),
                                ("three.test", None, True), ("three.test", "three", True),
                                ("three.test", "two", False)):
            for version in VERSIONS:
                with self.subTest(host=host, shown=shown, version=version):
                    result, status = self.ask(f"https://{host}/one", version, shown=shown)
                    self.assertEqual(ok, (result, status) == (0, 200), (result, status))
        self.assertEqual(6, self.counted("tls_failed_client_cert"))

    def test_a_client_certificate_of_the_path(self):
        url = "https://three.test/private/x"
        for version in VERSIONS:
            self.assertEqual((0, 403), self.ask(url, version))
            self.assertEqual((0, 200), self.ask(url, version, shown="three"))
            self.assertEqual((0, 204), self.ask(
                url, version, "-X", "OPTIONS", "-H", "Origin: https://a.test", "-H",
                "Access-Control-Request-Method: GET"))
        self.assertEqual((0, 403), self.ask("http://three.test/private/x"))
        self.assertEqual((0, 301), self.ask("http://moved.test/one"))
        self.assertEqual((0, 403), self.ask("https://moved.test/one", "-k"))
        self.assertEqual((0, 200), self.ask("https://moved.test/one", "-k", shown="three"))

    def test_check(self):
        items = self.check()
        certs = {name: keys for kind, name, keys in items if kind == "certificate"}
        self.assertEqual({self.pairs[name][0] for name in NAMES if name != "again"}, set(certs))
        self.assertEqual("one.test, same.test", certs[self.pairs["one"][0]]["names"])
        self.assertRegex(certs[self.pairs["wild"][0]]["expires"], r"^\d{4}-\d\d-\d\dT")
        files = [name for kind, name, keys in items if kind == "file" and keys.get("of") == "cert"]
        self.assertEqual(sorted(certs), sorted(files))

    def test_explain(self):
        def told(url, kind):
            return [(name, keys) for k, name, keys in self.check("--explain", url) if k == kind]
        for name, cert in SITES.items():
            self.assertEqual(self.pairs[cert.strip("*.")][0],
                             told(f"https://{name}/", "certificate")[0][0])
        self.assertEqual([], told("http://one.test/", "certificate"))
        self.assertEqual("403", told("https://three.test/private/x", "answer")[0][1]
                         ["without a client certificate"])
        self.assertRegex(told("http://three.test/private/x", "answer")[0][1]["status"],
                         "^403, by client_cert")
        self.assertRegex(told("http://moved.test/", "answer")[0][1]["status"], "^301 to https:")

    def test_a_reload_swaps_one_certificate(self):
        client = self.connect("one.test")
        self.assertEqual(200, client.get("/one", **{":authority": "one.test"})[0])
        again = "cert = {}\nkey = {}".format(*self.pairs["again"])
        text = self.text().replace(self.text()[:self.text().index("[site same.test]")],
                                   f"[site one.test]\n{again}\n")
        self.change_policy(text)
        self.assertEqual("again", self.subject("-servername", "one.test"))
        self.assertEqual("one", self.subject("-servername", "same.test"))
        for host, status in (("one.test", 200), ("two.test", 421)):  # the connection stays
            self.assertEqual(status, client.get("/one", **{":authority": host})[0], host)
        self.assertEqual((0, 421), self.ask("https://one.test/one", "-H", "Host: same.test"))
        n = len(self.world.errors())
        self.read_policy(text.replace(self.pairs["again"][1], self.pairs["two"][1]))
        until("an error", lambda: "the former certificates stay in use" in self.world.errors()[n:])
        self.assertIn(f"{self.policy_path}:3: {self.pairs['two'][1]}: is not the private key",
                      self.world.errors()[n:])
        self.assertEqual("again", self.subject("-servername", "one.test"))
        self.change_policy(self.text())
        self.assertEqual("one", self.subject("-servername", "one.test"))


class WithoutDefaultSite(SiteTlsCase):
    """[tls] has what sites lack; without it, the first site has it."""
    config = """\
[site one.test]
{one}
[site two.test]
{two}
[site three.test]
"""

    def test_the_first_site_answers_other_names(self):
        for options, name in ((("-noservername",), "one"), (("-servername", "x.test"), "one"),
                              (("-servername", "three.test"), "one"),
                              (("-servername", "two.test"), "two")):
            self.assertEqual(name, self.subject(*options))
        for name, host, status in (("one", "x", 200), ("two", "x", 421), ("x", "two", 421),
                                   ("x", "three", 200), ("three", "one", 200)):
            self.assertEqual((0, status), self.ask(f"https://{name}.test/one", "-k", "-H",
                                                   f"Host: {host}.test"), (name, host))

    def test_tls_has_the_certificate_of_other_names(self):
        text = "[tls]\n{}\nclient_ca = {}/of-two.crt\n".format(
            "cert = {}\nkey = {}".format(*self.pairs["other"]), self.world.scratch)
        self.change_policy(text + self.text() + "[site same.test]\nclient_ca = none\n")
        for name in ("x.test", "three.test", "same.test"):
            self.assertEqual("other", self.subject("-servername", name))
        self.assertEqual((0, 200), self.ask("https://same.test/one", "-k"))
        for name in ("x.test", "two.test", "three.test"):
            with self.subTest(name=name):
                self.assertNotEqual(0, self.ask(f"https://{name}/one", "-k")[0])
                self.assertEqual((0, 200), self.ask(f"https://{name}/one", "-k", shown="two"))
        self.change_policy(self.text())


del SiteTlsCase  # it has no server
