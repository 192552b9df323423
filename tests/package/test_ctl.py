# SPDX-License-Identifier: BSD-3-Clause
"""
nightjar ctl: its arguments, how it finds the server, how it shows answers, and what it says to
those that are wrong. The server is a small one of the test; e2e/test_ctl.py has a real one.
"""
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest

from tests.package.prefix import BUILD, run

PROGRAM = os.path.join(BUILD, "app/nightjar/nightjar")
OK, REFUSED, USAGE, UNREACHABLE = range(4)
LIMITS = {"version": 3, "server": {"rate": "10MiB/s"},
          "classes": [{"name": "default"}, {"name": "video", "rate": "5MiB/s", "streams": "4"}]}


def head(status, body, more=""):
    return (f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n{more}\r\n").encode() + body


def answer(value, status=200):
    return head(status, json.dumps(value).encode())


class Fake:
    """Accepts connections at a Unix socket. Answers each request by `answers` {"GET /path": bytes,
    or a function that returns them}, 404 for others; None: no answer. `requests` has what was
    asked, with the body."""

    def __init__(self, path, answers):
        self.path, self.answers, self.requests, self.open = path, answers, [], []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.open.append(connection)
            threading.Thread(target=self.converse, args=(connection,), daemon=True).start()

    def converse(self, connection):
        try:
            self.answer(connection)
        except OSError:  # it was closed
            pass

    def answer(self, connection):
        data = b""
        while True:
            more = connection.recv(65536)
            if not more:
                return
            data += more
            if b"\r\n\r\n" not in data:
                continue
            top, _, body = data.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: *(\d+)", top)
            if length and len(body) < int(length[1]):
                continue
            target = " ".join(top.decode().split()[:2])
            self.requests.append((target, body.decode()))
            data = b""
            reply = self.answers.get(target, answer({"error": "no such thing"}, 404))
            if callable(reply):
                reply = reply()
            if reply is None:
                continue
            connection.sendall(reply)
            if b"Content-Length" not in reply:
                connection.shutdown(socket.SHUT_RDWR)
                return

    def close(self):
        """Another one may have the path then."""
        if self.listener.fileno() < 0:
            return
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        os.unlink(self.path)
        for connection in self.open:
            connection.close()


class CtlCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="nj-ctl-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.chmod(self.folder, 0o755)

    def fake(self, answers, name="nightjar.sock"):
        fake = Fake(os.path.join(self.folder, name), answers)
        self.addCleanup(fake.close)
        return fake

    def ctl(self, *arguments, expected=OK, **more):
        """(standard output, standard error)"""
        done = subprocess.run([PROGRAM, "ctl", "--socket", self.folder, *arguments],
                              capture_output=True, text=True, timeout=60, **more)
        self.assertEqual(expected, done.returncode, done.stdout + done.stderr)
        if expected:
            self.assertRegex(done.stderr, "^nightjar ctl: ")
        return done.stdout, done.stderr

    def fails(self, status, pattern, *arguments, **more):
        out, errors = self.ctl(*arguments, expected=status, **more)
        self.assertEqual("", out)
        self.assertRegex(errors, pattern)


class Linking(unittest.TestCase):
    def test_only_this_program_needs_libcurl(self):
        """A server would load what libcurl needs, which is much."""
        def needs(name):
            return "libcurl" in run("readelf", "-d", os.path.join(BUILD, name))
        self.assertTrue(needs("app/nightjar/nightjar-ctl"))
        self.assertFalse(needs("app/nightjar/nightjar") or needs("lib/libnightjar.so"))


class Arguments(CtlCase):
    def test_help(self):
        text = run(PROGRAM, "ctl", "--help")
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        for word in ("status", "limits", "reload", "--socket", "--timeout", "Exit status"):
            self.assertIn(word, text)

    def test_usage(self):
        self.fails(USAGE, "COMMAND: expected one")
        self.fails(USAGE, "stat: there is no such command", "stat")
        self.fails(USAGE, "--sockets: there is no such option", "--sockets", "x", "status")
        self.fails(USAGE, "--timeout: expected a value", "status", "--timeout")
        self.fails(USAGE, "now: unexpected argument", "reload", "now")
        for value in ("0", "x", "1s", "-1", "86401", "nan"):
            self.fails(USAGE, "expected a number of seconds", "--timeout", value, "status")

    def test_parameters_are_checked(self):
        self.fake({})
        self.fails(USAGE, "a name or parameter has letters", "get", "stats#x")
        self.fails(USAGE, "a name or parameter has letters", "clients", "limit=1 HTTP/1.0\r\n")
        self.fails(USAGE, "too long", "get", "x" * 500)
        self.fails(USAGE, "too long", "limits", "x" * 5000)

    def test_standard_output_is_full(self):
        self.fake({"GET /metrics": head(200, b"up 1\n")})
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([PROGRAM, "ctl", "--socket", self.folder, "metrics"],
                                  stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(REFUSED, done.returncode)
        self.assertIn("standard output", done.stderr)


class Finding(CtlCase):
    VERSION = {"GET /version": answer({"version": "0.1.0"})}

    def test_the_socket_with_the_name(self):
        self.fake(self.VERSION)
        self.fake({}, "other.sock")
        self.assertIn("0.1.0", self.ctl("version")[0])

    def test_the_only_socket(self):
        """Those of an upgrade and of other programs have other names."""
        self.fake(self.VERSION, "nightjar@a.sock")
        self.fake({}, "upgrade")
        with open(os.path.join(self.folder, "file.sock"), "w", encoding="ascii"):
            pass
        self.assertIn("0.1.0", self.ctl("version")[0])

    def test_several(self):
        self.fake({}, "a.sock")
        self.fake({}, "b.sock")
        self.fails(UNREACHABLE, r"several servers: --socket PATH names one of \S+/a\.sock "
                   r"\S+/b\.sock", "version")

    def test_none(self):
        self.fails(UNREACHABLE, f"no server was found: there is no socket in {self.folder}",
                   "version")
        path = os.path.join(self.folder, "none")
        self.fails(UNREACHABLE, f"{path}: No such file or directory: does the server run",
                   "--socket", path, "version")
        self.fails(UNREACHABLE, "the path of a socket has 1 to 107 bytes", "--socket", "/" * 108 +
                   "x", "version")

    def test_no_socket(self):
        path = os.path.join(self.folder, "file")
        with open(path, "w", encoding="ascii"):
            pass
        self.fails(UNREACHABLE, "this is no socket", "--socket", path, "version")

    def test_nobody_listens(self):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.join(self.folder, "nightjar.sock"))
        listener.close()
        self.fails(UNREACHABLE, "no server accepts connections there", "version")

    @unittest.skipUnless(os.geteuid() == 0, "no root")
    def test_permission_denied(self):
        """Copies of the program, which other users can run."""
        path = os.path.join(self.folder, "nightjar.sock")
        self.fake(self.VERSION)
        os.chmod(path, 0o660)
        program = os.path.join(self.folder, "nightjar-ctl")
        shutil.copy(os.path.join(os.path.dirname(PROGRAM), "nightjar-ctl"), program)
        os.chmod(program, 0o755)

        def version():
            return subprocess.run([program, "--socket", self.folder, "version"], user=65534,
                                  group=65534, extra_groups=[], capture_output=True, text=True,
                                  timeout=60)
        done = version()
        self.assertEqual(UNREACHABLE, done.returncode)
        self.assertIn("permission denied: use sudo, or join the group root", done.stderr)
        os.chmod(path, 0o666)
        self.assertEqual(OK, version().returncode)

    def test_the_program_is_missing(self):
        program = os.path.join(self.folder, "nightjar")
        shutil.copy(PROGRAM, program)
        library = os.path.join(BUILD, "lib")
        done = subprocess.run([program, "ctl", "version"], capture_output=True, text=True,
                              env=os.environ | {"LD_LIBRARY_PATH": library}, timeout=60)
        self.assertEqual(UNREACHABLE, done.returncode)
        self.assertIn(f"cannot run {program}-ctl: No such file", done.stderr)


class Answers(CtlCase):
    def test_no_answer_in_time(self):
        self.fake({"GET /metrics": None})
        self.fails(UNREACHABLE, "did not answer within 0.05 s", "--timeout", "0.05", "metrics")

    def test_an_answer_without_an_end(self):
        self.fake({"GET /metrics": head(200, b"up 1\n").replace(b": 5", b": 6")})
        self.fails(UNREACHABLE, "did not answer within 0.05 s", "--timeout", "0.05", "metrics")

    def test_garbage(self):
        for garbage in (b"\0\1\2\3\r\n\r\n", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 abc\r\n\r\n",
                        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", b"x" * 300000):
            with self.subTest(garbage=garbage[:30]):
                fake = self.fake({"GET /metrics": garbage})
                self.fails(UNREACHABLE, "this is no answer of nightjar", "--timeout", "20",
                           "metrics")
                fake.close()

    def test_no_object_of_json(self):
        for body in (b"", b"ok\n", b"[]", b"3", b'{"a":1,"a":2}', b'{"a":', b'{"a":"\xff"}'):
            with self.subTest(body=body):
                fake = self.fake({"GET /api/v1/stats": head(200, body)})
                self.fails(UNREACHABLE, "the answer is no object of JSON", "get", "stats")
                fake.close()

    def test_forms_that_are_not_expected(self):
        """Nothing breaks if members are absent or of another type."""
        for value in ({}, {"classes": 3}, {"classes": [3, None, "x", []]},
                      {"classes": [{"name": 3, "bytes": "x", "open": None}]},
                      {"classes": {"a": []}}):
            with self.subTest(value=value):
                fake = self.fake({"GET /api/v1/classes": answer(value),
                                  "GET /api/v1/limits": answer(value)})
                self.ctl("classes")
                self.ctl("limits")
                self.ctl("get", "classes")
                fake.close()

    def test_reasons(self):
        fake = self.fake({"POST /api/v1/reload": answer({"ok": False, "errors": [
            "policy:3: rat: there is no such key", "policy:7: \x1b[31m"]}, 422),
                          "POST /api/v1/limits": answer({"error": "class=x: no such class"}, 422),
                          "GET /api/v1/stats": head(500, b"out of memory\nmore"),
                          "GET /api/v1/files": head(503, b"")})
        self.fails(REFUSED, "policy:3: rat: there is no such key\nnightjar ctl: "
                   r"policy:7: \?\[31m\n$", "reload")
        self.fails(REFUSED, "class=x: no such class", "limits", "class=x", "rate=1MiB/s")
        self.assertIn(("POST /api/v1/limits", "class=x,rate=1MiB/s"), fake.requests)
        self.fails(REFUSED, r"the server answers 500: out of memory\n$", "get", "stats")
        self.fails(REFUSED, "the server answers 503", "get", "files")
        self.fails(REFUSED, "no such thing", "get", "none")

    def test_a_proxy_of_the_environment_is_not_used(self):
        self.fake({"GET /metrics": head(200, b"up 1\n")})
        out, _ = self.ctl("metrics", env=os.environ | {"http_proxy": "http://127.0.0.1:9",
                                                       "ALL_PROXY": "socks5://127.0.0.1:9"})
        self.assertEqual("up 1\n", out)

    def test_a_redirect_is_not_followed(self):
        fake = self.fake({"GET /metrics": head(302, b"", "Location: /other\r\n")})
        self.fails(REFUSED, "302", "metrics")
        self.assertEqual([("GET /metrics", "")], fake.requests)


class Output(CtlCase):
    def test_limits(self):
        fake = self.fake({"GET /api/v1/limits": answer(LIMITS),
                          "POST /api/v1/limits": answer(LIMITS)})
        lines = self.ctl("limits")[0].splitlines()
        self.assertEqual([["name", "rate", "streams"], ["(server)", "10MiB/s", "-"],
                          ["default", "-", "-"], ["video", "5MiB/s", "4"]],
                         [line.split() for line in lines])
        self.assertEqual(LIMITS, json.loads(self.ctl("--json", "limits", "rate=none")[0]))
        self.assertIn(("POST /api/v1/limits", "rate=none"), fake.requests)

    def test_columns_are_aligned(self):
        self.fake({"GET /api/v1/classes": answer({"classes": [
            {"name": "gr\u00fc\u00df", "open": 3, "bytes": 1536, "bytes_per_s": 5 << 30,
             "throttled_ms": 1500},
            {"name": "a\x1b[1m\x9b", "open": 12345, "bytes": 0}]})})
        top, first, second = self.ctl("classes")[0].splitlines()
        self.assertNotRegex(second, "[\x1b\x9b]")
        self.assertEqual(top.index("open") + 4, first.index(" 3 ") + 2)
        for cell in ("1.5 KiB", "5.0 GiB/s", "1.500 s"):
            self.assertIn(cell, first)
        self.assertEqual(top.index("open") + 4, second.index("12345") + 5)

    def test_get(self):
        value = {"threads": 4, "files": {"max": 2, "done": 7}, "routes": [{"number": 0}],
                 "shards": ["either", "blocking"], "empty": [], "others": True,
                 "pools": [{"name": "tcb", "used": 1}, {"name": "syn", "max": 12}]}
        fake = self.fake({"GET /api/v1/clients?limit=3&by=streams": answer(value),
                          "GET /api/v1": answer({"commands": []})})
        out, _ = self.ctl("get", "clients", "limit=3", "by=streams")
        self.assertEqual(["threads 4", "files", "max 2", "done 7", "routes", "number 0",
                          "shards either, blocking", "empty none", "others yes",
                          "pools", "name used max", "tcb 1 -", "syn - 12"],
                         [" ".join(line.split()) for line in out.splitlines()])
        fake.answers["GET /api/v1/latency"] = answer({"ttfb": {"count": 1, "max_us": 20},
                                                      "total": {"count": 300}})
        self.assertEqual(["count max_us", "ttfb 1 20", "total 300 -"], [
            " ".join(line.split()) for line in self.ctl("get", "latency")[0].splitlines()])
        self.ctl("get")
        self.assertEqual("GET /api/v1", fake.requests[-1][0])

    def test_status(self):
        parts = {"GET /ready": head(503, b"port 0 (net_tap): no link\nlcore 3 does not poll\n"),
                 "GET /version": answer({"version": "0.1.0", "started": "2026-11-30T18:00:00Z"}),
                 "GET /api/v1/problems": answer({"problems": [
                     {"number": 0, "kind": "no-link", "text": "port 0 (net_tap): no link"},
                     {"number": 1, "kind": "lcore-stuck", "text": "lcore 3 does not poll"}]}),
                 "GET /api/v1/addresses": answer({"addresses": [
                     {"number": 0, "address": "198.18.0.2", "prefix": 24, "state": "ready"}]}),
                 "GET /api/v1/port": answer({"ports": [{"number": 0, "device": "net_tap"}]}),
                 "GET /api/v1/shards": answer({"shards": [{"number": 0, "connections": 3}]}),
                 "GET /api/v1/classes": answer({"classes": [{"name": "default", "open": 2}]})}
        fake = self.fake(parts)
        done = subprocess.run([PROGRAM, "ctl", "--socket", self.folder, "status"], text=True,
                              capture_output=True, timeout=60)
        self.assertEqual((REFUSED, ""), (done.returncode, done.stderr))
        for text in ("nightjar 0.1.0, started 2026-11-30T18:00:00Z: NOT READY", "no link",
                     "  lcore 3 does not poll", "3 connections", "2 open", "198.18.0.2", "net_tap",
                     "default"):
            self.assertIn(text, done.stdout)
        fake.answers["GET /ready"] = head(200, b"ready\n")
        fake.answers["GET /api/v1/problems"] = answer({"problems": []})
        self.assertIn(": ready\n", self.ctl("status")[0])
        whole = json.loads(self.ctl("status", "--json")[0])
        self.assertEqual((True, "0.1.0", 3),
                         (whole["ready"], whole["version"], whole["shards"][0]["connections"]))


if __name__ == "__main__":
    unittest.main()
