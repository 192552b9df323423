# SPDX-License-Identifier: BSD-3-Clause
"""Which files sites and paths have: root, alias, rewrite, index, error pages, types, listings."""
import json
import os

from tests.e2e.test_sites import SitesCase
from tests.netlab.certificates import make_certificate
from tests.netlab.world import SERVER_ADDR, until

CONFIG = """\
[site a.example]
root = a
index = index.html index.htm
error_page = 404 /404.html
listing = on
mime = .foo application/x-foo
default_type = text/x-unknown
redirect = https
acme = {scratch}/acme
[path a.example /]
redirect = none
[path a.example /pub/]
alias = {scratch}/pub
error_page = 404 none
[path a.example /old/]
rewrite = /d/
[path a.example /robots.txt]
rewrite = /robots-a.txt
[path a.example /closed/]
listing = off
[path a.example *.iso]
content_disposition = attachment
[path a.example /server/]
root = none
log = off
[path a.example /app/]
try = $path, /index.htm

[site b.example]
root = {scratch}/b
redirect = https
acme = {scratch}/webroot
"""

TOKEN = "evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr-oA"  # of RFC 8555 8.3
CHALLENGES = "/.well-known/acme-challenge/"
FILES = {
    "site/page": "of the server", "site/server/x": "server/x", "site/a/index.htm": "index of a",
    "site/a/404.html": "no such page", "site/a/page": "page of a", "site/a/x.foo": "foo",
    "site/a/x.unheard": "bar", "site/a/x.iso": "iso", "site/a/d/e/f": "f", "site/a/d/x": "x of d",
    "site/a/robots-a.txt": "robots of a", "site/a/closed/x": "x", "site/a/both/index.html": "html",
    "site/a/both/index.htm": "htm", "b/page": "page of b", "b/sub/x": "x", "b/index.html": "b",
    "pub/x": "x of pub", "pub/sub/y": "y of pub", f"acme/{TOKEN}": "dehydrated",
    f"webroot{CHALLENGES}{TOKEN}": "certbot", "webroot/page": "hidden",
    "webroot/index.html": "hidden", "webroot/internal/secret.html": "hidden",
}


class SiteFiles(SitesCase):
    policy = ""

    @classmethod
    def prepare(cls):
        scratch = cls.world.scratch
        for name, text in FILES.items():
            path = os.path.join(scratch, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(text)
        for link, target in (("site/a/out", "../page"), ("site/a/d/out", "../../page"),
                             ("b/out", "../site/page"), ("b/abs", os.path.join(scratch, "pub/x")),
                             ("b/in", "sub/x"), ("pub/up", "..")):
            os.symlink(target, os.path.join(scratch, link))
        cls.write_policy(CONFIG.format(scratch=scratch))
        cls.cert, cls.key = make_certificate(scratch, "server", "DNS:a.example,DNS:b.example")
        cls.log = os.path.join(scratch, "access.log")
        cls.world.options += ["--tls-cert", cls.cert, "--tls-key", cls.key, "--access-log", cls.log]

    def get(self, host, path, version):
        """Status, content type, Location and body."""
        url = f"http://{host}{path}"
        options = [version] if version != "tls" else ["--cacert", self.cert]
        if version == "tls":
            url = url.replace("http:", "https:")
        done = self.world.client(
            "curl", "-sS", "--path-as-is", *options, "--resolve", f"{host}:80:{SERVER_ADDR}",
            "--resolve", f"{host}:443:{SERVER_ADDR}", "-w",
            "\n%{http_code}\n%{content_type}\n%header{location}", url)
        self.assertEqual(0, done.returncode, done.stderr)
        body, status, kind, location = done.stdout.rsplit("\n", 3)
        return int(status), kind, location, body

    def expect(self, host, cases, versions=("--http1.1", "--http2-prior-knowledge", "tls")):
        for version in versions:
            for path, status, body in cases:
                for _ in range(2):  # the second time, the shard may know the file
                    with self.subTest(host=host, path=path, version=version):
                        got = self.get(host, path, version)
                        self.assertEqual((status, body), (got[0], got[3] if body else body), got)

    def test_roots(self):
        self.expect("other.example", [("/page", 200, "of the server"), ("/x.foo", 404, None)],
                    ("--http1.1", "--http2-prior-knowledge"))
        self.expect("a.example", [
            ("/page", 200, "page of a"), ("//page", 200, "page of a"),
            ("/%70age", 200, "page of a"), ("/server/x", 200, "server/x"),
            ("/robots.txt", 200, "robots of a"),
            ("/pub/x", 200, "x of pub"), ("/p%75b//sub/y", 200, "y of pub"),
            ("/old/x", 200, "x of d"), ("//old//e/f", 200, "f"), ("/d/x", 200, "x of d"),
            ("/app/route", 200, "index of a")])
        self.expect("b.example", [("/page", 200, "page of b"), ("/", 200, "b"),
                                  ("/in", 200, "x")], ["tls"])

    def test_no_way_out(self):
        self.expect("a.example", [
            ("/out", 404, "no such page"), ("/d/out", 404, "no such page"),
            ("/old/out", 404, "no such page"), ("/pub/up/b/page", 404, None),
            ("/../page", 400, None), ("/%2e%2e/page", 400, None), ("/pub/..%2fpage", 400, None),
            ("/pub/../page", 400, None), ("/pub/%2e./b/page", 400, None),
            ("/a/page", 404, "no such page"), ("/pub/%5c..%5cpage", 400, None)])
        self.expect("b.example", [("/out", 404, None), ("/abs", 404, None),
                                  ("/site/page", 404, None), ("/.//page", 400, None)], ["tls"])

    def test_names_are_too_long(self):
        self.expect("a.example", [("/" + 4000 * "x", 404, None), ("/" + 4094 * "x", 414, None),
                                  ("/pub/" + 4085 * "x", 414, None)])

    def test_index_and_listing(self):
        self.expect("a.example", [("/", 200, "index of a"), ("/both/", 200, "html"),
                                  ("/closed/", 404, "no such page")])
        for version in ("--http1.1", "--http2-prior-knowledge", "tls"):
            for path, title, name in (("/d/", "/d/", "e/"), ("/old/e/", "/old/e/", "f"),
                                      ("/pub/", "/pub/", "sub/"), ("//pub/sub/", "/pub/sub/", "y")):
                with self.subTest(path=path, version=version):
                    status, kind, _, body = self.get("a.example", path, version)
                    self.assertEqual((200, "text/html; charset=utf-8"), (status, kind))
                    self.assertIn(f"<title>Index of {title}</title>", body)
                    self.assertIn(f'<a href="{name}">', body)
                    self.assertNotIn('"out"', body)  # a link that leaves the root
        page = json.loads(self.curl("-H", "Host: a.example", "-H", "Accept: application/json",
                                    self.world.url("/pub/")))
        self.assertEqual("/pub/", page["path"])
        self.assertEqual({"x", "sub"}, {e["name"] for e in page["entries"]})

    def test_folders_redirect(self):
        for version in ("--http1.1", "--http2-prior-knowledge", "tls"):
            for path, location in (("/pub", "/pub/"), ("/pub/sub?x=1", "/pub/sub/?x=1"),
                                   ("/old/e", "/old/e/"), ("/d", "/d/"), ("/old", "/old/")):
                with self.subTest(path=path, version=version):
                    self.assertEqual((301, location),
                                     self.get("a.example", path, version)[0:3:2])

    def test_errors(self):
        self.expect("a.example", [("/none", 404, "no such page"), ("/none/", 404, "no such page"),
                                  ("/.git/x", 404, "no such page"),
                                  ("/pub/none", 404, "404 Not Found\n")])
        self.expect("b.example", [("/none", 404, "404 Not Found\n")], ["tls"])
        os.rename(os.path.join(self.root, "a/404.html"), os.path.join(self.root, "a/gone"))
        try:
            def plain():
                return self.get("a.example", "/none2", "--http1.1")[3] == "404 Not Found\n"
            self.assertTrue(any(plain() for _ in range(1000)), "no page for an absent page")
        finally:
            os.rename(os.path.join(self.root, "a/gone"), os.path.join(self.root, "a/404.html"))
            until("all lcores have seen the page again",
                  lambda: not any(plain() for _ in range(20)))

    def test_types(self):
        for version in ("--http1.1", "--http2-prior-knowledge", "tls"):
            for path, kind in (("/x.foo", "application/x-foo"), ("/x.unheard", "text/x-unknown"),
                               ("/both/", "text/html"),
                               ("/server/x", "text/x-unknown")):
                for _ in range(3):
                    with self.subTest(path=path, version=version):
                        self.assertEqual(kind, self.get("a.example", path, version)[1])
            self.assertEqual("attachment", self.ask(
                "a.example", "/x.iso", "--http1.1")[1]["content-disposition"])

    def test_log(self):
        for version in ("--http1.1", "--http2-prior-knowledge", "tls"):
            for path in ("/server/x?quiet", "/server/none?quiet", "/page?" + version):
                self.get("a.example", path, version)
            until("the request is in the log", lambda: "/page?" + version in self.logged())
        self.assertNotIn("quiet", self.logged())

    def logged(self):
        with open(self.log, encoding="utf-8") as f:
            return f.read()

    def test_challenges(self):
        versions = ("--http1.1", "--http2-prior-knowledge")
        for host, text in (("a.example", "dehydrated"), ("b.example", "certbot")):
            self.expect(host, [(CHALLENGES + TOKEN, 200, text),
                               (CHALLENGES + TOKEN[::-1], 404, None),
                               (CHALLENGES + "../page", 400, None)], versions)
            self.assertEqual("text/plain", self.get(host, CHALLENGES + TOKEN, "--http1.1")[1])
            for other in ("", "page", "index.html", "internal/secret.html", "internal", "internal/",
                          TOKEN + "/", f".well-known/acme-challenge/{TOKEN}", TOKEN[:21]):
                self.expect(host, [(CHALLENGES + other, 404, None)], versions)
        self.expect("b.example", [("/page", 301, None)], versions)

    def test_reload(self):
        new = os.path.join(self.world.scratch, "new")
        os.makedirs(new, exist_ok=True)
        with open(os.path.join(new, "page"), "w") as f:
            f.write("new page")
        self.change_policy(f"[site a.example]\nroot = {new}\n")
        self.expect("a.example", [("/page", 200, "new page"), ("/x.foo", 404, None)])
        self.read_policy("[site a.example]\nroot = nowhere\n")
        until("the folder is missing", lambda: "root = nowhere: " in self.server.stderr_text)
        self.expect("a.example", [("/page", 200, "new page")])
        self.read_policy("[site a.example]\nroot = /root\n")
        until("the folder is refused", lambda:
              "root = /root: the server's user cannot read" in self.server.stderr_text)
        self.change_policy(CONFIG.format(scratch=self.world.scratch))
        self.expect("a.example", [("/page", 200, "page of a")])
