# SPDX-License-Identifier: BSD-3-Clause
"""
Hostile paths, sent as they stand: none leaves the root, shows a dotfile, or opens what is no file.

The root has a secret next to it and dotfiles in it; links, FIFOs, sockets and devices lie around.
Each path is asked for as it is, with a '/' behind it, by HEAD, and with conditions and a range:
what comes must be an error (or a reset, where HTTP/2 forbids the bytes), and not one byte of a
secret.
"""
import os
import shutil
import socket
import stat


from tests.netlab.case import ServerCase

SECRET = b"outside the root, nobody's business\n"
DOTFILE = b"a dotfile, nobody's business\n"
MINE = b"a file like any other\n"

# What stands for something that is never served. {up}: as many ".." as lead to "/".
OUT_OF_THE_ROOT = (
    "/../secret", "/../../secret", "/folder/../../secret", "/folder/sub/../../../secret",
    "/./../secret", "/.//../secret", "//../secret", "/../site/../secret", "/..//secret", "/..",
    "/../", "/folder/..", "/folder/../mine/../../secret",
    # encoded
    "/%2e%2e/secret", "/.%2e/secret", "/%2e./secret", "/%2E%2E/secret", "/%2e%2e%2fsecret",
    "/..%2fsecret", "/..%2Fsecret", "/folder%2f..%2f..%2fsecret", "/%2e%2e%2f%2e%2e%2fetc/passwd",
    "/folder/%2e%2e/%2e%2e/secret", "/%2fetc/passwd", "/%2Fetc%2Fpasswd", "/%2f%2fetc/passwd",
    "/%2fsecret",
    # encoded twice and more, and in ways that nobody should understand
    "/%252e%252e/secret", "/%252e%252e%252fsecret", "/%25252e%25252e/secret",
    "/%%32%65%%32%65/secret",
    "/%u002e%u002e/secret", "/%u2215secret", "/%c0%ae%c0%ae/secret", "/%c0%ae%c0%ae%c0%afsecret",
    "/%e0%80%ae%e0%80%ae/secret", "/%f0%80%80%ae%f0%80%80%ae/secret", "/..%c0%afsecret",
    "/..%c1%9csecret", "/%uff0e%uff0e/secret", "/%ef%bc%8e%ef%bc%8e/secret", "/\u2025/secret",
    # backslashes
    "/..\\secret", "/..%5csecret", "/..%5Csecret", "\\..\\secret", "/folder\\..\\..\\secret",
    "/%5c..%5c..%5csecret", "/..%255csecret",
    # other ends of segments
    "/..;/secret", "/..;a=b/secret", "/.;/../secret", "/..%3b/secret", "/..#/secret",
    "/folder/..%00/../secret", "/..%00/secret", "/..%20/secret", "/.. /secret", "/..%09/secret",
    "/..%0d%0a/secret", "/../secret?a=b", "/mine/../../secret",
    # absolute, and targets of other forms
    "//secret", "/etc/passwd", "//etc/passwd", "///etc/passwd", "/{scratch}/secret",
    "//{scratch}/secret", "http://nightjar/../secret", "http://nightjar/secret",
    "file:///etc/passwd", "nightjar:80", "secret", "../secret", "?../secret", "*",
    "/proc/self/environ", "/dev/zero",
    # links
    "/link-out", "/link-absolute", "/link-folder/secret", "/link-folder/", "/link-proc/environ",
    "/link-loop", "/link-loop/x", "/link-up/secret", "/link-root/etc/passwd", "/link-dangling",
    "/link-chain",
)
DOTFILES = (
    "/.htaccess", "/.git/config", "/.git", "/.git/", "/folder/.env", "/folder/./.env",
    "/%2ehtaccess",
    "/%2Egit/config", "/%2e%67%69%74/config", "//.htaccess", "/folder//.env", "/.htaccess?x",
    "/.htaccess/", "/.htaccess%00", "/.htaccess%00.html", "/.htaccess;", "/.htaccess%20",
    "/.%68taccess", "/%252ehtaccess", "/\\.htaccess", "/.git\\config", "/.git%5cconfig",
    "/folder/..%2f.htaccess", "/folder/../.htaccess", "/.well-known/.secret",
    "/.well-known/../.git/config",
    "/.well-known/%2e%2e/.htaccess", "/.well-knownx/secret", "/.WELL-KNOWN/secret", "/...", "/.../",
    "/..htaccess", "/.", "/./", "/%2e", "/%2e/", "/.html", "/dot-in/",
)
NO_FILES = (
    "/fifo", "/socket", "/null", "/zero", "/tty", "/fifo/", "/zero/x", "/link-fifo", "/link-zero",
    "/link-tty", "/folder",
)
CONTROLS = tuple(f"/mine%{byte:02x}" for byte in (0, 1, 7, 8, 9, 10, 13, 27, 31, 127)) + (
    "/mine%00.html", "/%00", "/%0d%0aset-cookie:x=y", "/mine%", "/mine%2", "/mine%zz", "/%", "/%%",
    "/mine%2g", "/mi%6", "/%-1", "/mine%0", "/mine#fragment", "/%23mine#",
)
RAW = (b"/mine\x00", b"/mi\x01ne", b"/mine\r\nx: y", b"/mine\n", b"/mi ne\x7f", b"/..\x00/secret",
       b"/\xc0\xae\xc0\xae/secret", b"/\xc0\xae\xc0\xae\xc0\xafsecret", b"/\xff\xfe", b"/\x80\x80",
       b"/\t../secret", b"", b" /mine", b"/../secret\x00.html")
LONG = (*("/" + "a" * n for n in (256, 4095, 4096, 5000, 15000)), "/" + "a/" * 2100,
        "/" + "../" * 1400 + "secret", "/" + "%2e%2e/" * 700 + "secret",
        "/" + "/" * 4000 + "../secret", "/" + "./" * 2000, "/x?" + "y" * 5000, "/" + "%61" * 1400)

FAILURES = (0, 301, 400, 403, 404, 414)  # 0: the stream was reset
RANGE = {"range": "bytes=0-3", "if-none-match": '"x"', "accept-encoding": "gzip, br, zstd"}


class Paths(ServerCase):
    options = ("--listing",)

    @classmethod
    def prepare(cls):
        root, scratch = cls.root, cls.world.scratch

        def put(path, data):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)
        put(f"{scratch}/secret", SECRET)
        put(f"{root}/mine", MINE)
        put(f"{root}/folder/sub/mine", MINE)
        for path in (".htaccess", ".git/config", "folder/.env", ".well-known/.secret",
                     ".well-knownx/secret", ".WELL-KNOWN/secret", "...", "..htaccess", ".html",
                     ".htaccess.gz"):
            put(f"{root}/{path}", DOTFILE)
        put(f"{root}/.well-known/mine", MINE)
        for name, target in (("link-out", "../secret"), ("link-absolute", f"{scratch}/secret"),
                             ("link-folder", ".."), ("link-proc", "/proc/self"),
                             ("link-loop", "link-loop"), ("link-up", "folder/../.."),
                             ("link-root", "/"), ("link-dangling", "nowhere"),
                             ("link-chain", "link-out"), ("link-fifo", "fifo"),
                             ("link-zero", "zero"), ("link-tty", "/dev/tty"),
                             ("mine.gz", "../secret"), ("mine.br", ".htaccess")):
            os.symlink(target, f"{root}/{name}")
        os.mkfifo(f"{root}/fifo")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(f"{root}/socket")
        for name, minor in (("null", 3), ("zero", 5)):
            os.mknod(f"{root}/{name}", stat.S_IFCHR | 0o666, os.makedev(1, minor))
        os.mknod(f"{root}/tty", stat.S_IFCHR | 0o666, os.makedev(5, 0))
        os.makedirs(f"{root}/dot-in/.inner")
        put(f"{root}/dot-in/.hidden", DOTFILE)

    def nothing_leaks(self, path, status, fields, body):
        for secret in (SECRET, DOTFILE, b"root:", b"nobody's"):
            self.assertNotIn(secret[:12], body, path)
        for name in fields:
            self.assertNotIn("nobody", fields[name], path)
        self.assertNotIn("set-cookie", fields)
        if status == 301:  # it stays here, and is not followed by a client to another host
            self.assertRegex(fields["location"], r"^/[^/\\]")

    def refused(self, paths, statuses=FAILURES):
        """All of them, in four ways, on connections that live as long as they can."""
        client = self.client()
        for path in paths:
            if isinstance(path, str):
                path = path.replace("{scratch}", self.world.scratch.strip("/"))
            slash = path + (b"/" if isinstance(path, bytes) else "/")
            for target, more in ((path, {}), (slash, {}), (path, {":method": "HEAD"}),
                                 (path, RANGE)):
                with self.subTest(target=target, more=more):
                    try:
                        status, fields, body = client.get(target, **more)
                    except ConnectionError:  # bytes that HTTP/2 forbids may end a connection
                        client.close()
                        client = self.client()
                        continue
                    self.nothing_leaks(target, status, fields, body)
                    if target is path:
                        self.assertIn(status, statuses, target)
        client.close()
        client = self.client()
        self.assertEqual(200, client.get("/mine")[0])
        client.close()

    def test_how_many(self):
        n = sum(map(len, (OUT_OF_THE_ROOT, DOTFILES, NO_FILES, CONTROLS, RAW, LONG)))
        self.assertGreaterEqual(n, 60)

    def test_what_is_served(self):
        """Or else all of the below would pass."""
        client = self.client()
        for path in ("/mine", "/%6dine", "//mine", "/folder//sub/mine", "/mine?../x",
                     "/.well-known/mine", "/folder/sub/mi%6Ee"):
            with self.subTest(path=path):
                self.assertEqual((200, MINE), client.get(path)[::2])
        client.close()

    def test_private_files(self):
        """As root we can read everything, and serve what everybody can."""
        folder = f"{self.root}/private"
        os.mkdir(folder)
        self.addCleanup(shutil.rmtree, folder)
        for name, mode in (("own", 0o600), ("group", 0o640), ("all", 0o644), ("all-1", 0o604)):
            with open(f"{folder}/{name}", "wb") as f:
                f.write(SECRET)
            os.chmod(f"{folder}/{name}", mode)
        os.mkdir(f"{folder}/closed")
        with open(f"{folder}/closed/all", "wb") as f:
            f.write(SECRET)
        os.chmod(f"{folder}/closed/all", 0o644)
        os.chmod(f"{folder}/closed", 0o750)
        os.mkdir(f"{folder}/unlisted")
        with open(f"{folder}/unlisted/index.html", "wb") as f:
            f.write(MINE)
        os.chmod(f"{folder}/unlisted", 0o711)
        client = self.client()
        for name, status in (("own", 403), ("group", 403), ("all", 200), ("all-1", 200),
                             ("closed/all", 403), ("closed/", 403), ("closed", 403),
                             ("unlisted", 301), ("unlisted/", 200)):
            with self.subTest(name=name):
                self.assertEqual(status, client.get(f"/private/{name}")[0])
        client.close()

    def test_out_of_the_root(self):
        self.refused(OUT_OF_THE_ROOT)

    def test_dotfiles(self):
        self.refused([p for p in DOTFILES if p != "/dot-in/"])
        client = self.client()
        for accept in ("text/html", "application/json"):
            for path in ("/dot-in/", "/", "/folder/", "/.well-known/"):
                status, fields, body = client.get(path, accept=accept)
                self.nothing_leaks(path, status, fields, body)
                for name in (b"htaccess", b".git", b".env", b".hidden", b".inner", b".secret"):
                    self.assertNotIn(name, body, path)
        client.close()

    def test_no_files(self):
        self.refused(NO_FILES)

    def test_controls_and_broken_escapes(self):
        self.refused(CONTROLS)

    def test_raw_bytes(self):
        self.refused(RAW)

    def test_long_ones(self):
        self.refused(LONG, FAILURES + (431,))

    def test_siblings_do_not_lead_out(self):
        """mine.gz is a link out of the root, mine.br one to a dotfile."""
        client = self.client()
        for coding in ("gzip", "gzip, identity;q=0"):
            status, fields, body = client.get("/mine", **{"accept-encoding": coding})
            self.assertEqual((200, MINE, None), (status, body, fields.get("content-encoding")))
        client.close()

    def test_methods(self):
        client = self.client()
        for method in ("OPTIONS", "POST", "TRACE", "DELETE", "PUT", "BREW"):
            for path in ("/../secret", "/.htaccess", "/fifo", "/link-out"):
                with self.subTest(method=method, path=path):
                    status, fields, body = client.get(path, **{":method": method})
                    self.assertIn(status, (204, 400, 404, 405, 501))
                    self.nothing_leaks(path, status, fields, body)
        client.close()
