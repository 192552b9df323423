# SPDX-License-Identifier: BSD-3-Clause
"""
Sections [listen NAME]: cleartext, TLS and PROXY headers at ports and addresses of the file, what
--check and --explain print about them, and that a reload names what needs a restart.
"""
import json
import os
import re
import socket
import subprocess

from tests.netlab.case import ServerCase
from tests.netlab.limits import time_limit
from tests.netlab.world import CLIENT_ADDR, SERVER_ADDR, inside, server_path, until

OTHER_ADDR = "198.18.0.3"
LISTENERS = f"""\
[listen web]
port = 80
[listen secure]
tls = yes
[listen proxies]
address = {OTHER_ADDR}
port = 8080
proxy_protocol = yes
[listen inner]
address = {OTHER_ADDR}
tls = yes
port = 80
[client]
trusted_proxy = {CLIENT_ADDR}
"""
GET = b"GET /one HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"
PROXY = b"PROXY TCP4 203.0.113.7 198.51.100.1 4711 80\r\n"


class Listeners(ServerCase):
    policy = LISTENERS

    @classmethod
    def prepare(cls):
        cls.world.serve_tls()
        cls.world.options += ["--addr", f"{OTHER_ADDR}/24"]

    def connect(self, addr, port):
        with inside(self.world.client_ns):
            s = socket.socket()
        self.addCleanup(s.close)
        s.settimeout(time_limit())
        s.connect((addr, port))
        return s

    def talk(self, data, addr, port):
        """What the server answers until it closes; None: it resets."""
        s = self.connect(addr, port)
        answer = b""
        try:
            s.sendall(data)
            while chunk := s.recv(65536):
                answer += chunk
        except ConnectionError:
            return None
        return answer

    def fetch(self, url, *options):
        return self.curl("-o", os.devnull, "-w", "%{http_version} %{scheme} %{http_code}", *options,
                         url)

    def test_curl(self):
        tls = "--cacert", self.world.certificate[0]
        for version, n in (("--http1.1", "1.1"), ("--http2-prior-knowledge", "2")):
            for addr in SERVER_ADDR, OTHER_ADDR:
                with self.subTest(version=version, addr=addr):
                    at = "--connect-to", f"::{addr}:"  # the certificate is for SERVER_ADDR
                    self.assertEqual(f"{n} HTTPS 200", self.fetch(
                        f"https://{SERVER_ADDR}/one", version, *tls, *at))
            self.assertEqual(f"{n} HTTP 200", self.fetch(f"http://{SERVER_ADDR}/one", version))
            # The listener with the address goes before the one for all.
            self.assertEqual(f"{n} HTTPS 200", self.fetch(
                f"https://{SERVER_ADDR}:80/one", version, *tls, "--connect-to", f"::{OTHER_ADDR}:"))

    def test_openssl(self):
        for addr, port in ((SERVER_ADDR, 443), (OTHER_ADDR, 443), (OTHER_ADDR, 80)):
            with self.subTest(addr=addr, port=port):
                done = self.world.client(
                    "openssl", "s_client", "-connect", f"{addr}:{port}", "-CAfile",
                    self.world.certificate[0], "-alpn", "h2", input="")
                self.assertIn("TLSv1.3", done.stdout)
                self.assertIn("ALPN protocol: h2", done.stdout)
                self.assertIn("Verify return code: 0", done.stdout)
        done = self.world.client("openssl", "s_client", "-connect", f"{SERVER_ADDR}:80", input="")
        self.assertNotIn("ALPN protocol", done.stdout)

    def test_proxy_headers(self):
        self.assertIn(b" 200 OK\r\n", self.talk(PROXY + GET, OTHER_ADDR, 8080))
        self.assertEqual(1, self.counted("conn_proxied"))
        self.assertIsNone(self.talk(GET, OTHER_ADDR, 8080))
        self.assertEqual(1, self.counted("conn_proxy_missing"))
        self.assertIn(b" 400 ", self.talk(PROXY + GET, SERVER_ADDR, 80))
        self.assertIn(b" 200 OK\r\n", self.talk(GET, SERVER_ADDR, 80))
        self.assertEqual(1, self.counted("conn_proxied"))

    def test_refused_ports(self):
        """A port without a listener, and one whose listener has another address: RST."""
        refused = ((SERVER_ADDR, 8080), (SERVER_ADDR, 81), (OTHER_ADDR, 8443))
        for addr, port in refused:
            with self.subTest(addr=addr, port=port):
                with self.assertRaises(ConnectionRefusedError):
                    self.connect(addr, port)
        self.assertEqual(len(refused), self.counted("drop_tcp_closed"))

    def test_ready_line(self):
        line = re.search(r"ready:(.*) serves", self.world.errors()).group(1).split()
        self.assertEqual(
            [f"http://{SERVER_ADDR}:80/", f"https://{SERVER_ADDR}:443/",
             f"https://{OTHER_ADDR}:443/", f"http://{OTHER_ADDR}:8080/",
             f"https://{OTHER_ADDR}:80/"], line)

    def test_reload_names_changes(self):
        n = len(self.world.errors())
        changed = LISTENERS.replace("[listen web]\nport = 80", "[listen web]\nport = 81").replace(
            "[listen inner]", "[listen outer]")
        self.change_policy(changed)
        self.addCleanup(self.change_policy, LISTENERS)
        until("the notes", lambda: self.world.errors()[n:].count("needs a restart") == 3)
        told = self.world.errors()[n:]
        path = re.escape(self.policy_path)
        for text in (r":1: \[listen web\]: 80 -> 81: needs a restart",
                     rf": \[listen inner\]: {OTHER_ADDR}:80 with TLS -> not set: needs a restart",
                     rf":9: \[listen outer\]: not set -> {OTHER_ADDR}:80 with TLS: needs a"):
            self.assertRegex(told, path + text)
        self.assertNotIn("[listen secure]", told)
        self.assertEqual("1.1 HTTP 200", self.fetch(f"http://{SERVER_ADDR}/one", "--http1.1"))
        with self.assertRaises(ConnectionRefusedError):
            self.connect(SERVER_ADDR, 81)

    def test_reload_refuses_mistakes(self):
        n = len(self.world.errors())
        self.addCleanup(self.change_policy, LISTENERS)
        self.read_policy(LISTENERS.replace(f"address = {OTHER_ADDR}", "address = 198.18.0.9", 1))
        until("the error", lambda: f"{self.policy_path}:6: address = 198.18.0.9: not an address of "
              "the server" in self.world.errors()[n:])


class Check(ServerCase):
    """What --check says of such files. No server runs with them."""
    lcores = 1

    @classmethod
    def prepare(cls):
        cls.world.serve_tls()

    def check(self, text, *options, status=0):
        path = os.path.join(self.world.scratch, "listeners.conf")
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        done = subprocess.run(
            [server_path(), "--check", "--json", "--root", self.root, "--config", path, "--addr",
             f"{SERVER_ADDR}/24", "--addr", f"{OTHER_ADDR}/24", *options], capture_output=True,
            text=True, timeout=time_limit())
        self.assertEqual((status, ""), (done.returncode, done.stderr))
        return json.loads(done.stdout)

    def tls(self):
        cert, key = self.world.certificate
        return "--tls-cert", cert, "--tls-key", key

    def listeners(self, items):
        return [(i["name"], i.get("line"), {k["key"]: k["value"] for k in i["keys"]})
                for i in items if i["kind"] == "listener"]

    def test_check(self):
        clear, both = "HTTP/2, HTTP/1.1", "each connection begins with a PROXY header"
        self.assertEqual(
            [("80", 1, {"section": "listen web", "protocols": clear}),
             ("443", 3, {"section": "listen secure", "protocols": f"TLS 1.3 with {clear}"}),
             (f"{OTHER_ADDR}:8080", 5, {"section": "listen proxies", "protocols": clear,
                                        "proxy_protocol": both}),
             (f"{OTHER_ADDR}:80", 9, {"section": "listen inner",
                                      "protocols": f"TLS 1.3 with {clear}"})],
            self.listeners(self.check(LISTENERS, *self.tls())))

    def test_explain(self):
        for url, names in (("http://www.example.org:8080/", [f"{OTHER_ADDR}:8080"]),
                           (f"http://{OTHER_ADDR}:8080/", [f"{OTHER_ADDR}:8080"]),
                           (f"http://{SERVER_ADDR}:8080/", ["none"]),
                           ("http://www.example.org/", ["80"]),
                           (f"https://{OTHER_ADDR}:80/", [f"{OTHER_ADDR}:80"]),
                           (f"http://{OTHER_ADDR}:80/", ["none"]),
                           ("https://www.example.org/one", ["443"]),
                           ("http://www.example.org:443/", ["none"])):
            with self.subTest(url=url):
                found = self.listeners(self.check(LISTENERS, *self.tls(), "--explain", url))
                self.assertEqual(names, [name for name, _, _ in found])

    def test_mistakes(self):
        told = self.check("[listen a]\nport = 70000\n[listen b]\n[listen c]\nport = 80\n",
                          status=2)
        self.assertEqual([2, 4], [i["line"] for i in told])
        for options, line, text in (
                ((), 4, "tls = yes: there is no certificate: set cert and key in [site "
                 "NAME] or [tls], or tls = no"),
                ((*self.tls(), "--listen", "8080"), None, "--listen: the sections of listeners "
                 "have all ports")):
            with self.subTest(options=options):
                told = self.check(LISTENERS, *options, status=2)
                self.assertEqual((1, line), (len(told), told[0].get("line")))
                self.assertIn(text, told[0]["keys"][0]["value"])
