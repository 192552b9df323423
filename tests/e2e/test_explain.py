# SPDX-License-Identifier: BSD-3-Clause
"""--check --explain URL says what a running server answers, and which lines say so."""
import json
import os
import subprocess
import tempfile
import unittest

from tests.e2e.test_sites import CONFIG, SitesCase
from tests.netlab.case import ServerCase
from tests.netlab.world import CLIENT_ADDR, REPO, server_path, time_limit

CLASSES = """\
[class images]
path = /iso/
host = www.example.org
request_rate = 100MiB/s
[class default]
requests = 1000
"""


class Explain(ServerCase):
    policy = CONFIG + CLASSES
    prepare = classmethod(SitesCase.prepare.__func__)
    ask = SitesCase.ask

    def explain(self, url, *options, status=0):
        done = subprocess.run(
            [server_path(), "--check", "--json", "--root", self.root, "--config",
             self.policy_path, "--explain", url, *options], capture_output=True, text=True,
            timeout=time_limit())
        self.assertEqual((status, ""), (done.returncode, done.stderr))
        return json.loads(done.stdout)

    def item(self, items, kind):
        found = [i for i in items if i["kind"] == kind]
        self.assertEqual(1, len(found), items)
        return found[0], {k["key"]: k["value"] for k in found[0]["keys"]}

    def line_of(self, text):
        return self.policy.splitlines().index(text) + 1

    def test_it_says_what_the_server_answers(self):
        """Of each host and path: the status, the target of a redirect, and the class."""
        seen = set()
        for host in ("www.example.org", "a.example.net", "secure.example.org", "app.example.org",
                     "other"):
            for path in ("/", "/page.html", "/old/a?b=1", "/old", "/moved", "/moved/", "/api/x",
                         "/iso/b.iso", "/iso", "/inside/x", "/outside/x", "/nothing", "/a%2f",
                         "/%2e%2e/", "/mirror/x?y", "/lost/x", "/.hidden/x", "/a.iso",
                         "/.well-known/acme-challenge/token"):
                with self.subTest(host=host, path=path):
                    items = self.explain(f"http://{host}{path}", "--explain-from", CLIENT_ADDR)
                    answer = self.item(items, "answer")[1]
                    told = answer.get("status", "200")
                    status, fields = self.ask(host, path)
                    self.assertEqual(str(status), told[:3], answer)
                    if " to " in told:
                        self.assertEqual(told.partition(" to ")[2], fields["location"])
                    seen.add(status)
        self.assertLessEqual({200, 301, 302, 308, 400, 403, 404}, seen)

    def test_lines_that_apply(self):
        items = self.explain("http://www.example.org/iso/b.iso")
        lines = [(k["key"], k["value"], k["line"]) for i in items for k in i["keys"]
                 if k.get("file") == self.policy_path]
        self.assertEqual(
            [("name", "*.example.net", 2), ("header", "set x-site: www", 3),
             ("header", "remove server", 4),
             ("header", "set content-disposition: attachment",
              self.line_of("header = set Content-Disposition: attachment")),
             ("cache_control", "none", self.line_of("cache_control = none")),
             ("request_rate", "100MiB/s", self.line_of("request_rate = 100MiB/s")),
             ("requests", "1000", self.line_of("requests = 1000"))],
            [x for x in lines if x[0] != "request_ceiling"])
        self.assertEqual("images", self.item(items, "class")[0]["name"])
        self.assertEqual("80", self.item(items, "listener")[0]["name"])
        self.assertEqual(["www.example.org *.iso", "www.example.org /iso/"],
                         [i["name"] for i in items if i["kind"] == "path"])

    def test_clients_and_ports(self):
        answer = self.item(self.explain("http://www.example.org/inside/x"), "answer")[1]
        self.assertEqual("403, by allow or deny of the site", answer["status"])
        items = self.explain("http://www.example.org/inside/x", "--explain-from", "192.0.2.7")
        self.assertEqual(os.path.join(self.root, "inside/x"), self.item(items, "answer")[1]["file"])
        self.assertEqual("inside", self.item(items, "request")[1]["lists"])
        for url in ("https://www.example.org/", "http://www.example.org:81/moved"):
            items = self.explain(url)
            self.assertEqual("none", self.item(items, "listener")[0]["name"])
            self.assertEqual("none: nothing listens there", self.item(items, "answer")[1]["status"])

    def test_mistakes(self):
        for options in (("ftp://x/",), ("http:///x",), ("http://x:0/",), ("http://x:a/",),
                        ("http://x?y",), ("http://x/", "--explain-from", "office")):
            with self.subTest(options=options):
                items = self.explain(*options, status=2)
                self.assertRegex(items[0]["keys"][0]["value"], "^--explain.*: expected a")
        done = subprocess.run([server_path(), "--", "--json"], capture_output=True, text=True,
                              timeout=time_limit())
        self.assertEqual(2, done.returncode)
        self.assertIn("need --check", done.stderr)

    def test_errors_of_check(self):
        """A file that the server's user cannot read: the same errors as without --explain."""
        secret = os.path.join(self.world.scratch, "secret.conf")
        with open(secret, "w", encoding="ascii") as f:
            f.write(self.policy)
        os.chmod(secret, 0o600)
        told = []
        for more in ((), ("--explain", "http://www.example.org/")):
            done = subprocess.run([server_path(), "--check", "--root", self.root, "--config",
                                   secret, *more], capture_output=True, text=True,
                                  timeout=time_limit())
            self.assertEqual(2, done.returncode)
            told.append([line.partition("error:")[2] for line in done.stderr.splitlines()
                         if "error:" in line])
        self.assertIn("cannot read it", told[0][0])
        self.assertEqual(*told)


class Page(unittest.TestCase):
    """The sample of docs/sites.md is what the program prints for the file of that page."""

    def test_the_sample(self):
        with open(os.path.join(REPO, "docs/sites.md"), encoding="utf-8") as f:
            page = f.read()
        sample = page.partition("    $ nightjar ")[2].partition("\n\n")[0].split("\n    ")
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            for name in ("www", "www.example.org", "iso"):
                os.makedirs(f"{folder}/srv/{name}")
            for name in ("srv/iso/x.iso", "nightjar.conf"):
                with open(f"{folder}/{name}", "w", encoding="utf-8") as f:
                    f.write(page.partition("```ini\n")[2].partition("```")[0])
            done = subprocess.run(
                ["unshare", "-m", "sh", "-ec", 'mount --bind srv /srv; exec "$@"', "sh",
                 os.path.abspath(server_path()), *sample[0].split(), "--root", "/srv/www"],
                cwd=folder, capture_output=True, text=True, timeout=time_limit())
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual("\n".join(sample[1:]) + "\n", done.stdout)
