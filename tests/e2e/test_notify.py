# SPDX-License-Identifier: BSD-3-Clause
"""
The messages to the service manager (sd_notify(3)), read from a socket of the test: READY,
RELOADING, STOPPING, STATUS, and those of the watchdog, which stop while an lcore does not poll.
"""
import os
import re
import signal
import socket
import time
import unittest

from tests.netlab.case import fill_site
from tests.netlab.h2client import Client
from tests.netlab.handlers_case import make_gate, open_gate
from tests.netlab.limits import time_limit
from tests.netlab.world import SERVER_ADDR6, World, inside, server_path, until

PLAIN_BUILD = "start"
WATCHDOG_USEC = 200_000


class Manager:
    """
    The service manager's socket in a network namespace, to which names of the abstract namespace
    belong. `read` has all messages so far, each a dict.
    """

    def __init__(self, namespace, address):
        with inside(namespace):
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.settimeout(time_limit())
        self.sock.bind(address)
        if not address.startswith("\0"):
            os.chmod(address, 0o777)  # as systemd does: the server may be of another user
        self.read = []

    def next(self):
        text = self.sock.recv(65536).decode()
        self.read.append(dict(line.split("=", 1) for line in text.split("\n")))
        return self.read[-1]

    def until(self, name, value=""):
        """The messages up to the next with a line NAME=VALUE...; this one is the last."""
        before = len(self.read)
        while name not in (message := self.next()) or not message[name].startswith(value):
            pass
        return self.read[before:]


class Notify(unittest.TestCase):

    def start(self, *options, abstract=False, program="nightjar", ipv6=False, **variables):
        self.world = World(options=options, program=program, ipv6=ipv6)
        self.addCleanup(self.world.close)
        path = os.path.join(self.world.scratch, "notify")
        address = "@" + self.world.name if abstract else path
        self.world.make_namespaces()
        self.manager = Manager(self.world.server_ns, address.replace("@", "\0"))
        self.addCleanup(self.manager.sock.close)
        self.world.root = os.path.join(self.world.scratch, "site")
        os.mkdir(self.world.root)
        fill_site(self.world.root)
        make_gate(self.world)
        self.world.variables |= {"NOTIFY_SOCKET": address} | variables
        self.world.start()
        return self.world.server

    def client(self):
        client = Client(self.world.connect())
        self.addCleanup(client.close)
        return client

    def test_ready(self):
        self.start()
        first, *_, last = self.manager.until("READY")
        self.assertEqual({"STATUS": "starting"}, first)
        self.assertEqual({"READY": "1", "STATUS":
                          f"ready: http://198.18.0.2:80/ serves {self.world.root}"}, last)
        self.assertEqual(200, self.client().get("/16KiB-1")[0])
        self.assertFalse(any("WATCHDOG" in m for m in self.manager.read))

    def test_ready_when_addresses_can_be_used(self):
        """An IPv6 address is tentative at the start (RFC 4862 5.4)."""
        server = self.start("--addr", f"{SERVER_ADDR6}/64", ipv6=True)
        self.manager.until("READY")
        self.assertEqual({"ready"}, set(server.addresses().values()))
        done = self.world.client("curl", "-sS", "-g", "--http2-prior-knowledge", "-o", "/dev/null",
                                 "-w", "%{http_code}", f"http://[{SERVER_ADDR6}]/16KiB-1")
        self.assertEqual("200", done.stdout, done.stderr)

    def test_stop(self):
        server = self.start("--drain-timeout", "60s", abstract=True)
        self.manager.until("READY")
        client = self.client()
        client.ping()
        until("the connection counted", lambda: server.stats()["connections"] == 1)
        server.signal()
        last = self.manager.until("STOPPING")[-1]
        self.assertEqual("stopping: 1 connection open", last["STATUS"])
        self.assertEqual("1", last["STOPPING"])
        self.assertGreater(int(last["EXTEND_TIMEOUT_USEC"]), 60_000_000)
        client.close()
        self.assertEqual(0, server.wait(), self.world.errors())

    def test_reload(self):
        policy = os.path.join("/run", f"notify-{os.getpid()}.conf")
        self.addCleanup(os.unlink, policy)
        for text in ("", "[limits]\nmax_headers = 64\n", "[limits]\nmax_headers = many\n"):
            with open(policy, "w", encoding="utf-8") as f:
                f.write(text)
            if not text:
                server = self.start("--config", policy)
                self.manager.until("READY")
                continue
            before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            server.signal(signal.SIGHUP)
            begin, end = self.manager.until("READY")
            after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            self.assertEqual("1", begin["RELOADING"])
            self.assertTrue(before <= int(begin["MONOTONIC_USEC"]) <= after, begin)
            self.assertRegex(end["STATUS"], "an error" if "many" in text else "^ready: ")
            self.assertEqual(200, self.client().get("/16KiB-1")[0])

    def test_watchdog_and_a_stuck_lcore(self):
        """With --strategy pc the handler of /gate blocks its lcore. The other one polls on."""
        self.start("--strategy", "pc", program="nightjar-test-handlers",
                   WATCHDOG_USEC=str(WATCHDOG_USEC))
        self.manager.until("READY")
        for _ in range(3):
            self.assertEqual([{"WATCHDOG": "1"}], self.manager.until("WATCHDOG"))
        client = self.client()
        stream = client.request("/gate")
        self.manager.until("STATUS", "lcore ")
        self.assertRegex(self.manager.read[-1]["STATUS"], r"^lcore \d+ does not poll$")
        self.wait_for_lines(2)  # one per second: some periods of the watchdog
        gate = open_gate(self.world)
        self.addCleanup(os.close, gate)
        self.assertEqual(200, client.response(stream)[0])
        # Nothing was sent in between.
        self.assertEqual(1, len(self.manager.until("STATUS", "ready: ")))
        self.assertEqual([{"WATCHDOG": "1"}], self.manager.until("WATCHDOG"))
        client.close()
        self.assertEqual(0, self.world.stop(), self.world.errors())

    def wait_for_lines(self, n):
        """Waits for `n` more lines about the stuck lcore."""
        def lines():
            return len(re.findall(r"lcore \d+ has not polled|has had lcore", self.world.errors()))
        before = lines()
        until("lines about the lcore", lambda: lines() >= before + n)

    def test_watchdog_of_another_process(self):
        server = self.start(WATCHDOG_USEC=str(WATCHDOG_USEC), WATCHDOG_PID="1")
        self.manager.until("READY")
        server.signal()
        self.assertEqual(1, len(self.manager.until("STOPPING")))

    def test_a_failed_start(self):
        self.world = World()
        self.addCleanup(self.world.close)
        path = os.path.join(self.world.scratch, "notify")
        self.world.make_namespaces()
        self.manager = Manager(self.world.server_ns, path)
        self.addCleanup(self.manager.sock.close)
        done = self.world.run_in(
            self.world.server_ns, server_path(), "--no-huge", "--no-pci", "--no-shconf",
            "-m", "64", "--", "--addr", "198.18.0.2/24", "--root", "/run",
            env=dict(os.environ) | {"NOTIFY_SOCKET": path})
        self.assertEqual(1, done.returncode, done.stderr)
        self.manager.until("STATUS", "starting")
        status = self.manager.next()["STATUS"]
        self.assertIn(f"error: {status}\n", done.stderr)

    def test_an_invalid_address(self):
        """The server starts nevertheless. A unit test has more addresses."""
        self.start(NOTIFY_SOCKET="vsock:2:1234")
        self.assertIn("warning: the service manager gets no messages: "
                      "NOTIFY_SOCKET=vsock:2:1234: expected", self.world.errors())
        self.assertEqual(200, self.client().get("/16KiB-1")[0])
        self.assertEqual(0, self.world.stop(), self.world.errors())

    def test_a_manager_that_is_gone(self):
        server = self.start()
        self.manager.until("READY")
        self.manager.sock.close()
        for _ in range(2):
            server.signal(signal.SIGHUP)
        until("a warning", lambda: "NOTIFY_SOCKET): Connection refused" in self.world.errors())
        self.assertEqual(200, self.client().get("/16KiB-1")[0])
        self.assertEqual(0, self.world.stop(), self.world.errors())
        self.assertEqual(1, self.world.errors().count("the service manager gets no messages"))


if __name__ == "__main__":
    unittest.main()
