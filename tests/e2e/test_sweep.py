# SPDX-License-Identifier: BSD-3-Clause
"""
Every kind of request, reload and telemetry command, with the system-call filter and Landlock.

The other tests of requests run with sanitizers, where the server has neither. In a checked build a
system call that an lcore or a service thread must not make ends the server (SIGSYS), so that one
pass over all code that may call the system finds it.
"""
import gzip
import os
import re
import signal

from tests.netlab.case import ServerCase
from tests.netlab.certificates import make_certificate
from tests.netlab.world import until

PLAIN_BUILD = "system calls"
POLICY = """
[files]
listing = yes

[class {name}]
path = /folder/
request_rate = 1GiB/s
"""
PARAMETERS = ("", ",0", ",1", ",class0", ",198.18.0.1", ",x")


class Sweep(ServerCase):
    ipv6 = True
    policy = POLICY.format(name="first")

    @classmethod
    def prepare(cls):
        world = cls.world
        cls.log = os.path.join(world.scratch, "access.log")
        cls.certificate = make_certificate(world.scratch, "server", "IP:198.18.0.2")
        world.options += ["--access-log", cls.log, "--addr", "2001:db8::2/64", "--tls-cert",
                          cls.certificate[0], "--tls-key", cls.certificate[1]]
        with open(os.path.join(cls.root, "page.html"), "wb") as f:
            f.write(b"<p>nightjar</p>" * 1000)
        with open(os.path.join(cls.root, "page.html.gz"), "wb") as f:
            f.write(gzip.compress(b"<p>nightjar</p>" * 1000))
        os.utime(os.path.join(cls.root, "one"), (1e9, 1e9))  # asked for below
        for name in ("a", "b", "new"):
            cls.write(f"folder/{name}", 3000)
        cls.write("private", 10)
        os.chmod(os.path.join(cls.root, "private"), 0o600)
        os.symlink("one", os.path.join(cls.root, "inside"))
        os.symlink("/etc/passwd", os.path.join(cls.root, "outside"))

    @classmethod
    def write(cls, name, n):
        path = os.path.join(cls.root, name)
        with open(path + ".new", "wb") as f:
            f.write(os.urandom(n))
        os.rename(path + ".new", path)

    def requests(self, url, *options):
        """A request of each kind, and the status that curl has to get."""
        data = "@" + os.path.join(self.root, "200KiB")
        for path, status, *more in (
                ("index.html", 200), ("", 200), ("empty", 200), ("200KiB", 200), ("10MiB", 200),
                ("one", 200, "-I"), ("one", 204, "-X", "OPTIONS"), ("one", 405, "-d", "x"),
                ("one", 405, "-T", data[1:]), ("one", 405, "--data-binary", data),
                ("one", 405, "-X", "DELETE"), ("10MiB", 206, "-r", "5-9"),
                ("10MiB", 206, "-r", "0-9,100-200,-5"), ("10MiB", 416, "-r", "99999999-"),
                ("one", 304, "-H", "If-None-Match: *"), ("one", 412, "-H", 'If-Match: "x"'),
                ("one", 304, "-H", "If-Modified-Since: Sun, 09 Sep 2001 01:46:40 GMT"),
                ("page.html", 200, "-H", "Accept-Encoding: gzip"), ("folder/", 200),
                ("folder/", 200, "-H", "Accept: application/json"), ("folder", 301),
                ("nothing", 404), ("nothing/at/all", 404), ("one/more", 404), ("private", 403),
                ("outside", 404), ("inside", 200), ("%zz", 400), ("one?query", 200),
                ("x" * 6000, 414), ("one", 200, "-H", "Expect: 100-continue")):
            with self.subTest(path=path[:20], more=more):
                got = self.curl(*options, "--path-as-is", "-o", os.devnull, "-w", "%{http_code}",
                                *more, url + path)
                self.assertIn(got, {str(status), *(("403", "404") if status in (403, 404) else ())})

    def commands(self):
        return [name for name in self.server.telemetry("/") if not re.search(r"stop|start", name)]

    def lines_of_log(self):
        with open(self.log, "rb") as f:
            return f.read().count(b"\n")

    def test_every_kind(self):
        tls = ("--cacert", self.certificate[0])
        one = self.world.url("/one")
        until("a date of the file, on each lcore", lambda: all(
            "last-modified" in self.curl("-I", one) for _ in range(20)))
        for url, options in ((self.world.url("/"), ()), ("https://198.18.0.2/", tls),
                             ("http://[2001:db8::2]/", ("-g",))):
            self.requests(url, *options)
        # Connections that end in other ways, and packets without one.
        client = self.client()
        client.h2.reset_stream(client.request("/10MiB"))
        client.flush()
        client.close()
        for data in (b"", b"GET / HTTP/1.1\r\n\r\n", os.urandom(100)):
            for port in (80, 443):
                with self.world.connect(port=port) as sock:
                    sock.sendall(data)
        self.world.client("ping", "-c2", "-i0.2", "198.18.0.2")
        self.world.client("ping", "-c2", "-i0.2", "2001:db8::2")
        # Files and folders that come and go.
        for name in ("new", "folder/new", "large"):
            self.write(name, 20 << 20 if name == "large" else 5000)
            until(f"the new {name}", lambda: self.curl("-o", os.devnull, "-w", "%{size_download}",
                                                       self.world.url("/" + name)) ==
                  str(os.path.getsize(os.path.join(self.root, name))))
            os.unlink(os.path.join(self.root, name))
        # Reloads and the rotation of the log.
        for name in ("second", "third"):
            self.change_policy(POLICY.format(name=name))
        self.read_policy("[nonsense\n")
        until("the error of the policy", lambda: "policy.conf:1" in self.world.errors())
        self.change_policy(POLICY.format(name="fourth"))
        os.rename(self.log, self.log + ".1")
        self.server.signal(signal.SIGUSR1)
        until("the new log", lambda: os.path.exists(self.log))
        self.curl("-o", os.devnull, self.world.url("/200KiB"))
        until("a line in the new log", lambda: self.lines_of_log() > 0)
        # Every telemetry command, with parameters of several kinds.
        for command in self.commands():
            for parameters in PARAMETERS:
                self.server.telemetry(command + parameters)
        self.requests(self.world.url("/"))
        self.assertNotIn("SIGSYS", self.world.errors())
