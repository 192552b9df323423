# SPDX-License-Identifier: BSD-3-Clause
"""
nightjar-load over the kernel's sockets. Its counters equal those of nightjar; each kind of failure
has its own; names are looked up. And over DPDK with a preset, to a server on the kernel's sockets.
"""
import contextlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import threading

from tests.netlab.case import ServerCase
from tests.netlab.generator import PROGRAM
from tests.netlab.limits import time_limit
from tests.netlab.world import CLIENT_ADDR, CLIENT_ADDR6, SERVER_ADDR, SERVER_ADDR6, inside, until

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx"
LAST = HEAD.replace(b"OK\r\n", b"OK\r\nconnection: close\r\n")
LOSSES = ("refused", "unreachable", "tls_failed", "closed", "cut", "broken")
RESET = struct.pack("ii", 1, 0)


class Sockets(ServerCase):
    ipv6 = True
    options = ("--addr", f"{SERVER_ADDR6}/64")

    @classmethod
    def prepare(cls):
        cls.world.serve_tls()
        cls.hosts = os.path.join(cls.world.scratch, "hosts")
        with open(cls.hosts, "w", encoding="ascii") as f:
            f.write(f"{SERVER_ADDR} one\n{CLIENT_ADDR} two\n{SERVER_ADDR6} two\n"
                    f"{SERVER_ADDR} three\n{CLIENT_ADDR6} three\n")

    def load(self, *options):
        """The exit status, the JSON (None without a report), and the errors."""
        done = self.world.client(PROGRAM, "--json", "-", "-w", "0s", *map(str, options))
        return done.returncode, json.loads(done.stdout or "null"), done.stderr

    def counted(self, *options):
        """The counts of a good load, which those of the server equal."""
        before = self.server.stats()
        status, found, errors = self.load(*options)
        self.assertEqual(0, status, errors)
        until("the server has freed the connections",
              lambda: not self.server.stats()["connections"])
        grown = {name: n - before[name] for name, n in self.server.stats().items()}
        mine = found["in_all"]
        self.assertEqual((mine["asked"], mine["done"], mine["body_bytes"], mine["connected"]),
                         (grown["requests"], grown["requests"], grown["body_bytes"],
                          grown["tcp_accepted"]))
        self.assertEqual([0] * 3, [mine[name] for name in ("reset", "timeout", "lost")])
        self.assertEqual(mine["done"], mine["status_2"])
        return found, grown

    def check_errors(self, *runs):
        """Loads without a response, all at once. `runs`: options and URL, and the error of each."""
        loads = [self.world.client_popen(PROGRAM, "-w", "0s", *options, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True)
                 for *options, _ in runs]
        for load, (*_, words) in zip(loads, runs):
            out, errors = load.communicate(timeout=time_limit())
            self.assertEqual((1, ""), (load.returncode, out))
            self.assertRegex(errors, words)

    @contextlib.contextmanager
    def peer(self, talk):
        """A server in the clients' namespace, which talks to one connection after the other.
        Yields the start of a URL."""
        with inside(self.world.client_ns):
            listener = socket.create_server(("0.0.0.0", 0), backlog=64)

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    s = listener.accept()[0]
                    with contextlib.suppress(ConnectionError), s:
                        s.settimeout(time_limit())
                        talk(s)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            thread.join()

    def test_counts_of_both_ends(self):
        for options, url in ((("-c", 7, "-m", 5), f"http://{SERVER_ADDR}/one"),
                             (("-c", 5, "-t", 2, "--http1"), f"http://[{SERVER_ADDR6}]/one"),
                             (("-c", 3, "-m", 4, "-t", 2), f"https://{SERVER_ADDR}/one"),
                             (("-c", 3, "--http1", "-m", 2), f"https://[{SERVER_ADDR6}]/one")):
            with self.subTest(options=options, url=url):
                found, grown = self.counted(*options, "-n", 401, url)
                mine = found["in_all"]
                self.assertEqual((401, 401), (mine["done"], mine["body_bytes"]))
                self.assertEqual([0] * len(LOSSES), [mine[name] for name in LOSSES])
                self.assertEqual(options[1], mine["connected"])
                self.assertEqual(mine["connected"] * url.startswith("https"),
                                 grown["tls_handshakes"])
                self.assertEqual(("kernel", 2 if "-t" in options else 1),
                                 (found["driver"], found["lcores"]))
                self.assertEqual(401, found["latency_ns"]["count"])

    def test_downloads(self):
        """A connection accepts more than a socket's buffer."""
        for scheme in "http", "https":
            found, _ = self.counted("-c", 2, "-m", 2, "-n", 12, f"{scheme}://{SERVER_ADDR}/one",
                                    "/200KiB=100000")
            self.assertEqual((0, 12 * (200 << 10)),
                             (found["in_all"]["lost"], found["in_all"]["body_bytes"]))

    def test_a_rate(self):
        found, _ = self.counted("-c", 4, "-r", 300, "-d", "500ms", f"http://{SERVER_ADDR}/one")
        asked, late = found["in_all"]["asked"], found["after"]["unsent"]
        self.assertAlmostEqual(300 * found["seconds"], asked + late, delta=20)

    def test_names(self):
        """The addresses of a name are tried in turn."""
        refused = 0
        for name in "one", "two", "three":
            done = self.world.client(
                "unshare", "-m", "sh", "-c", f"mount --bind {self.hosts} /etc/hosts; exec \"$@\"",
                "sh", PROGRAM, "--json", "-", "-n", "9", "-c", "2", f"http://{name}/one")
            self.assertEqual(0, done.returncode, done.stderr)
            mine = json.loads(done.stdout)["in_all"]
            self.assertEqual((9, 2), (mine["status_2"], mine["connected"]))
            refused += mine["refused"]
        self.assertEqual(1, refused, "the first address of one of the two names")

    def test_no_response(self):
        """Each reason has words of its own."""
        with self.peer(lambda s: s.recv(4096) and s.sendall(HEAD)) as other:
            self.check_errors(
                ("http://name.invalid/", "^nightjar-load: name.invalid: "),
                (f"http://{SERVER_ADDR}:81/",
                 "it does not begin: 0 of 1 .* 10 were refused.*: Connection refused"),
                ("http://198.19.0.1/",
                 "it does not begin: .* 10 unreachable.*: Network is unreachable"),
                (f"https://{SERVER_ADDR}:80/",
                 "it does not begin: .* 10 without TLS.*: the server closes in the handshake"),
                (other, "there is no response: .* ended: the first frame is not SETTINGS: no "
                 r"HTTP/2 server\? \(--http1\)"))

    def test_failures_of_requests(self):
        """Each connection answers one request and resets at the second."""
        def one_answer(s):
            s.recv(4096)
            s.sendall(HEAD)
            s.recv(4096)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

        with self.peer(one_answer) as url:
            status, found, errors = self.load("--http1", "-n", 20, url)
        self.assertEqual(0, status, errors)
        mine = found["in_all"]
        self.assertEqual((20, 10, 10, 10), tuple(mine[name] for name in ("asked", "done", "lost",
                                                                         "cut")))

    def test_time_out(self):
        with self.peer(lambda s: s.recv(4096) and s.recv(1)) as url:
            status, found, errors = self.load("--http1", "--timeout", "50ms", "-d", "200ms", url)
        self.assertEqual((1, 0), (status, found["in_all"]["done"]), errors)
        self.assertLess(0, found["in_all"]["timeout"])

    def test_uploads(self):
        """More than the buffers of both ends."""
        received = []

        def read_all(s):
            head, _, body = s.recv(4096).partition(b"\r\n\r\n")
            if not head:
                return  # it was opened again, after the last request
            left = int(re.search(rb"content-length: (\d+)", head)[1]) - len(body)
            received.append(len(body))
            while left:
                n = len(s.recv(min(left, 1 << 20)))
                left -= n
                received[-1] += n
            s.sendall(LAST)

        with self.peer(read_all) as url:
            status, found, errors = self.load("--http1", "-n", 3, "-u", "16MiB", url)
        self.assertEqual((0, [16 << 20] * 3), (status, received), errors)
        self.assertEqual((3, 3 * 16 << 20), (found["in_all"]["closed"],
                                             found["in_all"]["upload_bytes"]))

    def test_interrupt(self):
        """It ends the measurement, and there is a report."""
        load = self.world.client_popen(PROGRAM, "-d", "1h", "-w", "0s", f"http://{SERVER_ADDR}/one",
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        next(line for line in iter(load.stderr.readline, "") if line.startswith("measuring"))
        load.send_signal(signal.SIGINT)
        out, errors = load.communicate(timeout=time_limit())
        self.assertEqual(0, load.returncode, errors)
        self.assertRegex(out, "1 connection x 1 stream to .* over kernel, 1 thread, ")
        self.assertRegex(out, "connections  1 made, 0 refused, 0 unreachable, ")

    def test_preset(self):
        """nightjar's own TCP, on a tap, to a server of the kernel on the other end."""
        with self.peer(lambda s: s.recv(4096) and s.sendall(LAST)) as url:
            load = self.world.client_popen(
                PROGRAM, "--preset", "tap,iface=nj1", "--addr", "198.19.0.2/24", "--http1", "-c",
                "2", "-n", "6", "--json", "-", url.replace("127.0.0.1", "198.19.0.1"),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            until("the tap is there", lambda: load.poll() is not None or not self.world.client(
                "ip", "link", "show", "nj1").returncode)
            self.world.client("ip", "addr", "add", "198.19.0.1/24", "dev", "nj1")
            out, errors = load.communicate(timeout=time_limit())
        self.assertEqual(0, load.returncode, errors)
        found = json.loads(out)
        self.assertEqual(("net_tap", 1, 6), (found["driver"], found["lcores"],
                                             found["in_all"]["status_2"]))
