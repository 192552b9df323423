# SPDX-License-Identifier: BSD-3-Clause
"""Programs that fetch files from one server, by HTTP and by HTTPS, and a table of what they did."""
import hashlib
import json
import os

from tests.clients.programs import NAME, SERIAL
from tests.e2e.test_http1 import Http1Case
from tests.netlab.certificates import Authority
from tests.netlab.world import SERVER_ADDR, until

passed = {}  # {client: {scheme: protocols}}


def table():
    """The lines of clients x (HTTP, HTTPS): the protocols in the access log, or "-"."""
    rows = [(client, *(" ".join(sorted(by.get(scheme, "-"))) for scheme in ("http", "https")))
            for client, by in sorted(passed.items())]
    return "\n".join(f"{client:24} {http:20} {https}" for client, http, https in
                     [("client", "over HTTP", "over HTTPS"), *rows]) if rows else ""


class Logged(Http1Case):
    """Tells by the access log which protocols a client has used."""

    def mark_log(self):
        self.wait_for_log()
        self.n_log_bytes = os.path.getsize(self.log)

    def new_records(self):
        """The lines of the access log since mark_log()."""
        self.wait_for_log()
        with open(self.log, encoding="utf-8") as f:
            f.seek(self.n_log_bytes)
            return [json.loads(line) for line in f]

    def passed(self, client, url):
        """For the table: all that `client` fetched by this URL since mark_log() was right."""
        protocols = {record["protocol"] for record in self.new_records()}
        self.assertTrue(protocols, client)
        passed.setdefault(client, {}).setdefault(url.partition(":")[0], set()).update(protocols)
        self.mark_log()


class Clients(Logged):
    lcores = 1  # each knows for itself since when a file is unchanged

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.authority = Authority(cls.world.scratch, "authority")
        cert, key = cls.authority.sign(
            "server", f"/CN={NAME}", SERIAL,
            f"subjectAltName=DNS:{NAME},IP:{SERVER_ADDR},IP:127.0.0.1")
        cls.ca = cls.authority.cert
        cls.world.options += ["--tls-cert", cert, "--tls-key", key]
        cls.home = os.path.join(cls.world.scratch, "home")
        os.mkdir(cls.home)

    def site(self, *parts):
        return os.path.join(self.root, *parts)

    def client(self, *command, **more):
        """Runs a program in the clients' namespace, which must succeed. Returns its output."""
        done = self.attempt(*command, **more)
        self.assertEqual(0, done.returncode, (command, done.stdout[-2000:], done.stderr[-2000:]))
        return done.stdout

    def attempt(self, *command, **more):
        environment = os.environ | {"HOME": self.home, "no_proxy": "*"} | more.pop("env", {})
        return self.world.client(*command, env=environment, **more)

    def assert_same(self, wanted, got):
        with open(wanted, "rb") as a, open(got, "rb") as b:
            self.assertEqual(hashlib.sha256(a.read()).hexdigest(),
                             hashlib.sha256(b.read()).hexdigest(), got)

    def wait_for_date(self, path):
        """The date of a file is sent when it is 2 s old."""
        until("the file has a date", lambda: "last-modified" in self.ask(path).fields)

    def urls(self):
        """Of the site. What the access log has from here on is counted by passed()."""
        for url in f"http://{SERVER_ADDR}/", f"https://{SERVER_ADDR}/":
            self.mark_log()
            yield url
