# SPDX-License-Identifier: BSD-3-Clause
"""
HAProxy and nginx in front of nightjar, each with its file of examples/proxies, which docs/deploy.md
explains. tests/clients has the same for Caddy.
"""
import os

from tests.e2e.test_http1 import Http1Case
from tests.netlab.certificates import Authority
from tests.netlab.proxies import ADDR, NAME, Sample, over_tls, sample
from tests.netlab.world import until

N_REQUESTS = 10


class SampleCase(Http1Case):
    """A proxy with a sample on port 80 of the clients' namespace."""
    policy = sample("nightjar.conf")

    @classmethod
    def prepare(cls):
        super().prepare()
        authority = Authority(cls.world.scratch, "authority")
        cert, key = authority.sign("server", f"/CN={NAME}", 1, f"subjectAltName=DNS:{NAME}")
        cls.ca = authority.cert
        cls.world.options += ["--tls-cert", cert, "--tls-key", key]

    def proxy(self, name, also=()):
        front = Sample(self.world, name, also)
        self.addCleanup(front.close)
        until(lambda: f"a response\n{front.text()}", lambda: self.status("/index.html") == 200)
        return front

    def through(self, *args, source="127.0.0.1"):
        """curl's output for requests by the proxy."""
        done = self.world.client("curl", "-sS", "--noproxy", "*", "--interface", source, *args)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def status(self, path):
        """Of a response, or 0 if there is none."""
        return int(self.world.client("curl", "-s", "--noproxy", "*", "-o", "/dev/null", "-w",
                                     "%{http_code}", f"http://{ADDR}{path}").stdout)

    def check_files(self):
        for name in self.sums:
            self.through("-f", "-o", self.path("got"), f"http://{ADDR}/{name}")
            self.same(name, self.path("got"))

    def check_reuse(self, protocol):
        """All requests of a client are on one connection of the proxy."""
        urls = [word for _ in range(N_REQUESTS) for word in ("-o", "/dev/null",
                                                             f"http://{ADDR}/small")]
        self.through("-A", "reuse", *urls)
        self.wait_for_log()
        records = [record for record in self.all_records() if record["user_agent"] == "reuse"]
        self.assertEqual({protocol}, {record["protocol"] for record in records})
        self.assertEqual(N_REQUESTS, len(records))
        self.assertEqual(1, len({(record["shard"], record["connection"]) for record in records}))

    def all_records(self):
        return self.records(self.counted("requests"))

    def check_client(self):
        """The policy sees the addresses of the proxy's clients, which they cannot forge."""
        sources, forged = {"127.0.0.8", "127.0.0.9"}, "203.0.113.7"
        for source in sources:
            self.through("-H", f"X-Forwarded-For: {forged}", "-o", "/dev/null",
                         f"http://{ADDR}/small", source=source)
        clients = {entry["client"] for name, entry in
                   self.server.telemetry("/nightjar/clients,64").items() if name != "n"}
        self.assertLessEqual(sources, clients)
        self.assertNotIn(forged, clients)

    def check_health(self, down=503):
        """The proxy's checks succeed; when they fail, no request is forwarded."""
        page = os.path.join(self.root, "index.html")
        until("two checks", lambda: sum(
            record["path"] == "/index.html" and record["status"] == 200 and
            not (record["user_agent"] or "").startswith("curl")
            for record in self.all_records()) >= 2)
        os.rename(page, page + ".away")
        try:
            until("the proxy has noticed", lambda: self.status("/small") == down)
        finally:
            os.rename(page + ".away", page)
        until("it has noticed that, too", lambda: self.status("/small") == 200)


class HAProxy(SampleCase):
    def check(self, protocol, also=()):
        self.proxy("haproxy.cfg", also)
        self.check_files()
        self.check_reuse(protocol)
        self.check_client()
        self.check_health()

    def test_http1(self):
        self.check("HTTP/1.1")

    def test_http2(self):
        self.check("HTTP/2.0", {":80 check": ":80 proto h2 check"})

    def test_tls(self):
        self.check("HTTP/1.1", over_tls("haproxy.cfg", self.ca))
        self.assertGreater(self.counted("tls_handshakes"), 0)


class Nginx(SampleCase):
    def check(self, also=()):
        self.proxy("nginx.conf", also)
        self.check_files()
        self.check_reuse("HTTP/1.1")
        self.check_client()

    def test_http1(self):
        self.check()
        self.through("-f", "-0", "-H", "Host:", "-o", "/dev/null", f"http://{ADDR}/small")

    def test_tls(self):
        self.check(over_tls("nginx.conf", self.ca))
        self.assertGreater(self.counted("tls_handshakes"), 0)


class HAProxyOfConnections(SampleCase):
    """It forwards TCP, with a PROXY header."""
    options = ("--proxy-protocol", "80", "--proxy-protocol", "443")

    def test_http(self):
        self.proxy("haproxy-tcp.cfg")
        self.check_files()
        self.check_reuse("HTTP/1.1")
        self.check_client()
        self.assertEqual({"127.0.0.8", "127.0.0.9"}, {
            record["remote"] for record in self.all_records() if record["path"] == "/small"} -
            {"127.0.0.1"})
        self.check_health(down=0)

    def test_https(self):
        self.proxy("haproxy-tcp.cfg")
        for version, protocol in (("--http2", "HTTP/2.0"), ("--http1.1", "HTTP/1.1")):
            for name in self.sums:
                self.through(version, "-f", "--cacert", self.ca, "--resolve", f"{NAME}:443:{ADDR}",
                             "-o", self.path("got"), f"https://{NAME}/{name}", source="127.0.0.9")
                self.same(name, self.path("got"))
                self.wait_for_log()
                self.assertIn(("127.0.0.9", protocol, f"/{name}"), [
                    (record["remote"], record["protocol"], record["path"])
                    for record in self.all_records()])
