# SPDX-License-Identifier: BSD-3-Clause
"""
Each file of examples/config is started as it is, by --config. Only device, CPUs and addresses are
those of the test, from the command line. Its folders are in a mount namespace of the server.
"""
import glob
import gzip
import hashlib
import os
import signal
import subprocess

from tests.netlab.case import ServerCase
from tests.netlab.certificates import Authority
from tests.netlab.world import (CLIENT_ADDR, PREFIX_BITS, REPO, SERVER_ADDR, Server, server_path,
                                until)

FOLDER = os.path.join(REPO, "examples/config")
LINES_MAX = 40


class ExampleServer(Server):
    config = mounts = None

    def command(self, program, options, eal):
        mount = "".join(f"mount --bind {what} {to}; " for what, to in self.mounts.items())
        return ["sh", "-ec", mount + 'exec "$@"', "sh", server_path(program), *eal, "--",
                "--config", self.config, "--addr", f"{SERVER_ADDR}/{PREFIX_BITS}",
                "--gateway", CLIENT_ADDR, "--management-socket", "none"]


class ExampleCase(ServerCase):
    name = None   # of the file
    files = {}    # {path below /srv: text}
    hosts = ()
    certificates = ()  # names in /etc/ssl/nightjar

    @classmethod
    def prepare(cls):
        scratch = cls.world.scratch
        srv, ssl = (os.path.join(scratch, name) for name in ("srv", "ssl"))
        os.makedirs(os.path.join(ssl, "nightjar"))
        for path, text in cls.files.items():
            path = os.path.join(srv, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb" if isinstance(text, bytes) else "w") as f:
                f.write(text)
        if cls.certificates:
            authority = Authority(scratch, "authority")
            cls.ca = authority.cert
            for i, name in enumerate(cls.certificates):
                for made in authority.sign(name, f"/CN={name}", i + 1,
                                           f"subjectAltName=DNS:{name},DNS:*.{name}"):
                    os.rename(made, os.path.join(ssl, "nightjar", os.path.basename(made)))
        cls.hosts_file = os.path.join(scratch, "hosts")
        with open(cls.hosts_file, "w") as f:
            f.write(f"{SERVER_ADDR} {' '.join(cls.hosts)}\n")
        ExampleServer.config = os.path.join(FOLDER, cls.name)
        ExampleServer.mounts = {srv: "/srv", ssl: "/etc/ssl"}
        cls.world.server_class = ExampleServer

    def run_client(self, *command):
        """A client that finds the sites by their names."""
        return self.world.client("sh", "-ec", f'mount --bind {self.hosts_file} /etc/hosts; '
                                 'exec "$@"', "sh", *command)

    def ask(self, url, *options):
        """Status and fields of a response."""
        done = self.run_client("curl", "-sS", "-o", "/dev/null", "-D", "-", *options, url)
        self.assertEqual(0, done.returncode, done.stderr)
        lines = done.stdout.replace("\r", "").strip().split("\n")
        return int(lines[0].split()[1]), dict(
            (name.lower(), value) for name, value in (line.split(": ", 1) for line in lines[1:]))

    def get(self, url, *options):
        done = self.run_client("curl", "-sS", *options, url)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def test_it_is_short_and_without_warnings(self):
        with open(ExampleServer.config) as f:
            lines = f.read().splitlines()
        self.assertLessEqual(len(lines), LINES_MAX)
        self.assertLessEqual(max(map(len, lines)), 100)
        self.assertNotRegex(self.world.errors(),
                            r"(?m)nightjar: (?:warning|error): \S+\.conf:(?!.*overridden by --)")

    def test_a_reload(self):
        version = self.limits()["version"]
        self.server.signal(signal.SIGHUP)
        until("it is read", lambda: self.limits()["version"] > version)


PACKAGE = "pool/main/h/hello/hello_1.0_all.deb"


def debian_files(folder):
    """A package, and the indexes of a repository that has it."""
    arch = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True,
                          text=True).stdout.strip()
    root = os.path.join(folder, "package")
    os.makedirs(os.path.join(root, "DEBIAN"))
    control = ("Package: hello\nVersion: 1.0\nArchitecture: all\n"
               "Maintainer: N <n@example.org>\nDescription: hello\n")
    with open(os.path.join(root, "DEBIAN/control"), "w") as f:
        f.write(control)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", root, f"{folder}/hello.deb"],
                   check=True, capture_output=True)
    with open(f"{folder}/hello.deb", "rb") as f:
        deb = f.read()
    index = (f"{control}Filename: {PACKAGE}\nSize: {len(deb)}\n"
             f"SHA256: {hashlib.sha256(deb).hexdigest()}\n").encode()
    packed = gzip.compress(index)
    sums = "".join(f" {hashlib.sha256(data).hexdigest()} {len(data)} main/binary-{arch}/{name}\n"
                   for name, data in (("Packages", index), ("Packages.gz", packed)))
    release = (f"Suite: stable\nCodename: stable\nArchitectures: {arch}\nComponents: main\n"
               f"SHA256:\n{sums}")
    return deb, {f"mirror/debian/{PACKAGE}": deb, "mirror/debian/dists/stable/Release": release,
                 f"mirror/debian/dists/stable/main/binary-{arch}/Packages.gz": packed}


class Mirror(ExampleCase):
    name = "mirror.conf"
    hosts = ("deb.example.org",)

    @classmethod
    def prepare(cls):
        cls.deb, cls.files = debian_files(cls.world.scratch)
        super().prepare()

    def apt(self, *command):
        done = self.run_client(
            "apt-get", "-q", "-o", f"Dir::Etc::SourceList={self.world.scratch}/sources.list",
            "-o", "Dir::Etc::SourceParts=/dev/null", "-o", f"Dir::State={self.world.scratch}/state",
            "-o", f"Dir::Cache={self.world.scratch}/cache", "-o", "APT::Sandbox::User=root",
            "-o", f"Dir::State::status={self.world.scratch}/status", *command)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertNotIn("Err:", done.stdout)

    def test_apt(self):
        with open(f"{self.world.scratch}/sources.list", "w") as f:
            f.write("deb [trusted=yes] http://deb.example.org/debian stable main\n")
        open(f"{self.world.scratch}/status", "w").close()
        for name in ("state/lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(self.world.scratch, name))
        self.apt("update")
        self.apt("install", "--download-only", "-y", "hello")
        got = glob.glob(f"{self.world.scratch}/cache/archives/hello_*.deb")
        self.assertEqual(1, len(got))
        with open(got[0], "rb") as f:
            self.assertEqual(self.deb, f.read())

    def test_fields(self):
        debian = "http://deb.example.org/debian"
        status, fields = self.ask(f"{debian}/{PACKAGE}")
        self.assertEqual((200, "public, max-age=31536000, immutable"),
                         (status, fields["cache-control"]))
        self.assertEqual("max-age=120",
                         self.ask(f"{debian}/dists/stable/Release")[1]["cache-control"])
        status, fields = self.ask(f"{debian}/pool/x.deb")
        self.assertEqual((302, "https://deb.debian.org/debian/pool/x.deb"),
                         (status, fields["location"]))
        self.assertEqual(404, self.ask(f"{debian}/dists/x")[0])
        self.assertEqual(405, self.ask(f"{debian}/", "-X", "PUT")[0], "of files")
        self.assertIn("pool", self.get(f"{debian}/"))


class Downloads(ExampleCase):
    name = "downloads.conf"
    hosts = ("dl.example.org",)
    files = {"downloads/iso/example-2.iso": 300000 * b"iso", "downloads/nightly/x": "x"}

    def test_clients(self):
        for command in (("curl", "-sSL", "-o"), ("wget", "-nv", "--no-hsts", "-O")):
            done = self.run_client(*command, f"{self.world.scratch}/got",
                                   "http://dl.example.org/latest.iso")
            self.assertEqual(0, done.returncode, done.stderr)
            with open(f"{self.world.scratch}/got", "rb") as f:
                self.assertEqual(self.files["downloads/iso/example-2.iso"], f.read())
        fields = self.ask("http://dl.example.org/iso/example-2.iso")[1]
        self.assertEqual("attachment", fields["content-disposition"])
        self.assertEqual(403, self.ask("http://dl.example.org/nightly/x")[0])
        self.assertEqual(302, self.ask(f"http://{SERVER_ADDR}/nightly/x")[0])

    def test_classes(self):
        now = self.limits()
        self.assertEqual("2", now["class_guest"]["streams"])
        done = self.run_client("h2load", "-n", "20", "-c", "1", "-m", "20",
                               "http://dl.example.org/iso/example-2.iso")
        self.assertIn("requests: 20 total", done.stdout)
        self.assertRegex(done.stdout, r"status codes: [1-9]\d* 2xx, 0 3xx, [1-9]\d* 4xx, 0 5xx")


class Api(ExampleCase):
    name = "api.conf"
    program = "nightjar-examples"
    hosts = ("api.example.org", "docs.example.org")
    files = {"www/index.html": "docs\n"}

    def test_handlers_and_files(self):
        for version in ("--http1.1", "--http2-prior-knowledge"):
            self.assertEqual("127.0.0.1\n",
                             self.get("http://api.example.org/names/127.0.0.1", version))
            self.assertEqual("docs\n", self.get("http://docs.example.org/", version))
            self.assertEqual("Hello from a nightjar.\n",
                             self.get("http://api.example.org/health", version))
            self.assertEqual(405, self.ask("http://api.example.org/names/x", version, "-X",
                                           "DELETE")[0])
        status, fields = self.ask("http://api.example.org/names/127.0.0.1", "-H",
                                  "Origin: https://app.example.org")
        self.assertEqual((200, "https://app.example.org", "no-store"),
                         (status, fields["access-control-allow-origin"], fields["cache-control"]))

    def test_limits(self):
        done = self.run_client("h2load", "-n", "300", "-c", "2", "-m", "10",
                               "http://api.example.org/names/127.0.0.1")
        self.assertRegex(done.stdout, r"status codes: [1-9]\d* 2xx, 0 3xx, [1-9]\d* 4xx, 0 5xx")


class App(ExampleCase):
    name = "app.conf"
    hosts = ("app.example.org", "data.example.org", "example.org")
    certificates = ("example.org",)
    files = {"app/index.html": "app\n", "app/assets/a.js": "a\n", "app/data/x.json": "{}\n"}

    def over_tls(self, path, *options):
        return self.ask(f"https://{path}", "--cacert", self.ca, *options)

    def test_views_and_assets(self):
        for path in ("", "view/of/the/app"):
            self.assertEqual("app\n", self.get(f"https://app.example.org/{path}", "--cacert",
                                               self.ca))
            status, fields = self.over_tls(f"app.example.org/{path}")
            self.assertEqual(200, status)
            self.assertEqual(("no-cache", "max-age=31536000", "nosniff"),
                             tuple(fields[name] for name in (
                                 "cache-control", "strict-transport-security",
                                 "x-content-type-options")))
            self.assertIn("default-src 'self'", fields["content-security-policy"])
        self.assertIn("immutable", self.over_tls("app.example.org/assets/a.js")[1]["cache-control"])
        self.assertEqual(404, self.over_tls("app.example.org/assets/b.js")[0])

    def test_redirects(self):
        for host, location in (("app.example.org", "https://app.example.org/a?b"),
                               ("example.org", "https://app.example.org/")):
            self.assertEqual(location, self.ask(f"http://{host}/a?b")[1]["location"])

    def test_cors(self):
        status, fields = self.over_tls("data.example.org/data/x.json", "-H",
                                       "Origin: https://app.example.org")
        self.assertEqual((200, "https://app.example.org"),
                         (status, fields["access-control-allow-origin"]))
        status, fields = self.over_tls(
            "data.example.org/data/x.json", "-X", "OPTIONS", "-H",
            "Origin: https://app.example.org", "-H", "Access-Control-Request-Method: GET")
        self.assertEqual(204, status)
        self.assertIn("GET", fields["access-control-allow-methods"])


class Sites(ExampleCase):
    name = "sites.conf"
    hosts = certificates = ("example.org", "example.net", "example.com")
    files = {f"{name}/index.html": f"{name}\n" for name in (*hosts, "www")}

    def test_certificates(self):
        for name in self.certificates:
            done = self.world.client(
                "openssl", "s_client", "-connect", f"{SERVER_ADDR}:443", "-servername", name,
                "-CAfile", self.ca, "-verify_return_error", "-verify_hostname", name,
                stdin=subprocess.DEVNULL)
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertRegex(done.stdout, rf"(?m)^subject=CN ?= ?{name}$")
            self.assertEqual(f"{name}\n", self.get(f"https://{name}/", "--cacert", self.ca))
            done = self.run_client("wget", "-qO-", "--no-hsts", f"--ca-certificate={self.ca}",
                                   f"https://{name}/")
            self.assertEqual((0, f"{name}\n"), (done.returncode, done.stdout), done.stderr)
            for host in self.certificates:
                self.assertEqual(200 if host == name else 421,
                                 self.ask(f"https://{name}/", "--cacert", self.ca, "-H",
                                          f"Host: {host}")[0])

    def test_rules(self):
        fields = {name: self.ask(f"https://{name}/", "--cacert", self.ca)[1]
                  for name in self.certificates}
        self.assertEqual({"example.org"}, {name for name in fields
                                           if "strict-transport-security" in fields[name]})
        self.assertEqual({"example.net"}, {name for name in fields
                                           if "x-frame-options" in fields[name]})
        for name, status in (("example.org", 301), ("example.net", 301), ("example.com", 200)):
            self.assertEqual(status, self.ask(f"http://{name}/")[0])
        self.assertEqual("https://example.org/a?b",
                         self.ask("http://example.com/old/a?b")[1]["location"])


class Ports(ExampleCase):
    name = "ports.conf"
    hosts = certificates = ("example.org",)
    files = {"example.org/index.htm": "front\n", "iso/x.iso": "image\n", "www/x": "",
             **{f"example.org/errors/{status}.html": f"page {status}\n" for status in (404, 503)}}

    def test_ports_and_pages(self):
        status, fields = self.ask("http://example.org:8080/a?b")
        self.assertEqual((301, "https://example.org:8443/a?b"), (status, fields["location"]))
        for path, text in (("", "front\n"), ("none", "page 404\n"), ("downloads/x.iso", "image\n"),
                           ("downloads/none", "404 Not Found\n")):
            self.assertEqual(text, self.get(f"https://example.org:8443/{path}", "--cacert",
                                            self.ca))


del ExampleCase  # it has no file
