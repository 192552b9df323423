# SPDX-License-Identifier: BSD-3-Clause
"""The management listener: who may ask what, and what it answers, beside a server that serves."""
import os
import random
import shutil
import socket
import stat
import tempfile
import unittest

from tests.netlab import management
from tests.netlab.case import ServerCase, fill_site
from tests.netlab.h2client import Client
from tests.netlab.world import Failed, Server, World, until, version

PLAIN_BUILD = "rights"
NOBODY = 65534
LOCAL, LOCAL6, ELSEWHERE = ("127.0.0.1", 9180), ("::1", 9180), ("127.0.0.1", 9181)
WRITE, READ = "write-" + 32 * "w", "read-" + 32 * "r"
LOOPBACK_MAX, ADDRESS_MAX = 128, 16  # connections, lib/mgmt/listener.c
SUBSCRIBERS_MAX = 128  # lib/mgmt/events.h
OPEN = ("/health", "/ready")
POLICY = """[limits]
max_headers = 64

[class default]
streams = 90

[log]
access_log = {folder}/access.log

[list local]
file = {folder}/networks

[server]
allow = local
"""


def read_until(s, end):
    data = b""
    while end not in data:
        part = s.recv(65536)
        if not part:
            raise EOFError(data)
        data += part
    return data


def write_token(path, token, mode=0o600):
    with open(path, "w", encoding="ascii") as f:
        f.write(token + "\n")
    os.chmod(path, mode)
    os.chown(path, NOBODY, NOBODY)


class Listener(ServerCase):
    policy = ""
    ipv6 = True
    has_tokens = True

    @classmethod
    def prepare(cls):
        world = cls.world
        world.options += ["--management-listen", "127.0.0.1:9180", "--management-listen",
                          "[::1]:9180", "--management-listen", "0.0.0.0:9181"]
        cls.policy = POLICY.format(folder=world.scratch)
        cls.write_policy(cls.policy)
        with open(f"{world.scratch}/networks", "w", encoding="ascii") as f:
            f.write("198.18.0.0/24\n")
        world.serve_tls()
        world.scheme = "http"
        cls.tokens = {"write": f"{world.scratch}/token", "read": f"{world.scratch}/read-token"}
        if cls.has_tokens:
            write_token(cls.tokens["write"], WRITE)
            write_token(cls.tokens["read"], READ)
            world.options += ["--management-token", cls.tokens["write"],
                              "--management-read-token", cls.tokens["read"]]

    def ask(self, at, method, path, body=None, **headers):
        if at == "unix":
            at = self.world.management
        return management.ask(at, method, path, body, self.world.server_ns, **headers)

    def status(self, *args, **headers):
        return self.ask(*args, **headers).status

    def check_it_serves(self):
        self.assertEqual(200, self.status("unix", "GET", "/health"))
        self.assertEqual(200, self.client().get("/one")[0])


class Tokens(Listener):

    def test_answers(self):
        for at in "unix", LOCAL, LOCAL6:
            with self.subTest(at):
                self.assertEqual("ok\n", self.ask(at, "GET", "/health").text)
                until("it is ready", lambda: self.ask(at, "GET", "/ready").text == "ready\n")
                self.assertEqual(200, self.status(at, "GET", "/ready"))
                answer = self.ask(at, "GET", "/version")
                self.assertEqual("application/json", answer.headers["Content-Type"])
                self.assertEqual(version(), answer.json()["version"])
                self.assertRegex(answer.json()["dpdk"], r"^DPDK \d")
                self.assertRegex(answer.json()["started"], r"^20\d\d-\d\d-\d\dT[\d:]{8}Z$")

    def test_fields(self):
        for path in "/health", "/none", "/version":
            headers = self.ask("unix", "GET", path).headers
            self.assertEqual(("nosniff", "no-store"),
                             (headers["X-Content-Type-Options"], headers["Cache-Control"]))

    def test_the_unix_socket(self):
        status = os.stat(self.world.management)
        self.assertTrue(stat.S_ISSOCK(status.st_mode))
        self.assertEqual((0o660, NOBODY), (status.st_mode & 0o777, status.st_uid))

    def test_methods(self):
        head = self.ask("unix", "HEAD", "/health")
        self.assertEqual((200, "", "3"), (head.status, head.text, head.headers["Content-Length"]))
        for method, path, allowed in (("POST", "/health", "GET, HEAD"),
                                      ("DELETE", "/ready", "GET, HEAD"),
                                      ("GET", "/api/v1/reload", "POST"),
                                      ("OPTIONS", "/api/v1/reload", "POST")):
            with self.subTest(f"{method} {path}"):
                answer = self.ask("unix", method, path)
                self.assertEqual((405, allowed), (answer.status, answer.headers["Allow"]))

    def test_paths(self):
        for path in ("/health/", "//health", "/health%00", "/%68ealth", "/HEALTH",
                     "/api/v1/../../health", "/../../../etc/passwd", "/api/v1/reload/"):
            with self.subTest(path):
                self.assertEqual(404, self.status("unix", "GET", path))

    def test_tokens(self):
        for at in LOCAL, LOCAL6:
            for token, expected in ((WRITE, 200), (READ, 403), ("wrong" + WRITE, 401)):
                with self.subTest(at=at, token=token):
                    self.assertEqual(expected, self.status(at, "POST", "/api/v1/log/reopen",
                                                           token=token))
            answer = self.ask(at, "POST", "/api/v1/log/reopen")
            self.assertEqual((401, 'Bearer realm="nightjar"'),
                             (answer.status, answer.headers["WWW-Authenticate"]))
        self.assertEqual(200, self.status("unix", "POST", "/api/v1/log/reopen"))

    def test_another_address(self):
        for path in OPEN:
            self.assertEqual(200, self.status(ELSEWHERE, "GET", path))
        self.assertEqual(403, self.status(ELSEWHERE, "GET", "/version"))
        self.assertEqual(403, self.status(ELSEWHERE, "POST", "/api/v1/reload", token=WRITE))

    def test_the_page_is_for_those_here(self):
        for at, expected in ("unix", 200), (LOCAL, 200), (ELSEWHERE, 403):
            self.assertEqual(expected, self.status(at, "GET", "/"))

    def test_events(self):
        """A state is one for all subscribers; one that leaves makes room."""
        head = b" /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with management.connect(self.world.management) as s:
            s.sendall(b"HEAD" + head + b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertIn(b"text/event-stream", read_until(s, b"\r\n\r\nok\n"))
        clients = [management.connect(self.world.management) for _ in range(SUBSCRIBERS_MAX)]
        for s in clients:
            self.addCleanup(s.close)
            s.sendall(b"GET" + head)
        states = {read_until(s, b"event: state").partition(b"event: server")[2] for s in clients}
        self.assertLess(len(states), SUBSCRIBERS_MAX / 2)
        self.assertIn(b'data: {"version":', states.pop())

        def status():
            with management.connect(self.world.management) as s:
                s.sendall(b"GET" + head)
                return s.recv(12)[9:]
        self.assertEqual(b"503", status())
        clients.pop().close()
        until("there is room", lambda: status() == b"200")
        self.assertEqual(401, self.status(LOCAL, "GET", "/api/v1/events"))

    def test_a_page_of_another_name(self):
        """DNS rebinding: a browser here asks on behalf of a page of evil.example."""
        for host, expected in (("evil.example", 403), ("evil.example:9180", 403),
                               ("127.0.0.1:9180", 200), ("[::1]:9180", 200), ("LOCALHOST", 200)):
            with self.subTest(host):
                self.assertEqual(expected, self.status(LOCAL, "GET", "/version", Host=host))

    def test_a_page_of_another_server(self):
        """It asks through a tunnel of ssh to the Unix socket, or here."""
        for fields, expected in (({"Origin": "http://localhost"}, 200),
                                 ({"Origin": "http://localhost:81"}, 403),
                                 ({"Origin": "http://evil.example"}, 403),
                                 ({"Origin": "null"}, 403),
                                 ({"Sec-Fetch-Site": "cross-site"}, 403),
                                 ({"Sec-Fetch-Site": "same-site"}, 403),
                                 ({"Sec-Fetch-Site": "same-origin"}, 200),
                                 ({"Host": "evil.example"}, 403)):
            for method, path in ("POST", "/api/v1/log/reopen"), ("GET", "/api/v1/stats"):
                with self.subTest(path, **fields):
                    self.assertEqual(expected, self.status("unix", method, path, **fields))

    def test_health_while_a_reload_waits_for_a_file(self):
        """Two of them: the second one waits for the first."""
        cert = self.world.certificate[0]
        os.rename(cert, cert + ".kept")
        self.addCleanup(os.rename, cert + ".kept", cert)
        os.mkfifo(cert)
        os.chmod(cert, 0o644)
        pending = []
        for _ in range(2):
            s = management.connect(self.world.management)
            self.addCleanup(s.close)
            s.sendall(b"POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\n\r\n")
            pending.append(s)
        fds = []

        def is_read():
            try:
                fds.append(os.open(cert, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                return False
            return True
        until("the FIFO is read", is_read)
        for at in "unix", LOCAL:
            self.assertEqual(200, self.status(at, "GET", "/health"))
        os.unlink(cert)
        os.close(fds[0])
        for s in pending:
            self.assertIn(b" 422 ", s.recv(4096))

    def test_tokens_are_read_again(self):
        new = "another-" + WRITE
        write_token(self.tokens["write"], new)
        self.addCleanup(self.ask, "unix", "POST", "/api/v1/reload")
        self.addCleanup(write_token, self.tokens["write"], WRITE)
        self.assertEqual(401, self.status(LOCAL, "POST", "/api/v1/log/reopen", token=new))

        def subscribed():
            """The subscribers of another test may have gone just now."""
            stream = management.connect(LOCAL, self.world.server_ns)
            self.addCleanup(stream.close)
            stream.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n"
                           b"Authorization: Bearer " + WRITE.encode() + b"\r\n\r\n")
            if b" 200 " in read_until(stream, b"\r\n\r\n"):
                return stream
            return stream.close()
        stream = until("there is room", subscribed)
        read_until(stream, b"event: state")
        self.assertEqual(200, self.status("unix", "POST", "/api/v1/reload"))
        with self.assertRaises(EOFError):
            read_until(stream, b"there is no such text")
        self.assertEqual(200, self.status(LOCAL, "POST", "/api/v1/log/reopen", token=new))
        self.assertEqual(401, self.status(LOCAL, "POST", "/api/v1/log/reopen", token=WRITE))
        os.chmod(self.tokens["write"], 0o644)
        answer = self.ask("unix", "POST", "/api/v1/reload")
        self.assertEqual(422, answer.status)
        self.assertIn("other users have rights to it", answer.json()["errors"][0])
        self.assertEqual(200, self.status(LOCAL, "POST", "/api/v1/log/reopen", token=new))

    def test_reload(self):
        """All that a reload reads: the policy, a list, certificates, another access log."""
        self.addCleanup(self.change_policy, self.policy)
        log = f"{self.world.scratch}/another.log"
        self.write_policy(self.policy.replace("streams = 90", "streams = 91")
                          .replace("access.log", "another.log"))
        answer = self.ask("unix", "POST", "/api/v1/reload")
        self.assertEqual((200, {"ok": True, "errors": []}), (answer.status, answer.json()),
                         self.world.errors())
        until("another log", lambda: os.path.exists(log))
        self.assertEqual("91", self.limits()["class_default"]["streams"])
        self.write_policy("[limits]\nmax_headers = many\n[class default]\nstreams = \"x\n")
        answer = self.ask("unix", "POST", "/api/v1/reload")
        errors = answer.json()["errors"]
        self.assertEqual((422, False), (answer.status, answer.json()["ok"]))
        self.assertIn(f"{self.policy_path}:2: ", errors[0])
        self.assertIn(f"{self.policy_path}:4: ", errors[1])
        self.assertEqual(2, len(errors), errors)
        self.assertEqual("91", self.limits()["class_default"]["streams"])

    def test_reopen_the_log(self):
        log = f"{self.world.scratch}/access.log"
        os.rename(log, log + ".1")
        self.assertEqual({"ok": True, "access_log": True},
                         self.ask("unix", "POST", "/api/v1/log/reopen").json())
        until("a new log", lambda: os.path.exists(log))

    def test_bodies_that_are_too_large(self):
        for body, fields in ((b"x" * 65537, {}), (iter([b"x" * 40000] * 2), {}),
                             (b"x" * 65536, {})):
            expected = 200 if isinstance(body, bytes) and len(body) == 65536 else 413
            self.assertEqual(expected, self.status("unix", "POST", "/api/v1/log/reopen", body,
                                                   **fields))
        with management.connect(LOCAL, self.world.server_ns) as s:
            s.sendall(b"POST /api/v1/log/reopen HTTP/1.1\r\nHost: localhost\r\n"
                      b"Authorization: Bearer " + WRITE.encode() + b"\r\n"
                      b"Content-Length: 1000000000000\r\n\r\n")
            self.assertIn(b" 413 ", s.recv(4096))
        self.check_it_serves()

    def test_heads_that_are_too_large(self):
        with management.connect(self.world.management) as s:
            try:
                for _ in range(100):
                    s.sendall(b"GET /health HTTP/1.1\r\n" + b"A: " + b"x" * 65536 + b"\r\n")
            except (BrokenPipeError, ConnectionResetError):
                pass
        self.assertEqual(414, self.status("unix", "GET", "/health?" + 2000 * "x"))
        self.check_it_serves()

    def test_garbage(self):
        prng = random.Random(40)
        parts = [b"GET ", b"/health", b" HTTP/1.1\r\n", b"\r\n", b":", b"\0", b"Host: localhost",
                 b"Content-Length: -1\r\n", b"Transfer-Encoding: chunked\r\n", b"FFFFFFFFFFFF\r\n"]
        for i in range(200):
            data = prng.randbytes(prng.randrange(300)) if i % 2 else \
                b"".join(prng.choices(parts, k=prng.randrange(1, 12)))
            with management.connect(self.world.management) as s:
                s.sendall(data)
        self.check_it_serves()

    def test_pipelined_requests(self):
        with management.connect(self.world.management) as s:
            s.sendall(3 * b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" +
                      b"GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n"
                      b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            data = b""
            while part := s.recv(65536):
                data += part
        self.assertEqual([b"200", b"200", b"200", b"404", b"200"],
                         [line[9:12] for line in data.split(b"\n") if line.startswith(b"HTTP/")])

    def test_many_idle_connections(self):
        """Of those beyond the limit each is closed at once. The Unix socket has its own places."""
        self.check_bound(LOCAL, LOOPBACK_MAX, ELSEWHERE)

    def test_many_idle_connections_of_one_address(self):
        self.check_bound(ELSEWHERE, ADDRESS_MAX, LOCAL)

    def check_bound(self, at, n, other):
        idle = [management.connect(at, self.world.server_ns) for _ in range(n + 40)]
        for s in idle:
            self.addCleanup(s.close)
            s.setblocking(False)

        def is_closed(s):
            try:
                return s.recv(1) == b""
            except ConnectionResetError:
                return True
            except BlockingIOError:
                return False
        until("the last ones are closed", lambda: sum(map(is_closed, idle)) == 40)
        self.check_it_serves()
        self.assertEqual(200, self.status(other, "GET", "/health"))
        for s in idle:
            s.close()
        until("there is room again", lambda: self.answers(at))

    def answers(self, at):
        try:
            return self.status(at, "GET", "/health") == 200
        except OSError:
            return False


class NoTokens(Listener):
    """Loopback without tokens: nothing but what everybody may see."""
    has_tokens = False

    def test_what_is_served(self):
        for path in (*OPEN, "/version"):
            self.assertEqual(200, self.status(LOCAL, "GET", path))
        for at in LOCAL, LOCAL6, ELSEWHERE:
            self.assertEqual(403, self.status(at, "POST", "/api/v1/reload"))
        self.assertEqual(200, self.status("unix", "POST", "/api/v1/reload"))


class Own(unittest.TestCase):
    """Each test has a server of its own."""

    def make_world(self, *options, **more):
        self.world = World("tap", options=options, **more)
        self.addCleanup(self.world.close)
        self.world.root = os.path.join(self.world.scratch, "site")
        os.mkdir(self.world.root)
        fill_site(self.world.root)
        self.world.make_namespaces()

    def ask(self, path, method="GET"):
        return management.ask(self.world.management, method, path)


class Readiness(Own):

    def test_while_connections_are_drained(self):
        self.make_world("--drain-timeout", "60s")
        self.world.start()
        client = Client(self.world.connect())
        self.addCleanup(client.close)
        client.ping()
        server = self.world.server
        until("the connection counted", lambda: server.stats()["connections"] == 1)
        until("it is ready", lambda: self.ask("/ready").status == 200)
        server.signal()
        until("it stops", lambda: self.ask("/ready").status == 503)
        self.assertEqual("the server stops\n", self.ask("/ready").text)
        self.assertEqual(200, self.ask("/health").status)
        client.close()
        self.assertEqual(0, server.wait(), self.world.errors())
        self.assertFalse(os.path.exists(self.world.management))


class AtDefaultPath(Server):
    """Without the option, in a mount namespace with an empty /run."""

    def command(self, program, options, eal):
        at = options.index("--management-socket")
        options = options[:at] + options[at + 2:]
        mount = 'mount -t tmpfs -o mode=755 tmpfs /run && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", mount, "sh",
                *super().command(program, options, eal)]


class Sockets(Own):

    def refused(self, *options):
        self.make_world(*options)
        with self.assertRaises(Failed) as failed:
            self.world.start()
        self.assertEqual(1, self.world.server.process.returncode)
        return str(failed.exception)

    def folder(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        return folder

    def test_the_default_path(self):
        self.make_world()
        self.world.root = self.folder()
        self.world.server_class = AtDefaultPath
        self.world.start()
        path = f"/proc/{self.world.server.process.pid}/root/run/nightjar/nightjar.sock"
        until("the server is there", lambda: os.path.exists(path))
        self.assertEqual((0o755, NOBODY), ((folder := os.stat(os.path.dirname(path))).st_mode
                                           & 0o777, folder.st_uid))
        self.assertEqual((0o660, NOBODY), ((file := os.stat(path)).st_mode & 0o777, file.st_uid))
        self.assertEqual(200, management.ask(path, "GET", "/health").status)
        self.assertEqual(0, self.world.stop())

    def test_a_folder_of_root(self):
        path = f"{self.folder()}/socket"
        self.assertIn(f"--management-socket {path}: user nobody cannot make a socket there: chown "
                      "nobody its folder", self.refused("--management-socket", path))
        self.assertFalse(os.path.lexists(path))

    def test_an_address_of_the_server(self):
        self.assertIn("--management-listen 198.18.0.2:9180: Cannot assign requested address: it "
                      "must be an address of the kernel",
                      self.refused("--management-listen", "198.18.0.2:9180"))

    def test_a_stale_socket_and_one_that_is_removed(self):
        self.make_world()
        path = self.world.management
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(path)
        os.chown(path, NOBODY, NOBODY)
        self.world.start()
        self.assertEqual(200, self.ask("/health").status)
        os.unlink(path)
        until("it is there again", lambda: os.path.exists(path))
        self.assertEqual(200, self.ask("/health").status)
        self.assertEqual(0, self.world.stop())
        self.assertFalse(os.path.lexists(path))


if __name__ == "__main__":
    unittest.main()
