# SPDX-License-Identifier: BSD-3-Clause
"""
HTTP/1.1 with the programs that fetch files: package managers, download tools, load generators, and
the standard clients of languages. What they get is compared byte for byte.
"""
import hashlib
import json
import os
import random
import shutil
import subprocess
import tarfile
import zipfile

from tests.clients.acme import Acme
from tests.clients.case import Clients
from tests.clients.programs import NAME
from tests.netlab.limits import time_limit
from tests.netlab.world import REPO, SERVER_ADDR

A_YEAR_S = 365 * 86400


def run(*command, **more):
    subprocess.run(command, check=True, timeout=time_limit(), capture_output=True, **more)


def make_old(folder):
    """As rsync -t makes a mirror: mtimes of long ago, and ctimes of now."""
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            then = os.stat(path).st_mtime - A_YEAR_S
            os.utime(path, (then, then))


class Languages(Clients):
    def fetched_by(self, name, *command):
        script = os.path.join(REPO, "tests", "clients", command[-1])
        for url in self.urls():
            with self.subTest(url=url):
                before = self.server.stats()["conn_h1"]
                out = self.client(*command[:-1], script, self.ca, url, *self.sums)
                self.assertEqual(sorted([name, sha256, "HTTP/1.1"]
                                        for name, sha256 in self.sums.items()),
                                 sorted(line.split() for line in out.splitlines()))
                self.assertEqual(1, self.server.stats()["conn_h1"] - before)
                self.passed(name, url)

    def test_go(self):
        self.fetched_by("Go", "go", "run", "fetch_h1.go")

    def test_java(self):
        self.fetched_by("Java", "java", "FetchH1.java")

    def test_perl(self):
        self.fetched_by("Perl HTTP::Tiny", "perl", "fetch_h1.pl")

    def test_ruby(self):
        self.fetched_by("Ruby Net::HTTP", "ruby", "fetch_h1.rb")

    def test_requests(self):
        self.fetched_by("Python requests", "/usr/bin/python3", "fetch_requests.py")

    def test_http_client(self):
        self.fetched_by("Python http.client", "/usr/bin/python3", "fetch_http_client.py")


class Load(Clients):
    def test_ab(self):
        for url in self.urls():
            for how in (("-k",), ()):
                with self.subTest(url=url, how=how):
                    out = self.client("ab", "-q", "-n", "500", "-c", "10", *how, url + "small")
                    self.assertRegex(out, r"Complete requests: +500\n")
                    self.assertRegex(out, r"Failed requests: +0\n")
                    self.assertNotIn("Non-2xx", out)
                    if how:
                        self.assertRegex(out, r"Keep-Alive requests: +500\n")
                    self.passed("ab", url)

    def test_wrk(self):
        for url in self.urls():
            with self.subTest(url=url):
                out = self.client("wrk", "-t1", "-c10", "-d1s", url + "16KiB-1")
                self.assertRegex(out, r"[1-9]\d* requests in")
                self.assertNotIn("Socket errors", out)
                self.assertNotIn("Non-2xx", out)
                self.passed("wrk", url)


class Git(Clients):
    @classmethod
    def prepare(cls):
        super().prepare()
        work, bare = os.path.join(cls.world.scratch, "work"), os.path.join(cls.root, "repo.git")
        as_one = ("-c", "user.name=a", "-c", "user.email=a@nightjar.test", "-c",
                  "init.defaultBranch=main")
        run("git", *as_one, "init", "-q", work)
        for i in range(30):
            with open(os.path.join(work, f"file{i % 7}"), "wb") as f:
                f.write(random.Random(i).randbytes(20_000))
            run("git", "-C", work, *as_one, "add", ".")
            run("git", "-C", work, *as_one, "commit", "-q", "-m", f"commit {i}")
        run("git", "clone", "-q", "--bare", work, bare)
        run("git", "-C", bare, "update-server-info")
        cls.head = subprocess.run(["git", "-C", work, "rev-parse", "HEAD"], check=True, text=True,
                                  capture_output=True).stdout.strip()

    def test_clone(self):
        for number, url in enumerate(self.urls()):
            with self.subTest(url=url):
                to = self.path(f"clone{number}")
                self.client("git", "-c", "http.version=HTTP/1.1", "clone", "-q", url + "repo.git",
                            to, env={"GIT_SSL_CAINFO": self.ca})
                self.assertEqual(self.head,
                                 self.client("git", "-C", to, "rev-parse", "HEAD").strip())
                self.client("git", "-C", to, "fsck", "--strict")
                self.passed("git", url)


class Pip(Clients):
    """The simple index (PEP 503) with a wheel."""

    @classmethod
    def prepare(cls):
        super().prepare()
        folder = os.path.join(cls.root, "simple", "nightjar-sample")
        os.makedirs(folder)
        cls.wheel = "nightjar_sample-1.0-py3-none-any.whl"
        info = "nightjar_sample-1.0.dist-info"
        with zipfile.ZipFile(os.path.join(folder, cls.wheel), "w") as wheel:
            wheel.writestr("nightjar_sample.py", "VALUE = 7\n" * 20_000)
            wheel.writestr(f"{info}/METADATA",
                           "Metadata-Version: 2.1\nName: nightjar-sample\nVersion: 1.0\n")
            wheel.writestr(f"{info}/WHEEL",
                           "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
        with open(os.path.join(folder, cls.wheel), "rb") as f:
            sha256 = hashlib.sha256(f.read()).hexdigest()
        with open(os.path.join(folder, "index.html"), "w") as f:
            f.write(f'<!DOCTYPE html><a href="{cls.wheel}#sha256={sha256}">{cls.wheel}</a>\n')

    def test_download(self):
        for number, url in enumerate(self.urls()):
            with self.subTest(url=url):
                to = self.path(f"wheels{number}")
                self.client("/usr/bin/python3", "-m", "pip", "download", "-q", "--no-cache-dir",
                            "--disable-pip-version-check", "--index-url", url + "simple/",
                            # Without TLS pip asks for this; with it, it would not check the CA.
                            *(("--trusted-host", SERVER_ADDR) if url.startswith("http:") else ()),
                            "--cert", self.ca, "-d", to, "nightjar-sample",
                            env={"REQUESTS_CA_BUNDLE": self.ca})  # it wins over --cert
                self.assert_same(self.site("simple", "nightjar-sample", self.wheel),
                                 os.path.join(to, self.wheel))
                self.passed("pip", url)


class Apt(Clients):
    """A mirror of Debian with a binary package and a source package."""

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.mirror = os.path.join(cls.root, "debian")
        cls.pool = os.path.join(cls.mirror, "pool")
        tree = os.path.join(cls.world.scratch, "njsample-1.0")
        os.makedirs(os.path.join(tree, "DEBIAN"))
        os.makedirs(os.path.join(tree, "usr/share/njsample"))
        os.makedirs(cls.pool)
        with open(os.path.join(tree, "DEBIAN/control"), "w") as f:
            f.write("Package: njsample\nVersion: 1.0\nArchitecture: all\nSection: misc\n"
                    "Priority: optional\nMaintainer: A <a@nightjar.test>\nDescription: sample\n")
        with open(os.path.join(tree, "usr/share/njsample/data"), "wb") as f:
            f.write(random.Random(1).randbytes(3_000_000))
        cls.deb = "njsample_1.0_all.deb"
        run("dpkg-deb", "--build", tree, os.path.join(cls.pool, cls.deb))
        cls.make_source()
        for folder, what, name in (("binary-amd64", "packages", "Packages"),
                                   ("source", "sources", "Sources")):
            index = os.path.join(cls.mirror, "dists/test/main", folder)
            os.makedirs(index)
            with open(os.path.join(index, name), "wb") as f:
                f.write(subprocess.run(["apt-ftparchive", what, "pool"], cwd=cls.mirror, check=True,
                                       capture_output=True).stdout)
            run("gzip", "-kn", os.path.join(index, name))
        release = subprocess.run(
            ["apt-ftparchive", "-o", "APT::FTPArchive::Release::Suite=test", "-o",
             "APT::FTPArchive::Release::Components=main", "-o",
             "APT::FTPArchive::Release::Architectures=amd64", "release", "dists/test"],
            cwd=cls.mirror, check=True, capture_output=True).stdout
        with open(os.path.join(cls.mirror, "dists/test/Release"), "wb") as f:
            f.write(release)
        make_old(cls.mirror)

    @classmethod
    def make_source(cls):
        """A package of format 1.0 without an upstream tarball."""
        tree = os.path.join(cls.world.scratch, "source", "njsample")
        os.makedirs(os.path.join(tree, "debian/source"))
        for name, text in (
                ("debian/control", "Source: njsample\nMaintainer: A <a@nightjar.test>\n\n"
                                   "Package: njsample\nArchitecture: all\nDescription: sample\n"),
                ("debian/changelog", "njsample (1.0) test; urgency=low\n\n  * sample\n\n"
                                     " -- A <a@nightjar.test>  Thu, 01 Jan 2026 00:00:00 +0000\n"),
                ("debian/source/format", "3.0 (native)\n"),
                ("debian/rules", "#!/usr/bin/make -f\n"),
                ("data", "text\n" * 50_000)):
            with open(os.path.join(tree, name), "w") as f:
                f.write(text)
        run("dpkg-source", "-b", tree, cwd=os.path.dirname(tree))
        for name in os.listdir(os.path.dirname(tree)):
            if name != "njsample":
                shutil.move(os.path.join(os.path.dirname(tree), name), cls.pool)

    def apt(self, number, url, *command):
        """apt-get with folders of its own, as root, in a folder where it may write."""
        base = self.path(f"apt{number}")
        for folder in ("etc/apt.conf.d", "etc/preferences.d", "state/lists/partial",
                       "cache/archives/partial", "work"):
            os.makedirs(os.path.join(base, folder), exist_ok=True)
        with open(os.path.join(base, "etc/sources.list"), "w") as f:
            for kind in ("deb", "deb-src"):
                f.write(f"{kind} [trusted=yes arch=amd64] {url}debian test main\n")
        with open(os.path.join(base, "state/status"), "a"):
            pass
        settings = {"Dir::Etc": base + "/etc", "Dir::State": base + "/state",
                    "Dir::Cache": base + "/cache", "Dir::State::status": base + "/state/status",
                    "APT::Architecture": "amd64", "APT::Architectures": "amd64",
                    "APT::Sandbox::User": "root", "Acquire::https::CAInfo": self.ca,
                    "Acquire::Languages": "none"}
        return self.client("apt-get", "-q", *(word for item in settings.items()
                                              for word in ("-o", "=".join(item))),
                           *command, cwd=base + "/work")

    def test_update_download_source(self):
        self.wait_for_date("/debian/dists/test/Release")  # apt knows a file by nothing else
        for number, url in enumerate(self.urls()):
            with self.subTest(url=url):
                self.apt(number, url, "update")
                self.mark_log()
                self.assertRegex(self.apt(number, url, "update"), r"Hit:\d+ \S+ test Release\n")
                self.assertIn(304, [record["status"] for record in self.new_records()])
                self.apt(number, url, "download", "njsample")
                self.apt(number, url, "source", "--download-only", "njsample")
                work = self.path(f"apt{number}/work")
                self.assertEqual(["njsample_1.0.dsc", "njsample_1.0.tar.xz", self.deb],
                                 sorted(os.listdir(work)))
                for name in os.listdir(work):
                    self.assert_same(os.path.join(self.pool, name), os.path.join(work, name))
                self.passed("apt", url)


class Npm(Clients):
    """The metadata of a package, and its tarball."""

    @classmethod
    def prepare(cls):
        super().prepare()
        folder = os.path.join(cls.root, "npm")
        os.mkdir(folder)
        tree = os.path.join(cls.world.scratch, "npm-package")
        os.mkdir(tree)
        with open(os.path.join(tree, "package.json"), "w") as f:
            json.dump({"name": "njsample", "version": "1.0.0"}, f)
        with open(os.path.join(tree, "data"), "wb") as f:
            f.write(random.Random(2).randbytes(300_000))
        with tarfile.open(os.path.join(folder, "njsample-1.0.0.tgz"), "w:gz") as tar:
            tar.add(tree, "package")
        with open(os.path.join(folder, "njsample-1.0.0.tgz"), "rb") as f:
            shasum = hashlib.sha1(f.read()).hexdigest()
        for scheme in ("http", "https"):  # the metadata has the URL of the tarball
            dist = {"tarball": f"{scheme}://{SERVER_ADDR}/npm/njsample-1.0.0.tgz",
                    "shasum": shasum}
            os.mkdir(os.path.join(folder, scheme))
            with open(os.path.join(folder, scheme, "njsample"), "w") as f:
                json.dump({"name": "njsample", "dist-tags": {"latest": "1.0.0"}, "versions": {
                    "1.0.0": {"name": "njsample", "version": "1.0.0", "dist": dist}}}, f)

    def test_install(self):
        for url in self.urls():
            with self.subTest(url=url):
                scheme = url.partition(":")[0]
                to = self.path("npm-" + scheme)
                os.mkdir(to)
                self.client("npm", "install", "--no-audit", "--no-fund", "--no-update-notifier",
                            "--cache", self.path("npm-cache-" + scheme), "--cafile", self.ca,
                            "--registry", f"{url}npm/{scheme}/", "njsample@1.0.0", cwd=to)
                self.assert_same(self.path("npm-package/data"),
                                 os.path.join(to, "node_modules/njsample/data"))
                self.passed("npm", url)


class Registry(Clients):
    """A static tree of a registry of containers, from which skopeo copies an image."""

    options = ("--default-type", "application/vnd.oci.image.manifest.v1+json")

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.image = os.path.join(cls.root, "v2", "sample")
        for folder in ("blobs", "manifests"):
            os.makedirs(os.path.join(cls.image, folder))
        with open(os.path.join(cls.root, "v2", "index.html"), "w") as f:
            f.write("{}")
        layer = cls.blob(random.Random(3).randbytes(2_000_000))
        config = cls.blob(json.dumps({
            "architecture": "amd64", "os": "linux", "config": {},
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}).encode())
        kind = "application/vnd.oci.image."
        cls.manifest = json.dumps({
            "schemaVersion": 2, "mediaType": kind + "manifest.v1+json",
            "config": config | {"mediaType": kind + "config.v1+json"},
            "layers": [layer | {"mediaType": kind + "layer.v1.tar"}]}).encode()
        digest = "sha256:" + hashlib.sha256(cls.manifest).hexdigest()
        for name in ("latest", digest):
            with open(os.path.join(cls.image, "manifests", name), "wb") as f:
                f.write(cls.manifest)
        cls.layer = layer["digest"]

    @classmethod
    def blob(cls, data):
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        with open(os.path.join(cls.image, "blobs", digest), "wb") as f:
            f.write(data)
        return {"digest": digest, "size": len(data)}

    def test_skopeo(self):
        certs = self.path("certs")
        os.mkdir(certs)
        shutil.copy(self.ca, os.path.join(certs, "ca.crt"))
        for number, url in enumerate(self.urls()):
            with self.subTest(url=url):
                to = self.path(f"image{number}")
                how, port = (("--src-cert-dir", certs), 443) if url.startswith("https:") else \
                    (("--src-tls-verify=false",), 80)
                self.client("skopeo", "--insecure-policy", "copy", "-q", "--preserve-digests", *how,
                            f"docker://{SERVER_ADDR}:{port}/sample:latest", "dir:" + to)
                self.assert_same(os.path.join(self.image, "blobs", self.layer),
                                 os.path.join(to, self.layer.removeprefix("sha256:")))
                with open(os.path.join(to, "manifest.json"), "rb") as f:
                    self.assertEqual(self.manifest, f.read())
                self.passed("skopeo", url)


class Dehydrated(Clients):
    """The client of an authority proves by a file of the site that it has the name (HTTP-01)."""

    def test_http_01(self):
        self.mark_log()
        base = self.path("dehydrated")
        well_known = self.site(".well-known", "acme-challenge")
        for folder in (base, well_known):
            os.makedirs(folder)
        acme = Acme(self.world.client_ns, self.authority, NAME)
        self.addCleanup(acme.close)
        with open(os.path.join(base, "config"), "w") as f:
            f.write(f'CA="{acme.url}directory"\nBASEDIR="{base}"\nWELLKNOWN="{well_known}"\n'
                    'KEY_ALGO=prime256v1\nCURL_OPTS="--noproxy *"\n')
        command = ("dehydrated", "--config", os.path.join(base, "config"))
        self.client(*command, "--register", "--accept-terms")
        self.client(*command, "--cron", "--domain", NAME)
        self.assertEqual([(200, 11, True)], acme.fetched)
        self.passed("dehydrated (HTTP-01)", "http:")
        out = self.client("openssl", "verify", "-CAfile", self.ca,
                          os.path.join(base, "certs", NAME, "cert.pem"))
        self.assertIn(": OK", out)
