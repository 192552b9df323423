# SPDX-License-Identifier: BSD-3-Clause
"""
Small foreign clients over TLS: each fetches all files, which must be right byte for byte. Large
ones (Go, Java, browsers) are in tests/clients.
"""
import hashlib
import os
import select
import subprocess

import h2.events
import h2.settings

from tests.clients.programs import NAME, ProgramCase
from tests.netlab.h2client import Client
from tests.netlab.limits import time_limit
from tests.netlab.world import SERVER_ADDR

WINDOW = (1 << 31) - 1


class Prepared:
    """The socket of a Client that sends nothing before release()."""

    def __init__(self):
        self.stream = b""

    def sendall(self, data):
        self.stream += data


class Tls(ProgramCase):
    def test_httpx(self):
        self.fetch_all("/usr/bin/python3", "fetch_httpx.py")

    def test_node(self):
        self.fetch_all("node", "fetch.mjs")

    def test_nghttp(self):
        for name, sha256 in self.sums.items():
            done = self.world.client("nghttp", f"https://{SERVER_ADDR}/{name}", text=False)
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertEqual(sha256, hashlib.sha256(done.stdout).hexdigest(), name)
        self.assertEqual(len(self.sums), self.counted("tls_handshakes"))

    def fetched_by(self, *command, names):
        """Sends a prepared byte stream by a program that copies it to the server, and reads the
        responses from its output."""
        client = Client(Prepared())
        client.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: WINDOW})
        client.h2.increment_flow_control_window(WINDOW - 65535)
        streams = {name: client.request("/" + name) for name in names}
        with self.world.client_popen(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE) as process:
            self.addCleanup(process.kill)
            process.stdin.write(client.sock.stream)
            process.stdin.flush()
            while not all(client.ended(stream) for stream in streams.values()):
                ready, _, _ = select.select([process.stdout], [], [], time_limit())
                self.assertTrue(ready, "too late")
                data = os.read(process.stdout.fileno(), 1 << 20)
                if not data:
                    self.fail(process.stderr.read().decode())
                client.take(client.h2.receive_data(data))
            process.stdin.close()
            self.assertEqual(0, process.wait(time_limit()))
        for name, stream in streams.items():
            body = b"".join(e.data for e in client.events
                            if isinstance(e, h2.events.DataReceived) and e.stream_id == stream)
            self.assertEqual(self.sums[name], hashlib.sha256(body).hexdigest(), name)

    def test_s_client(self):
        to = ("openssl", "s_client", "-connect", f"{SERVER_ADDR}:443", "-servername", NAME,
              "-alpn", "h2", "-CAfile", self.ca, "-verify_return_error")
        for more in (), ("-maxfraglen", "512"):
            with self.subTest(more=more):
                self.fetched_by(*to, "-quiet", "-no_ign_eof", *more, names=self.sums)
        done = self.world.client(*to, input="")
        self.assertIn("ALPN protocol: h2\n", done.stdout)
        self.assertIn("Verification: OK\n", done.stdout)

    def test_gnutls_cli(self):
        """It writes byte by byte, therefore it fetches no large file."""
        log = os.path.join(self.world.scratch, "gnutls.log")
        self.fetched_by(
            "gnutls-cli", "--alpn", "h2", "--x509cafile", self.ca, "--verify-hostname", NAME,
            "--sni-hostname", NAME, "--logfile", log, "--port", "443", SERVER_ADDR,
            names=("empty", "one", "16KiB-1", "200KiB"))
        with open(log) as f:
            text = f.read()
        self.assertIn("- Application protocol: h2\n", text)
        self.assertIn("- Status: The certificate is trusted", text)
