# SPDX-License-Identifier: BSD-3-Clause
"""Reads metrics in the text format of Prometheus, and what refers to them: rules, dashboards."""
import collections
import http.client
import json
import os
import re
import socket
import subprocess

from tests.netlab.limits import time_limit
from tests.netlab.world import REPO, Failed, server_path

FOLDER = os.path.join(REPO, "examples/monitoring")
RULES = os.path.join(FOLDER, "nightjar.rules.yml")
RULES_TESTS = os.path.join(FOLDER, "nightjar.rules.test.yml")
DASHBOARD = os.path.join(FOLDER, "nightjar-dashboard.json")
OPENMETRICS = "application/openmetrics-text"
NAME = re.compile(r"\bnightjar_[a-z0-9_]+\b")
SAMPLE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\})? (\d+(?:\.\d+)?)')
LABEL = re.compile(r'(\w+)="((?:[^"\\\n]|\\.)*)"')

Family = collections.namedtuple("Family", "type help samples")  # samples: {(name, labels): value}


def printed(folder, form="prometheus"):
    """
    The metrics of a server that does nothing, as nightjar-test-metrics prints them. `folder`
    exists, and is empty.
    """
    done = subprocess.run([server_path("nightjar-test-metrics"), folder, form],
                          capture_output=True, timeout=time_limit())
    if done.returncode:
        raise Failed(f"nightjar-test-metrics: {done.returncode}\n{done.stderr.decode()}")
    return done.stdout.decode()


def scrape(where, path="/metrics", accept="text/plain;version=0.0.4"):
    """
    The metrics of a listener: `where` is the path of a Unix socket, or "ADDRESS:PORT". Returns
    (content-type, text).
    """
    connection = http.client.HTTPConnection("localhost" if where[0] == "/" else where,
                                            timeout=time_limit())
    if where[0] == "/":
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(time_limit())
        connection.sock.connect(where)
    try:
        connection.request("GET", path, headers={"Accept": accept})
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    if response.status != 200:
        raise Failed(f"{where} {path}: status {response.status}: {text}")
    return response.getheader("content-type"), text


def parse(text):
    """{name: Family} of the format 0.0.4, in which counters have their names with _total."""
    found, family = {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, help_text = line.removeprefix("# HELP ").split(" ", 1)
            if name in found:
                raise Failed(f"{name} is there twice")
            family = found[name] = Family([], help_text, {})
        elif line.startswith("# TYPE "):
            name, kind = line.removeprefix("# TYPE ").split(" ")
            found[name].type.append(kind)
        else:
            sample = SAMPLE.fullmatch(line)
            if not sample:
                raise Failed(f"not a sample: {line}")
            key = sample[1], tuple(LABEL.findall(sample[2] or ""))
            if key in family.samples:
                raise Failed(f"twice: {line}")
            family.samples[key] = float(sample[3])
    return {name: family._replace(type="".join(family.type)) for name, family in found.items()}


def series(families):
    """The names of all series that these families can have."""
    return {name + suffix for name, family in families.items()
            for suffix in (("_bucket", "_count", "_sum") if family.type == "histogram" else ("",))}


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def alerts():
    """The names of the alerts."""
    return re.findall(r"- alert: (\w+)", read(RULES))


def rule_expressions():
    """[(alert, expression)]"""
    found = []
    for part in read(RULES).split("- alert: ")[1:]:
        lines = part.split("\n")
        at = next(i for i, line in enumerate(lines) if line.strip().startswith("expr:"))
        first = lines[at].partition("expr:")[2].strip()
        expression = [] if first == "|" else [first]
        if not expression:
            indent = len(lines[at]) - len(lines[at].lstrip())
            for line in lines[at + 1:]:
                if len(line) - len(line.lstrip()) <= indent:
                    break
                expression.append(line.strip())
        found.append((lines[0].strip(), " ".join(expression)))
    return found


def dashboard_expressions():
    """[(title of the panel, expression)]"""
    panels = json.loads(read(DASHBOARD))["panels"]
    return [(panel["title"], target["expr"]) for panel in panels
            for target in panel.get("targets", ())]


def dashboard_queries():
    """The queries of the dashboard's variables."""
    return [variable["query"]["query"] for variable in
            json.loads(read(DASHBOARD))["templating"]["list"] if variable["type"] == "query"]


HAS_LISTENER = '"management-listen"' in read(os.path.join(REPO, "lib/config/option_table.c"))
