# SPDX-License-Identifier: BSD-3-Clause
"""
What is sent of files beside RFC 9110 13 and 14: fields that are too long, media types, names that
begin with a dot, long lists, and files that another process has.
"""
import fcntl
import json
import os
import re
import signal
import subprocess

from tests.e2e.test_origin import IM, IMS, INM, IUS, MODIFIED, OriginCase, R
from tests.netlab.limits import time_limit
from tests.netlab.world import until


# MODIFIED, and a second before it.
DATES = {"DATE": "Sun, 06 Nov 1994 08:49:37 GMT", "BEFORE": "Sun, 06 Nov 1994 08:49:36 GMT"}


class LongFields(OriginCase):
    """Fields beyond the 8 KiB that a request may keep, in a head within its limit."""
    options = ("--listing",)

    @classmethod
    def prepare(cls):
        os.mkdir(os.path.join(cls.root, "list"))
        cls.write("page.html", b"plain", MODIFIED)
        cls.write("page.html.gz", b"packed", MODIFIED)

    def test_optional_ones_are_ignored(self):
        tags = ",".join(f'"{i:05}"' for i in range(1500))
        for lines in ((R + ",".join(["1-2"] * 3000),),
                      ("If-None-Match: " + tags, IMS + "{DATE}"),
                      ("If-Range: " + "x" * 10_000, R + "1-2"),
                      (IMS + "x" * 10_000,), (IUS + "x" * 10_000,),
                      ("Accept-Encoding: gzip, " + "x" * 10_000,),
                      ("Accept: " + "x" * 10_000, "Accept-Encoding: " + "y" * 10_000)):
            with self.subTest(lines=[line[:40] for line in lines]):
                got = self.ask("/page.html", *(line.format(**DATES) for line in lines))
                self.assertEqual((200, b"plain"), (got.status, got.body))
        got = self.ask("/list/", "Accept: application/json, " + "x" * 10_000)
        self.assertEqual((200, "text/html; charset=utf-8"), (got.status, got["content-type"]))

    def test_those_that_fit_count(self):
        """A tag at the end of 8,000 bytes; and a short field beside one that is ignored."""
        tag = self.ask("/page.html", method="HEAD")["etag"]
        got = self.ask("/page.html", INM + '"a",' * 2000 + tag)
        self.assertEqual(304, got.status)
        got = self.ask("/page.html", IM + '"a",' * 2000 + tag)
        self.assertEqual(200, got.status)
        got = self.ask("/page.html", "Accept: " + "x" * 10_000, "Accept-Encoding: gzip")
        self.assertEqual("gzip", got["content-encoding"])
        got = self.ask("/page.html", R + ",".join(["1-2"] * 3000), IUS + DATES["BEFORE"])
        self.assertEqual(412, got.status)

    def test_one_that_protects_is_refused(self):
        got = self.ask("/page.html", IM + '"a",' * 3000)
        self.assertEqual(431, got.status)


class Charset(OriginCase):
    """--charset and --default-type, and types of Debian's package media-types."""

    @classmethod
    def prepare(cls):
        types = os.path.join(cls.world.scratch, "mime.types")
        with open(types, "w") as f:
            f.write("text/x-bird bird\ntext/x-latin;charset=iso-8859-1 lat\n")
        cls.world.options += ["--mime-types", types, "--charset", "utf-8",
                              "--default-type", "text/plain;charset=utf-8"]
        for name in ("x.html", "x.bird", "x.lat", "x.json", "README", "x.tgz", "x.asc", "x.toml",
                     "x.yaml", "x.docx"):
            cls.write(name, b"x")

    def test_media_types(self):
        for name, want in (
                ("x.html", "text/html; charset=utf-8"), ("x.bird", "text/x-bird; charset=utf-8"),
                ("x.lat", "text/x-latin;charset=iso-8859-1"), ("x.json", "application/json"),
                ("README", "text/plain;charset=utf-8"), ("x.tgz", "application/gzip"),
                ("x.asc", "application/pgp-signature"), ("x.toml", "application/toml"),
                ("x.yaml", "application/yaml"),
                ("x.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml."
                           "document")):
            with self.subTest(name=name):
                self.assertEqual(want, self.ask("/" + name)["content-type"])


class Compressed(OriginCase):
    """A file that is compressed as it stands."""

    @classmethod
    def prepare(cls):
        cls.page = b"<svg xmlns='http://www.w3.org/2000/svg'/>\n" * 100
        packed = subprocess.run(["gzip", "-n", "-9", "-c"], input=cls.page, check=True,
                                timeout=time_limit(), capture_output=True).stdout
        cls.write("x.svgz", packed)

    def test_svgz(self):
        for line in ("X: y", "Accept-Encoding: br, gzip", "Range: bytes=0-9"):
            got = self.ask("/x.svgz", line)
            self.assertEqual(("image/svg+xml", "gzip", None),
                             (got["content-type"], got["content-encoding"], got["vary"]))
        out = self.curl("--compressed", self.world.url("/x.svgz"), text=False)
        self.assertEqual(self.page, out)


class LongLists(OriginCase):
    options = ("--listing",)

    @classmethod
    def prepare(cls):
        cls.names = [f"f{i:05}" for i in range(10_500)]
        os.mkdir(os.path.join(cls.root, "long"))
        for name in cls.names:
            cls.write("long/" + name, b"")

    def test_all_are_listed(self):
        got = self.ask("/long/", "Accept: application/json")
        self.assertEqual(200, got.status)
        self.assertEqual(self.names, [e["name"] for e in json.loads(got.body)["entries"]])
        page = self.ask("/long/").body.decode()
        self.assertEqual(self.names, re.findall(r'<a href="(f\d+)">', page))


class Leases(OriginCase):
    """A file with a write lease (F_SETLEASE), as Samba takes it, whose holder does not answer."""

    @classmethod
    def prepare(cls):
        cls.write("leased", b"text")

    def test_503_until_it_is_returned(self):
        signal.signal(signal.SIGIO, signal.SIG_IGN)  # by which the kernel asks for the lease
        with open(os.path.join(self.root, "leased"), "r+b") as f:
            fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            got = self.ask("/leased")
            self.assertEqual((503, "1"), (got.status, got["retry-after"]))
        # What is known of a name is good for a second.
        until("the file", lambda: self.ask("/leased").body == b"text")


class Dotfiles(OriginCase):
    @classmethod
    def prepare(cls):
        cls.names = (".treeinfo", ".discinfo", ".well-known/x", ".htaccess", ".git/config",
                     "os/.treeinfo", "os/.treeinfo.orig")
        for folder in (".well-known", ".git", "os"):
            os.mkdir(os.path.join(cls.root, folder))
        for name in cls.names:
            cls.write(name, name.encode())

    def statuses(self):
        return [name for name in self.names if self.ask("/" + name).status == 200]

    def test_these_are_served(self):
        self.assertEqual([".treeinfo", ".discinfo", ".well-known/x", "os/.treeinfo"],
                         self.statuses())
        self.assertEqual(b".treeinfo", self.ask("/.treeinfo").body)


class ChosenDotfiles(Dotfiles):
    options = ("--dotfiles", ".git,.treeinfo.orig")

    def test_these_are_served(self):
        self.assertEqual([".git/config", "os/.treeinfo.orig"], self.statuses())
