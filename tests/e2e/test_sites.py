# SPDX-License-Identifier: BSD-3-Clause
"""Sites and paths of the policy file: redirects, fields of responses, methods, and who may."""
import os
import re
import threading

from tests.netlab import management, metrics
from tests.netlab.case import ServerCase
from tests.netlab.certificates import make_certificate
from tests.netlab.h2client import Client
from tests.netlab.world import CLIENT_ADDR, SERVER_ADDR, until

CONFIG = """\
[site www.example.org]
name = *.example.net
header = set X-Site: www
header = remove Server
cache_control = max-age=60
[path www.example.org /old/]
redirect = 301 https://new.example.org/x/$rest
[path www.example.org /moved]
redirect = 308 /here$path
[path www.example.org /away]
redirect = 302 /page.html
[path www.example.org /api/]
methods = GET
cors = *
header = add X-Path: api
[path www.example.org *.iso]
header = set Content-Disposition: attachment
cache_control = max-age=3600
[path www.example.org /iso/]
cache_control = none
[path www.example.org /inside/]
allow = inside
[path www.example.org /outside/]
deny = outside

[site secure.example.org]
redirect = https
hsts = 365d, subdomains
[path secure.example.org /.well-known/acme-challenge/]
redirect = none

[site app.example.org]
try = $path, $path/, /page.html
[path app.example.org /mirror/]
try = none
missing = redirect https://mirror.example.org/pub/$rest
[path app.example.org /lost/]
try = $path, /no-such-file

[site default]
header = set X-Site: default

[list inside]
networks = 192.0.2.0/24
[list outside]
networks = 198.18.0.0/15
"""


class SitesCase(ServerCase):
    policy = CONFIG

    @classmethod
    def prepare(cls):
        for name in ("page.html", "a.iso", "iso/b.iso", "api/x", "inside/x", "outside/x",
                     ".well-known/acme-challenge/token"):
            os.makedirs(os.path.dirname(os.path.join(cls.root, name)), exist_ok=True)
            with open(os.path.join(cls.root, name), "w") as f:
                f.write(name + "\n")

    def ask(self, host, path, *options):
        """Status and fields of a response."""
        head = self.curl("-o", "/dev/null", "-D", "-", "--path-as-is", "-H", f"Host: {host}",
                         *options, self.world.url(path))
        lines = head.replace("\r", "").strip().split("\n")
        fields = {}
        for line in lines[1:]:
            name, value = line.split(": ", 1)
            fields.setdefault(name.lower(), []).append(value)
        return int(lines[0].split()[1]), {n: ", ".join(v) for n, v in fields.items()}


class Sites(SitesCase):
    def test_hosts(self):
        for host, site in (("www.example.org", "www"), ("WWW.Example.ORG:80", "www"),
                           ("a.b.example.net", "www"), ("www.example.org.", "www"),
                           ("example.net", "default"), ("other", "default"),
                           ("xwww.example.org", "default")):
            for version in ("--http1.1", "--http2-prior-knowledge"):
                with self.subTest(host=host, version=version):
                    status, fields = self.ask(host, "/page.html", version)
                    self.assertEqual((200, site), (status, fields["x-site"]))
                    self.assertEqual(site == "default", "server" in fields)

    def test_redirects(self):
        for host, path, status, location in (
                ("www.example.org", "/old/a/b?q=1&r=%20", 301,
                 "https://new.example.org/x/a/b?q=1&r=%20"),
                ("www.example.org", "/old", 301, "https://new.example.org/x/"),
                ("www.example.org", "//old//a%20b", 301, "https://new.example.org/x/a%20b"),
                ("www.example.org", "/o%6cd/%0d%0aX:1", 400, None),
                ("www.example.org", "/moved", 308, "/here/moved"),
                ("www.example.org", "/moved/", 404, None),
                ("secure.example.org", "/page.html?x", 301,
                 "https://secure.example.org/page.html?x"),
                ("secure.example.org:8080", "/", 301, "https://secure.example.org/"),
                ("secure.example.org", "/.well-known/acme-challenge/token", 200, None),
                ("secure.example.org", "/../x", 400, None),
                ("secure.example.org", "/x?" + 5000 * "q", 414, None),
                ("secure.example.org", "/x?" + 4080 * "\"", 301,
                 "https://secure.example.org/x?" + 4080 * "%22"),
                ("secure.example.org", "/" + 4090 * "<", 301,
                 "https://secure.example.org/" + 4090 * "%3C")):
            with self.subTest(host=host, path=path):
                got, fields = self.ask(host, path)
                self.assertEqual((status, location), (got, fields.get("location")))

    def sites(self):
        """{name: counts}, as JSON and metrics tell alike once nothing is open."""
        def settled():
            rows = management.ask(self.world.management, "GET", "/api/v1/sites").json()["sites"]
            return {row["name"]: row for row in rows} if not any(r["open"] for r in rows) else None
        rows = until("no request is open", settled)
        families = metrics.parse(metrics.scrape(self.world.management)[1])
        for name, row in rows.items():
            codes = {dict(labels)["code"]: value for (_, labels), value
                     in families["nightjar_site_requests_total"].samples.items()
                     if dict(labels)["site"] == name}
            self.assertEqual({"none": row["unanswered"], **{
                code: row["status_" + code] for code in ("2xx", "3xx", "4xx", "5xx")}}, codes)
        return rows

    def test_counts(self):
        """A site keeps them over a reload, and a new one begins with none."""
        before = self.sites()
        self.assertEqual(["www.example.org", "secure.example.org", "app.example.org", "default"],
                         list(before))
        for host, path, status in (("www.example.org", "/page.html", 200),
                                   ("b.example.net", "/old", 301), ("x", "/none", 404),
                                   ("www.example.org", "/outside/x", 403)):
            self.assertEqual(status, self.ask(host, path)[0])
        after = self.sites()
        grown = {(name, key): value - before[name][key] for name, row in after.items()
                 for key, value in row.items()
                 if key not in ("number", "name") and value != before[name][key]}
        bytes_www = grown.pop(("www.example.org", "bytes"))
        self.assertGreater(bytes_www, len("page.html\n"))  # and texts of errors
        self.assertGreater(grown.pop(("default", "bytes")), 0)
        self.assertEqual({("www.example.org", "requests"): 3, ("www.example.org", "status_2xx"): 1,
                          ("www.example.org", "status_3xx"): 1,
                          ("www.example.org", "status_4xx"): 1, ("default", "requests"): 1,
                          ("default", "status_4xx"): 1}, grown)
        self.addCleanup(self.change_policy, self.policy)
        self.change_policy(CONFIG.replace("[site app", "[site new.example.org]\n[site app")
                           .replace("[site secure.example.org]", "[site safe.example.org]")
                           .replace("[path secure", "[path safe"))
        now = self.sites()
        self.assertEqual(["www.example.org", "safe.example.org", "new.example.org",
                          "app.example.org", "default"], list(now))
        for name in "www.example.org", "app.example.org", "default":
            self.assertEqual(after[name] | {"number": 0}, now[name] | {"number": 0})
        self.assertEqual(0, now["new.example.org"]["requests"] + now["safe.example.org"]["bytes"])

    def test_clients_follow(self):
        for command in (("curl", "-sSL"), ("wget", "-q", "-O", "-")):
            with self.subTest(command=command[0]):
                done = self.world.client(*command, "--header", "Host: www.example.org",
                                         self.world.url("/away"))
                self.assertEqual((0, "page.html\n"), (done.returncode, done.stdout), done.stderr)

    def test_fields(self):
        for path, expected in (
                ("/page.html", {"x-site": "www", "cache-control": "max-age=60"}),
                ("/a.iso", {"content-disposition": "attachment", "cache-control": "max-age=3600"}),
                ("/iso/b.iso", {"content-disposition": "attachment", "cache-control": None}),
                ("/nothing", {"x-site": "www", "cache-control": None}),
                ("/api/x", {"x-path": "api", "access-control-allow-origin": "*"})):
            for _ in range(4):  # heads are cached: the first is built, later ones are not
                for version in ("--http1.1", "--http2-prior-knowledge"):
                    fields = self.ask("www.example.org", path, version)[1]
                    for name, value in expected.items():
                        self.assertEqual(value, fields.get(name), path)
                    self.assertNotIn("server", fields)
                    self.assertEqual("nightjar", self.ask("x", path, version)[1]["server"])

    def test_absent_files(self):
        for path, status, content in (
                ("/a.iso", 200, "a.iso\n"), ("/route/of/the/app", 200, "page.html\n"),
                ("/route/", 200, "page.html\n"), ("/iso/", 200, "page.html\n"),
                ("/lost/x", 404, None), ("/%2e%2e/x", 400, None)):
            for version in ("--http1.1", "--http2-prior-knowledge"):
                with self.subTest(path=path, version=version):
                    out = self.curl("-w", "%{http_code}", version, "--path-as-is", "-H",
                                    "Host: app.example.org", self.world.url(path))
                    self.assertEqual(str(status), out[-3:])
                    self.assertIn(content or "", out)
        for path, location in (("/mirror/a%20b/c.iso?x=1", "a%20b/c.iso?x=1"),
                               ("/mirror/", ""), ("/mirror//d/", "d/")):
            for _ in range(2):  # the first time, the request waits for a worker
                status, fields = self.ask("app.example.org", path)
                self.assertEqual((302, "https://mirror.example.org/pub/" + location),
                                 (status, fields["location"]))

    def test_methods(self):
        status, fields = self.ask("www.example.org", "/api/x", "-X", "POST")
        self.assertEqual((405, "GET, HEAD"), (status, fields["allow"]))
        self.assertEqual(200, self.ask("www.example.org", "/api/x", "--head")[0])

    def test_preflight(self):
        status, fields = self.ask(
            "www.example.org", "/api/x", "-X", "OPTIONS", "-H", "Origin: https://a.example", "-H",
            "Access-Control-Request-Method: PUT", "-H", "Access-Control-Request-Headers: x-a, x-b")
        self.assertEqual(204, status)
        self.assertEqual("*", fields["access-control-allow-origin"])
        self.assertEqual("x-a, x-b", fields["access-control-allow-headers"])
        self.assertEqual("GET, HEAD", fields["access-control-allow-methods"])

    def test_lists(self):
        self.assertEqual(403, self.ask("www.example.org", "/inside/x")[0])
        self.assertEqual(403, self.ask("www.example.org", "/outside/x")[0])
        self.assertEqual(200, self.ask("x", "/inside/x")[0])
        for path in ("//outside/x", "/%6futside/x", "/outside"):
            with self.subTest(path=path):
                self.assertEqual(403, self.ask("www.example.org", path)[0])


class Reloads(SitesCase):
    """Requests in progress keep their rules; later ones have the new ones."""

    def test_many(self):
        stop = threading.Event()
        wrong = []

        def download():
            client = Client(self.world.connect(source=CLIENT_ADDR))
            while not stop.is_set():
                status, fields, body = client.get("/1MiB", **{":authority": "www.example.org"})
                if status != 200 or len(body) != 1 << 20 or not re.fullmatch(
                        r"www\d*", fields.get("x-site", "")):
                    wrong.append((status, fields.get("x-site"), len(body)))
            client.close()

        with open(os.path.join(self.root, "1MiB"), "wb") as f:
            f.write(bytes(1 << 20))
        threads = [threading.Thread(target=download) for _ in range(4)]
        for thread in threads:
            thread.start()
        for i in range(30):
            self.change_policy(CONFIG.replace("X-Site: www", f"X-Site: www{i}"))
            self.assertEqual(f"www{i}", self.ask("www.example.org", "/page.html")[1]["x-site"])
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual([], wrong)
        self.change_policy("")
        self.assertNotIn("x-site", self.ask("www.example.org", "/page.html")[1])


class Secure(SitesCase):
    """HSTS is sent over TLS only, also where a head is cached."""

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.cert, cls.key = make_certificate(cls.world.scratch, "server", "DNS:secure.example.org")
        cls.world.options += ["--tls-cert", cls.cert, "--tls-key", cls.key]

    def over_tls(self, path):
        return self.world.client(
            "curl", "-sS", "-o", "/dev/null", "-D", "-", "--cacert", self.cert, "--resolve",
            f"secure.example.org:443:{SERVER_ADDR}", f"https://secure.example.org{path}")

    def test_hsts(self):
        for _ in range(4):
            head = self.over_tls("/page.html").stdout.lower()
            self.assertRegex(head, r"(?m)^http/2 200")
            self.assertRegex(head, r"(?m)^strict-transport-security: "
                                   r"max-age=31536000; includesubdomains\s*$")
            status, fields = self.ask("secure.example.org", "/.well-known/acme-challenge/token")
            self.assertEqual(200, status)
            self.assertNotIn("strict-transport-security", fields)
