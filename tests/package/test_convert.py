# SPDX-License-Identifier: BSD-3-Clause
"""`nightjar convert`: its file says the same as the command line, for each option."""
import os
import re
import subprocess
import tempfile
import unittest

from tests.package.prefix import BUILD, REPO

PROGRAM = os.path.join(BUILD, "app/nightjar/nightjar")
FOLDER = tempfile.TemporaryDirectory(prefix="nj-convert-")
ROOT = FOLDER.name
os.chmod(ROOT, 0o755)  # --check looks as the server's user
with open(os.path.join(ROOT, "LICENSE"), "w", encoding="ascii"):
    pass
# Options that are valid with others only, and those whose value --check reads.
VALUES = {"connections-per-client": ("7",), "streams-per-client": ("8",),
          "requests-per-client": ("9",),
          "port": ("0", "3=4-5"), "addr": ("198.18.0.2/24", "2001:db8::2/64"),
          "gateway": ("198.18.0.1",), "route": ("203.0.113.0/24=198.18.0.3",),
          "neighbour": ("198.18.0.1=02:00:00:00:00:01",), "vlan": ("7",), "rss-key": ("ab" * 40,),
          "root": (ROOT,), "index": ("home#1.html",), "mime-types": ("/etc/mime.types",),
          "default-type": ("text/plain",), "dotfiles": (".a,.b",),
          "cache-control": ("max-age=3600, public",), "error-page": ("404=/LICENSE",
                                                                     "403=/LICENSE"),
          "access-log": ("-",), "user": ("root",), "upgrade-socket": ("/run/nightjar/upgrade",),
          "management-socket": ("/run/nightjar/http",),
          "management-listen": ("127.0.0.1:9180", "[::1]:9181"),
          "management-token": (f"{ROOT}/LICENSE",), "management-read-token": (f"{ROOT}/LICENSE",),
          "proxy-protocol": ("65535",),
          "trusted-proxy": ("10.0.0.0/8", "2001:db8::/48"), "cache": ("0",)}
BESIDE = {"proxy-protocol": ("--listen", "65535", "--trusted-proxy", "10.0.0.0/8"),
          "gateway": ("--addr", "198.18.0.2/24"), "route": ("--addr", "198.18.0.2/24"),
          "neighbour": ("--addr", "198.18.0.2/24"), "addr": ("--port", "0"),
          "error-page": ("--root", ROOT), "rate-after": ("--rate-per-request", "1MiB/s"),
          "log-format": ("--access-log", "-"),
          "management-token": ("--management-listen", "127.0.0.1:9180"),
          "management-read-token": ("--management-listen", "127.0.0.1:9180"),
          "upgrade-timeout": ("--upgrade-socket", "/run/nightjar/upgrade")}
TLS = {"tls-cert", "tls-key", "tls-port", "tls-ocsp", "tls-client-ca", "tls-client-optional",
       "keylog", "insecure-keylog"}
PROGRAM_OPTIONS = {"config", "check", "explain", "explain-from", "json", "print-placement", "help",
                   "version", "preset", "print-preset"}


def call(*args):
    return subprocess.run([PROGRAM, *args], capture_output=True, text=True)


def rows():
    """(option, name of the value, range) of each option."""
    with open(os.path.join(REPO, "docs/options.md"), encoding="utf-8") as f:
        return re.findall(r"^\| `--([\w-]+) ?((?:[^`\\]|\\.)*)` \| (?:[^|\\]|\\.)* \| ([^|]*) \|",
                          f.read(), re.M)


def values(option, value, bounds):
    if option in VALUES:
        return VALUES[option]
    if not value:
        return (None,)
    if r"\|" in value:
        return (value.split(r"\|")[-1],)
    if value == "N" or value == "PORT":
        return (re.search(r"to (\d+)", bounds)[1] if " to " in bounds else "77",)
    return ({"SIZE": "8KiB", "RATE": "3MiB/s", "TIME": "1234ms"}[value],)


def settings(text):
    """What --check prints, without files and without what a start needs: a command line has other
    files, and its EAL arguments are not looked at."""
    return re.sub(r"(?m)^(?:file .*|needed for a start)\n(?:    .*\n)+", "", text)


class Convert(unittest.TestCase):
    def convert(self, *args):
        done = call("convert", *args)
        self.assertEqual((0, ""), (done.returncode, done.stderr), args)
        return done.stdout

    def check_file(self, text):
        with tempfile.NamedTemporaryFile("w", prefix="nj-convert-", suffix=".conf") as file:
            file.write(text)
            file.flush()
            os.chmod(file.name, 0o644)  # it is checked as the server's user
            done = call("--check", "--config", file.name)
        self.assertEqual((0, ""), (done.returncode, done.stderr), text)
        return settings(done.stdout)

    def same(self, *options):
        done = call("--check", *options)
        self.assertEqual(0, done.returncode, done.stderr)
        text = self.convert("--", *options)
        self.assertEqual(settings(done.stdout), self.check_file(text), text)
        return settings(done.stdout)

    def test_each_option(self):
        nothing = settings(call("--check").stdout)
        seen = 0
        for option, value, bounds in rows():
            if option in PROGRAM_OPTIONS | TLS:
                continue
            with self.subTest(option=option):
                options = [*BESIDE.get(option, ())]
                for v in values(option, value, bounds):
                    options += ["--" + option] + ([v] if v else [])
                self.assertNotEqual(nothing, self.same(*options))
                seen += 1
        self.assertGreater(seen, 55)

    def test_all_of_them(self):
        options = []
        for option, value, bounds in rows():
            if option not in PROGRAM_OPTIONS | TLS | {"busy-poll"}:  # it hides --idle
                for v in values(option, value, bounds):
                    options += ["--" + option] + ([v] if v else [])
        self.same(*options)

    def test_keys_of_tls(self):
        """--check would need certificates."""
        text = self.convert("--", "--tls-cert", "c", "--tls-key", "k", "--tls-port=444",
                            "--tls-ocsp", "o", "--tls-client-ca", "a", "--tls-client-optional",
                            "--keylog", "l", "--insecure-keylog")
        self.assertEqual("\n[tls]\ncert = c\nkey = k\nport = 444\nocsp = o\nclient_ca = a\n"
                         "client_optional = yes\nkeylog = l\ninsecure_keylog = yes\n", text)

    def test_arguments_of_the_eal(self):
        text = self.convert("-l", "2,3", "--preset", "tap,iface=nj0", "--preset=tap,iface=nj1",
                            "-m", "64", "--")
        self.assertEqual("[eal]\narguments = -l 2,3\npreset = tap,iface=nj0\n"
                         "preset = tap,iface=nj1\narguments = -m 64\n", text)
        self.assertIn("\neal\n    arguments = -l 2,3 ", self.check_file(text))
        text = self.convert(*[f"--vdev=net_null{i}" for i in range(40)], "--")
        line = self.check_file(text).partition("eal\n    arguments = ")[2].splitlines()[0]
        self.assertEqual([f"--vdev=net_null{i}" for i in range(40)], line.split())

    def test_the_last_value_counts(self):
        self.assertEqual("\n[network]\nlisten = 82\n",
                         self.convert("--", "--listen", "81", "--listen", "82"))

    def test_a_file_is_included(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write("[class default]\nstreams = 3\n")
            file.flush()
            os.chmod(file.name, 0o644)
            options = "--config", file.name, "--listen", "81"
            self.assertEqual(settings(call("--check", *options).stdout),
                             self.check_file(self.convert("--", *options)))

    def test_what_no_file_can_say(self):
        for args in (("--", "--index", " a"), ("--", "--index", ""), ("-l 1", "--"), ("-l", "1"),
                     ("--", "--index", "a" * 2048), ("--", "--indx", "a"), (),
                     ("x", "--")):
            done = call("convert", *args)
            self.assertEqual(2, done.returncode, args)
            self.assertEqual(1, done.stderr.count("\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
