# SPDX-License-Identifier: BSD-3-Clause
"""
What asks a server on behalf of others: proxies with the files of examples/proxies (test_samples.py
of the end-to-end tests has more about HAProxy and nginx), the probe of Kubernetes, Prometheus.
"""
import json
import ssl

from tests.clients.case import Clients, Logged, passed
from tests.e2e.test_samples import SampleCase
from tests.http1 import wire
from tests.netlab.limits import time_limit
from tests.netlab.proxies import over_tls
from tests.netlab.world import SERVER_ADDR, until


class Proxies(Logged, SampleCase):
    """The table has what the proxy speaks to nightjar."""

    def check(self, client, name):
        for scheme, also in (("http", {}), ("https", over_tls(name, self.ca))):
            with self.subTest(scheme=scheme):
                front = self.proxy(name, also)
                self.mark_log()
                self.check_files()
                self.passed(client, scheme)
                front.close()

    def test_haproxy(self):
        self.check("HAProxy, with httpchk", "haproxy.cfg")

    def test_nginx(self):
        self.check("nginx", "nginx.conf")

    def test_caddy(self):
        self.check("Caddy", "Caddyfile")


class Caddy(SampleCase):
    def check(self, protocol, also=()):
        self.proxy("Caddyfile", also)
        self.check_files()
        self.check_reuse(protocol)
        self.check_client()
        self.check_health()

    def test_http1(self):
        self.check("HTTP/1.1")

    def test_http2(self):
        self.check("HTTP/2.0", {"proxy 192.0.2.10:80": "proxy h2c://192.0.2.10:80"})

    def test_tls(self):
        self.check("HTTP/2.0", over_tls("Caddyfile", self.ca))


class Probe(Clients):
    def test_probe_of_kubernetes(self):
        """kubelet does not verify certificates, and closes each connection."""
        for url in self.urls():
            with self.subTest(url=url):
                if url.startswith("https:"):
                    context = ssl._create_unverified_context()
                    sock = context.wrap_socket(self.world.connect(port=443))
                else:
                    sock = self.world.connect()
                self.addCleanup(sock.close)
                sock.sendall(
                    b"GET /small HTTP/1.1\r\nHost: 198.18.0.2:80\r\nUser-Agent: kube-probe/1.31\r\n"
                    b"Accept: */*\r\nConnection: close\r\n\r\n")
                response, = wire.parse(b"".join(iter(lambda: sock.recv(65536), b"")))
                self.assertEqual((200, b"small\n", ["close"]),
                                 (response.status, response.body, response.fields["connection"]))
                self.passed("probe of Kubernetes", url)


class Prometheus(Clients):
    """It scrapes a handler, and keeps its connections."""
    program = "nightjar-examples"

    JOBS = {"http": ("http", 80, "false"), "https": ("https", 443, "false"),
            "h2": ("https", 443, "true")}

    def config(self):
        jobs = "".join(
            f"- job_name: {name}\n  scheme: {scheme}\n  enable_http2: {h2}\n"
            f"  tls_config:\n    ca_file: {self.ca}\n"
            f"  static_configs:\n  - targets: ['{SERVER_ADDR}:{port}']\n"
            for name, (scheme, port, h2) in self.JOBS.items())
        return ("global:\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n"
                f"scrape_configs:\n{jobs}")

    def value(self, job):
        """The counter as the job has it, or 0."""
        done = self.attempt("curl", "-sS", "-G", "http://127.0.0.1:9091/api/v1/query",
                            "--data-urlencode",
                            f'query=nightjar_examples_scrapes_total{{job="{job}"}}')
        if done.returncode:
            return 0
        result = json.loads(done.stdout)["data"]["result"]
        return int(result[0]["value"][1]) if result else 0

    def test_scrape(self):
        with open(self.path("prometheus.yml"), "w") as f:
            f.write(self.config())
        self.mark_log()
        with open(self.path("prometheus.log"), "wb") as log:
            process = self.world.client_popen(
                "prometheus", f"--config.file={f.name}", "--web.listen-address=127.0.0.1:9091",
                f"--storage.tsdb.path={self.path('tsdb')}", stdout=log, stderr=log)
        self.addCleanup(process.wait, time_limit())
        self.addCleanup(process.terminate)
        first = {}
        for job in self.JOBS:
            first[job] = until(f"{job} has the value", lambda: self.value(job))
        for job in self.JOBS:
            until(f"{job} scrapes again", lambda: self.value(job) > first[job])
        self.assertEqual(len(self.JOBS), self.counted("conn_h1") + self.counted("conn_h2"))
        records = self.new_records()
        self.assertEqual({("/metrics", 200)},
                         {(record["path"], record["status"]) for record in records})
        for scheme in ("http", "https"):
            passed.setdefault("Prometheus", {})[scheme] = {
                record["protocol"] for record in records
                if ("tls" in record) == (scheme == "https")}
