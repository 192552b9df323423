# SPDX-License-Identifier: BSD-3-Clause
"""Handlers that the file mounts in sites and paths by name, beside sites of files."""
import signal
import threading

from tests.e2e.test_sites import SitesCase
from tests.netlab.certificates import make_certificate
from tests.netlab.world import SERVER_ADDR, until

CONFIG = """\
[site api.example.org]
handler = hello
header = set X-Site: api
[path api.example.org /names/]
handler = lookup
[path api.example.org /wait]
handler = slow
[path api.example.org /iso/]
handler = none
[site files.example.org]
[path files.example.org /hello]
redirect = 302 /page.html
"""
HELLO = "Hello from a nightjar.\n"


class Mounted(SitesCase):
    program = "nightjar-examples"
    policy = CONFIG

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.cert, cls.key = make_certificate(cls.world.scratch, "server", "DNS:api.example.org")
        cls.world.options += ["--tls-cert", cls.cert, "--tls-key", cls.key]

    def get(self, host, path, *options):
        return self.curl("--path-as-is", "-H", f"Host: {host}", *options, self.world.url(path))

    def test_sites_of_code_and_of_files(self):
        for version in ("--http1.1", "--http2-prior-knowledge"):
            for host, path, text in (
                    ("api.example.org", "/", HELLO), ("api.example.org", "/page.html", HELLO),
                    ("api.example.org", "/names/127.0.0.1", "127.0.0.1\n"),
                    ("api.example.org", "//n%61mes/127.0.0.1", "127.0.0.1\n"),
                    ("api.example.org", "/wait?ms=1", "That took 1 ms.\n"),
                    ("api.example.org", "/wait/", HELLO),
                    ("api.example.org", "/iso/b.iso", "iso/b.iso\n"),
                    ("api.example.org", "/iso", None),
                    ("files.example.org", "/page.html", "page.html\n"),
                    ("files.example.org", "/lookup/127.0.0.1", "127.0.0.1\n"),
                    ("files.example.org", "/names/127.0.0.1", None)):
                with self.subTest(host=host, path=path, version=version):
                    if text is None:
                        self.assertIn(self.ask(host, path, version)[0], (301, 404))
                        continue
                    self.assertEqual(text, self.get(host, path, version))
                    is_api = host == "api.example.org"
                    self.assertEqual("api" if is_api else None,
                                     self.ask(host, path, version)[1].get("x-site"))

    def test_over_tls(self):
        done = self.world.client(
            "curl", "-sS", "--cacert", self.cert, "--resolve",
            f"api.example.org:443:{SERVER_ADDR}", "https://api.example.org/names/127.0.0.1")
        self.assertEqual((0, "127.0.0.1\n"), (done.returncode, done.stdout), done.stderr)

    def test_refusals(self):
        status, fields = self.ask("api.example.org", "/names/x", "-X", "POST")
        self.assertEqual((405, "GET, HEAD"), (status, fields["allow"]))
        self.assertEqual(400, self.ask("api.example.org", "/names")[0], "of the handler")
        self.assertEqual(400, self.ask("api.example.org", "/../x")[0])
        self.assertEqual(200, self.ask("api.example.org", "/names/127.0.0.1", "--head")[0])
        self.assertEqual(302, self.ask("files.example.org", "/hello")[0], "before the route")

    def test_load(self):
        done = self.world.client("h2load", "-n", "500", "-c", "4", "-m", "8", "-H",
                                 ":authority: api.example.org", self.world.url("/names/127.0.0.1"))
        self.assertIn("500 succeeded, 0 failed", done.stdout)

    def test_reload(self):
        """A handler is mounted and unmounted; a response in progress is completed."""
        self.addCleanup(self.change_policy, CONFIG)
        texts = []
        slow = threading.Thread(target=lambda: texts.append(
            self.get("api.example.org", "/wait?ms=1500")))
        slow.start()
        until("it runs", lambda: any(shard["exchanges"] > 0 for shard in self.server.shards()))
        self.change_policy("[site files.example.org]\n[path files.example.org /names/]\n"
                           "handler = lookup\n")
        self.assertEqual("page.html\n", self.get("api.example.org", "/page.html"))
        self.assertEqual(404, self.ask("api.example.org", "/wait?ms=1")[0])
        self.assertEqual("127.0.0.1\n", self.get("files.example.org", "/names/127.0.0.1"))
        slow.join()
        self.assertEqual(["That took 1500 ms.\n"], texts)
        version = self.limits()["version"]
        self.read_policy("[site files.example.org]\nhandler = lokup\n")
        until("a line", lambda: f"{self.policy_path}:2: handler = lokup: expected none, or the "
              "name of a handler of the program: did you mean lookup?" in self.world.errors())
        self.assertEqual(version, self.limits()["version"])
        self.assertEqual("127.0.0.1\n", self.get("files.example.org", "/names/127.0.0.1"))


class WithoutHandlers(SitesCase):
    def test_reload(self):
        self.read_policy("[site a]\nhandler = lookup\n")
        until("a line", lambda: f"{self.policy_path}:2: handler = lookup: expected none, or the "
              "name of a handler of the program, which has none" in self.world.errors())
        self.server.signal(signal.SIGHUP)
