# SPDX-License-Identifier: BSD-3-Clause
"""
promtool and Prometheus with the metrics of a server, and with the files of examples/monitoring.
"""
import contextlib
import http.client
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import unittest
import urllib.parse

from tests.clients.case import Clients
from tests.netlab import metrics
from tests.netlab.limits import time_limit
from tests.netlab.world import inside, until

VARIABLES = {"$job": "nightjar", "$instance": ".+", "$__rate_interval": "1m"}
SELECTOR = re.compile(r"\bnightjar_\w+(?:\{[^}]*\})?")
LISTEN = "127.0.0.1:9180"  # of the sample


def promtool(*arguments, **more):
    return subprocess.run(["promtool", *arguments], capture_output=True, text=True,
                          timeout=time_limit(), **more)


class Promtool(unittest.TestCase):
    def check(self, *arguments, **more):
        done = promtool(*arguments, **more)
        self.assertEqual((0, ""), (done.returncode, done.stderr), done.stdout)

    def test_metrics(self):
        with tempfile.TemporaryDirectory() as folder:
            self.check("check", "metrics", input=metrics.printed(folder))

    def test_rules(self):
        self.check("check", "rules", "--lint=all", "--lint-fatal", metrics.RULES)
        self.check("test", "rules", metrics.RULES_TESTS)

    def test_configuration(self):
        self.check("check", "config", os.path.join(metrics.FOLDER, "prometheus.yml"))


class Target(http.server.ThreadingHTTPServer):
    """Serves the metrics that nightjar-test-metrics prints."""
    daemon_threads = True

    def __init__(self):
        with tempfile.TemporaryDirectory() as folder:
            self.text = metrics.printed(folder)
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.server.text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Prometheus:
    """
    Debian's, with the sample configuration, until close(). Alerts fire at once. `popen` starts it,
    and sockets to it are made in the context that `where` returns.
    """

    def __init__(self, folder, target, popen=subprocess.Popen, where=contextlib.nullcontext):
        self.where = where
        with where(), socket.create_server(("127.0.0.1", 0)) as s:
            self.address = f"127.0.0.1:{s.getsockname()[1]}"
        text = metrics.read(os.path.join(metrics.FOLDER, "prometheus.yml"))
        for old, new in ((LISTEN, target), ("15s", "200ms")):
            text = text.replace(old, new)
        with open(os.path.join(folder, os.path.basename(metrics.RULES)), "w") as f:
            f.write(re.sub(r"\bfor: \w+", "for: 0s", metrics.read(metrics.RULES)))
        path = os.path.join(folder, "prometheus.yml")
        with open(path, "w") as f:
            f.write("global: {scrape_timeout: 200ms, evaluation_interval: 500ms}\n" + text)
        self.log = os.path.join(folder, "prometheus.log")
        with open(self.log, "wb") as log:
            self.process = popen(
                ["prometheus", f"--config.file={path}", f"--web.listen-address={self.address}",
                 f"--storage.tsdb.path={folder}/tsdb"], stdout=log, stderr=log)

    def close(self):
        self.process.terminate()
        self.process.wait(time_limit())

    def ask(self, path, **parameters):
        """What the API answers; {} while Prometheus does not listen yet."""
        connection = http.client.HTTPConnection(self.address, timeout=time_limit())
        try:
            with self.where():
                connection.connect()
            connection.request("GET", f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
            return json.loads(connection.getresponse().read())
        except (ConnectionError, json.JSONDecodeError):
            return {}
        finally:
            connection.close()

    def series(self, expression):
        """The series that a query returns. An error of its syntax is raised."""
        for name, value in VARIABLES.items():
            expression = expression.replace(name, value)
        answer = self.ask("query", query=expression)
        if answer.get("status") == "error":
            raise AssertionError(f"{expression}: {answer['error']}")
        return answer.get("data", {}).get("result", [])


    def firing(self):
        return {one["metric"]["alertname"] for one in self.series('ALERTS{alertstate="firing"}')}


class Expressions(unittest.TestCase):
    """For subclasses. `prometheus`: scrapes a server."""

    def check_expressions(self, prometheus):
        until("two scrapes", lambda: prometheus.series(
            'count_over_time(up{job="nightjar"}[1m]) > 1'))
        self.assertEqual("1", prometheus.series("up")[0]["value"][1])
        for title, expression in metrics.dashboard_expressions():
            with self.subTest(panel=title):
                self.assertTrue(prometheus.series(expression.removesuffix(" > 0")), expression)
        for alert, expression in metrics.rule_expressions():
            with self.subTest(alert=alert):
                prometheus.series(expression)
                for selector in SELECTOR.findall(expression):
                    self.assertTrue(prometheus.series(selector), selector)

    def check_rules(self, prometheus):
        """All are loaded, and none has an error."""
        def rules():
            groups = prometheus.ask("rules").get("data", {}).get("groups", [])
            return {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
        until("the rules were evaluated",
              lambda: (found := rules()) and "unknown" not in found.values())
        self.assertEqual(dict.fromkeys(metrics.alerts(), "ok"), rules())


class Printed(Expressions):
    def test_expressions_and_rules(self):
        target = Target()
        self.addCleanup(target.server_close)
        self.addCleanup(target.shutdown)
        with tempfile.TemporaryDirectory() as folder:
            prometheus = Prometheus(folder, "%s:%d" % target.server_address)
            with contextlib.closing(prometheus):
                self.check_expressions(prometheus)
                self.check_rules(prometheus)
                for good, bad, alert in (
                        ("nightjar_reload_success 1", "nightjar_reload_success 0",
                         "NightjarReloadFailed"),
                        ('nightjar_port_link_up{port="2"} 1', 'nightjar_port_link_up{port="2"} 0',
                         "NightjarLinkDown")):
                    self.assertNotIn(alert, prometheus.firing())
                    self.assertIn(good, target.text)
                    target.text = target.text.replace(good, bad)
                    until(alert, lambda: alert in prometheus.firing())


class Scraped(Clients, Expressions):
    """The management listener of a server that serves TLS."""
    policy = "[class slow]\npath = /slow/\nrequest_rate = 1MiB/s\n[site default]\n"

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.world.options += ["--management-listen", LISTEN]

    def test_expressions_and_rules(self):
        for url in self.urls():
            self.client("curl", "-sS", "--cacert", self.ca, "-o", os.devnull, url + "10MiB")
        prometheus = Prometheus(
            self.world.scratch, LISTEN,
            popen=lambda words, **more: self.world.client_popen(*words, **more),
            where=lambda: inside(self.world.client_ns))
        self.addCleanup(prometheus.close)
        self.check_expressions(prometheus)
        self.check_rules(prometheus)
        self.assertEqual(set(), prometheus.firing() & {"NightjarDown", "NightjarReloadFailed"})
        self.read_policy("[server]\nnonsense = 1\n")
        until("a reload has failed", lambda: "NightjarReloadFailed" in prometheus.firing())
        self.read_policy(self.policy)
        until("a reload has succeeded", lambda: "NightjarReloadFailed" not in prometheus.firing())
        self.addCleanup(self.server.signal, signal.SIGCONT)
        self.server.signal(signal.SIGSTOP)
        until("the server is down", lambda: "NightjarDown" in prometheus.firing())
        self.server.signal(signal.SIGCONT)
        until("it is up", lambda: "NightjarDown" not in prometheus.firing())


if not metrics.HAS_LISTENER:
    del Scraped
