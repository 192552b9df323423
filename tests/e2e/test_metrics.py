# SPDX-License-Identifier: BSD-3-Clause
"""
The metrics in both formats, and what refers to them: the alerts and the dashboard of
examples/monitoring, and the tables of docs/observe.md.
"""
import glob
import os
import re
import tempfile
import unittest

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.netlab import metrics
from tests.netlab.case import ServerCase, counter_kinds
from tests.netlab.world import REPO, until

PAGE = os.path.join(REPO, "docs/observe.md")


def printed(form="prometheus"):
    with tempfile.TemporaryDirectory() as folder:
        return metrics.printed(folder, form)


def counters():
    """{name of a counter: (kind, description)} of lib/telem/counters_*.def."""
    found = {}
    for path in glob.glob(os.path.join(REPO, "lib/telem/counters_*.def")):
        found |= {name: (kind, text) for kind, name, text in re.findall(
            r'^NJ_COUNTER\((\w+),\s*(\w+),\s*"(.*)"\)$', metrics.read(path), re.M)}
    return found


def table(heading):
    """The rows of the table below a heading of the page, each a tuple of its cells."""
    part = metrics.read(PAGE).partition(f"\n{heading}\n")[2].partition("\n#")[0]
    return [tuple(cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|"))
            for line in part.splitlines() if line.startswith("| `")]


def labels_of(family):
    names = {name for _, labels in family.samples for name, _ in labels} - {"le"}
    return [name for _, labels in list(family.samples)[:1] for name, _ in labels if name in names]


class Printed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.families = metrics.parse(printed())
        cls.counters = counters()

    def group_of(self, counter):
        """The family and the label's value of a counter that is one of several by reason."""
        for name, family in self.families.items():
            stem = name.removeprefix("nightjar_").removesuffix("_total")
            labels = [dict(labels) for _, labels in family.samples]
            if counter.startswith(stem + "_") and family.type == "counter" and labels and labels[0]:
                rest = counter.removeprefix(stem + "_")
                if any(rest in label.values() for label in labels):
                    return name, rest
        return None

    def is_of_a_counter(self, name):
        stem = name.removeprefix("nightjar_")
        kind, _ = self.counters.get(stem.removesuffix("_total"), (None, None))
        return kind is not None and (kind == "GAUGE") != stem.endswith("_total") and \
            not labels_of(self.families[name])

    def test_help_of_counters_is_their_description(self):
        self.assertEqual(set(counter_kinds()), set(self.counters))
        for counter, (kind, text) in self.counters.items():
            name = f"nightjar_{counter}" + ("" if kind == "GAUGE" else "_total")
            if not self.group_of(counter) and name not in ("nightjar_h2_abuse_total",):
                with self.subTest(counter):
                    self.assertEqual(text, self.families[name].help)

    def test_openmetrics(self):
        """The parser of the Prometheus client for Python, and the names of the other format."""
        seen = set()
        for family in text_string_to_metric_families(printed("openmetrics")):
            suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
            seen.add(family.name + suffix)
            wanted = self.families[family.name + suffix]
            self.assertEqual(wanted.help, family.documentation)
            self.assertEqual(len(wanted.samples), len(family.samples), family.name)
            self.assertEqual({"info": "gauge"}.get(family.type, family.type), wanted.type)
        self.assertEqual(set(self.families), seen)

    def check_names(self, where, expression):
        names = set(metrics.NAME.findall(expression))
        self.assertEqual(set(), names - metrics.series(self.families), where)
        return names

    def test_rules_name_metrics_that_exist(self):
        rules = metrics.rule_expressions()
        self.assertEqual(metrics.alerts(), [alert for alert, _ in rules])
        self.assertEqual(len(rules), len(set(metrics.alerts())))
        for alert, expression in rules:
            with self.subTest(alert):
                self.assertTrue(self.check_names(alert, expression) or alert == "NightjarDown")
        self.check_names("texts of the alerts", metrics.read(metrics.RULES))
        self.check_names("tests of the rules", metrics.read(metrics.RULES_TESTS))

    def test_each_alert_has_a_test(self):
        tested = set(re.findall(r'alertname="(\w+)"', metrics.read(metrics.RULES_TESTS)))
        self.assertEqual(set(metrics.alerts()), tested)

    def test_dashboard_names_metrics_that_exist(self):
        panels = metrics.dashboard_expressions()
        self.assertGreater(len(panels), 20)
        for title, expression in panels:
            with self.subTest(title):
                self.assertTrue(self.check_names(title, expression))
        for query in metrics.dashboard_queries():
            self.assertTrue(self.check_names(query, query))

    def test_labels_of_expressions_exist(self):
        """In {} and in by (): a label that no sample of the metric has selects nothing."""
        known = {name for family in self.families.values() for _, labels in family.samples
                 for name, _ in labels} | {"job", "instance", "alertname", "alertstate", "le"}
        for where, expression in metrics.rule_expressions() + metrics.dashboard_expressions():
            used = set(re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', expression))
            for names in re.findall(r"\b(?:by|on|ignoring|group_left) \(([^)]*)\)", expression):
                used |= set(re.findall(r"\w+", names))
            self.assertEqual(set(), used - known, where)
        for metric, selector in re.findall(r"(nightjar_\w+)\{([^}]*)\}",
                                           metrics.read(metrics.RULES)):
            for label, value in re.findall(r'(\w+)(?:=~|=|!=)"([^"]*)"', selector):
                for one in value.split("|"):
                    self.assertTrue(any((label, one) in labels for _, labels in
                                        self.families[metric].samples), (metric, label, one))

    def test_page_lists_all_families(self):
        """Those that are not named after one counter; HELP is the meaning."""
        wanted = [(f"`{name}`", family.type, ", ".join(f"`{label}`" for label in labels_of(family)),
                   family.help.replace(r"\\", "\\")) for name, family in self.families.items()
                  if not self.is_of_a_counter(name)]
        self.check_table("### Families", wanted)

    def test_page_lists_all_reasons(self):
        """Counters that are one family; their description is the meaning."""
        wanted = [(f"`{group[0]}`", f"`{group[1]}`", text)
                  for counter, (_, text) in self.counters.items()
                  if (group := self.group_of(counter))]
        self.check_table("### Reasons", wanted)

    def test_page_names_metrics_that_exist(self):
        names = set(metrics.NAME.findall(metrics.read(PAGE)))
        self.assertGreater(len(names), 100)
        self.assertEqual(set(), names - metrics.series(self.families) - set(self.families))

    def check_table(self, heading, wanted):
        rows = "\n".join("| " + " | ".join(row) + " |" for row in wanted)
        self.assertEqual(sorted(wanted), sorted(table(heading)), f"it should be:\n{rows}")


class Scraped(ServerCase):
    """By the management listener."""
    policy = "[class slow]\npath = /slow/\nrequest_rate = 1MiB/s\n"

    @classmethod
    def prepare(cls):
        cls.socket = os.path.join(cls.world.scratch, "management")
        cls.world.options += ["--management-socket", cls.socket]

    def scrape(self):
        kind, text = metrics.scrape(self.socket)
        self.assertEqual("text/plain", kind.partition(";")[0])
        return metrics.parse(text)

    def test_both_formats(self):
        families = self.scrape()
        kind, text = metrics.scrape(self.socket, accept=metrics.OPENMETRICS)
        self.assertEqual(metrics.OPENMETRICS, kind.partition(";")[0])
        self.assertEqual(len(families), len(list(text_string_to_metric_families(text))))

    def test_the_families_are_those_that_are_printed(self):
        self.assertEqual(set(metrics.parse(printed())), set(self.scrape()))

    def test_requests_are_counted(self):
        def value(name, labels=()):
            return self.scrape()[name].samples[name, labels]
        before = value("nightjar_requests_total")
        for _ in range(3):
            self.curl("-o", os.devnull, self.world.url("/200KiB"))
        self.assertEqual(before + 3, value("nightjar_requests_total"))
        until("three more in the class", lambda: value(
            "nightjar_class_open", (("class", "default"),)) == 0)
        self.assertEqual(1, value("nightjar_phase", (("phase", "run"),)))
        self.assertEqual(1, value("nightjar_reload_success"))
        stats = self.server.stats()
        self.assertEqual(stats["tcp_accepted"], value("nightjar_tcp_accepted_total"))

    def test_a_reload_that_fails(self):
        def success():
            families = self.scrape()
            return (families["nightjar_reload_success"].samples["nightjar_reload_success", ()],
                    families["nightjar_reload_time_seconds"].samples[
                        "nightjar_reload_time_seconds", ()])
        self.read_policy("[server]\nnonsense = 1\n")
        until("the reload has failed", lambda: success()[0] == 0)
        at = success()[1]
        self.read_policy(self.policy)
        until("a reload has succeeded", lambda: success()[0] == 1)
        self.assertGreaterEqual(success()[1], at)


if not metrics.HAS_LISTENER:
    del Scraped
