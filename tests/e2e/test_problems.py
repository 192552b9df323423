# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong with a server is in all that an operator looks at, while it is wrong."""
import json
import os
import subprocess
import unittest

from tests.netlab import management
from tests.netlab.case import fill_site
from tests.netlab.certificates import Authority
from tests.netlab.h2client import Client
from tests.netlab.handlers_case import make_gate, open_gate
from tests.netlab.limits import time_limit
from tests.netlab.world import World, server_path, until

PLACES = 8


class Problems(unittest.TestCase):
    """A handler that holds its lcore (--strategy pc), a link that is down, a certificate that has
    expired, and a table of connections that is full, all of one server."""

    def setUp(self):
        self.world = World(lcores=1, program="nightjar-test-handlers",
                           options=["--strategy", "pc", "--ready-stall", "1s",
                                    "--max-connections", str(PLACES)])
        self.addCleanup(self.world.close)
        self.world.root = os.path.join(self.world.scratch, "site")
        os.mkdir(self.world.root)
        fill_site(self.world.root)
        make_gate(self.world)
        authority = Authority(self.world.scratch, "authority")
        self.sign = lambda days: authority.sign("dated", "/CN=x", 7, "subjectAltName=DNS:x", days)
        self.cert, key = self.sign(-1)
        self.world.options += ["--tls-cert", self.cert, "--tls-key", key]
        self.world.make_namespaces()
        self.world.start()

    def ask(self, path, method="GET"):
        return management.ask(self.world.management, method, path)

    def kinds(self):
        answer = self.ask("/api/v1/problems").json()["problems"]
        return {one["kind"]: one["text"] for one in answer}

    def ctl(self, *args):
        return subprocess.run([server_path(), "ctl", "--socket", self.world.management, *args],
                              capture_output=True, text=True, timeout=time_limit())

    def check(self, kind, text, is_grave):
        """All places tell of the problem."""
        self.assertRegex(until(kind, lambda: self.kinds().get(kind)), text)
        ready = self.ask("/ready")
        line = text if is_grave else "warning: " + text
        self.assertRegex(ready.text, f"(?m)^{line}$")
        self.assertIn(f'nightjar_problem{{kind="{kind}"}} 1\n', self.ask("/metrics").text)
        telemetry = self.world.server.telemetry("/nightjar/problems")
        self.assertIn(kind, [one["kind"] for one in telemetry.values()])
        status = self.ctl("status")
        self.assertRegex(status.stdout, f"(?m)^  {text}$")
        return ready.status, status.returncode

    def test_all_places(self):
        warned = (200, 0)
        until("it is ready", lambda: self.ask("/ready").status == 200)
        self.assertEqual(warned, self.check(
            "certificate-expired", rf"{self.cert}: the certificate expired at 20\S+Z", False))
        self.assertTrue(self.ask("/ready").text.startswith("ready\nwarning: "))

        self.sign(2)
        self.assertEqual(200, self.ask("/api/v1/reload", "POST").status)
        until("all is well", lambda: not self.kinds())

        clients = [Client(self.world.connect()) for _ in range(PLACES)]
        for client in clients:
            self.addCleanup(client.close)
        self.assertEqual(warned, self.check(
            "table-full", rf"connections: {PLACES} of {PLACES} in use on lcore \d+", False))

        stream = clients[0].request("/gate")
        self.assertEqual((503, 1), self.check(
            "lcore-stuck", r"lcore \d+ has not polled for \d+ ms", True))
        until("a second", lambda: int(self.kinds()["lcore-stuck"].split()[-2]) > 1000)
        self.assertEqual(200, self.ask("/health").status)
        top = subprocess.run([server_path(), "top", "--socket", self.world.management, "--once",
                              "--interval", "0.2", "--json"], capture_output=True, text=True,
                             timeout=time_limit())
        self.assertEqual(1, top.returncode, top.stderr)
        self.assertRegex("\n".join(json.loads(top.stdout)["why"]), "has not polled for")
        gate = open_gate(self.world)
        self.addCleanup(os.close, gate)
        self.assertEqual(200, clients[0].response(stream)[0])
        for client in clients:
            client.close()
        until("nothing is wrong", lambda: not self.kinds())

        self.world.client("ip", "link", "set", "nj0", "down")
        self.assertEqual((503, 1), self.check(
            "port-down", r"port 0 \(net_tap0\) has no link", True))
        self.world.client("ip", "link", "set", "nj0", "up")
        until("a link", lambda: self.ask("/ready").text == "ready\n")
