# SPDX-License-Identifier: BSD-3-Clause
"""Tests perf/bench/page.py: shortfalls come first, the committed page matches the recorded runs."""
import json
import os
import tempfile
import unittest

from perf.bench import page, record
from perf.bench.targets import Results, behind, targets


def run(bench, rows, **more):
    """A run in the form of record.py; rows are (shape, peer, link, {value: number})."""
    r = record.Run(bench)
    for shape, peer, link, values, *flags in rows:
        r.row(shape, [values], peer=peer, link=link, **(flags[0] if flags else {}))
    return {**r.facts, "rounds": 1, "rows": r.rows, "file": bench + ".json", **more}


def serve(full=0.8e6, p50=5000, many=0.5e6, **more):
    return run("serve", [("1x1", "nightjar", "memif", {"full": 3e5, "ns": 3e3, "p50": p50}),
                         ("16x32", "nightjar", "memif", {"full": full, "ns": 1e9 / full}),
                         ("1000x1", "nightjar", "memif", {"full": 5e5, "ns": 2e3}),
                         ("100kx1", "nightjar", "memif", {"full": many, "ns": 1e9 / many})],
               **more)


def peers(nightjar, h2o):
    of = lambda full: {"full": full, "ns": 1e9 / full, "rate": full}  # noqa: E731
    return run("peers", [("1000x1", "nightjar", "memif", of(6e5)),
                         ("1000x1", "nightjar", "veth", of(nightjar)),
                         ("1000x1", "h2o", "veth", of(h2o))])


class Page(unittest.TestCase):
    def first_section(self, *runs):
        text = page.page(list(runs), None)
        return text[text.index("## 1. "):text.index("## 2. ")]

    def test_missed_targets_come_first(self):
        line = ("- **Missed**: 16x32 over memif, requests per core-second: 0.650 M, "
                "wanted >= 0.700 M")
        first = self.first_section(serve(full=0.65e6))
        self.assertTrue(first.split("\n\n")[1].startswith(line), first)
        self.assertNotIn("16x32 over memif, requests per core-second:",
                         self.first_section(serve(full=0.75e6)))
        self.assertIn("| 16x32 over memif, requests per core-second | >= 0.700 M | 0.750 M | "
                      "reached |", page.page([serve(full=0.75e6)], None))

    def test_both_kinds_of_bounds(self):
        self.assertIn("round trip, p50: 8.5 us, wanted <= 8.0 us",
                      self.first_section(serve(p50=8500)))
        self.assertIn("over 100,000 connections against 1,000: 0.60 x, wanted >= 0.80 x",
                      self.first_section(serve(many=0.3e6)))

    def test_two_lcores_are_judged_by_the_worst_shape(self):
        of = lambda ratio: {"full": 1e6, "ns": 1e3, "against_one": ratio}  # noqa: E731
        two = run("exchange", [("16x32", "nightjar", "none", of(1.01)),
                               ("1000x1", "nightjar", "none", of(1.06))])
        self.assertIn("the worst shape: 1.060 x, wanted <= 1.050 x", self.first_section(two))

    def test_the_ratio_of_the_least_rounds_is_shown(self):
        two = run("exchange", [("16x32", "nightjar", "none", {
            "full": 1e6, "ns": 1e3, "against_one": 1.2, "least_against_one": 1.03})])
        self.assertIn("the worst shape: 1.200 x (by the least of all rounds: 1.030 x), wanted",
                      self.first_section(two))

    def test_a_target_without_measurement_is_not_reached(self):
        self.assertIn("**Not measured**: 1000x1 over memif against h2o",
                      self.first_section(serve()))
        self.assertTrue(all(t.met is None for t in targets(Results([]))))

    def test_a_peer_that_is_ahead_is_named(self):
        ahead, even = peers(5e4, 6e4), peers(7e4, 6e4)
        self.assertIn("**Behind**: 1000x1: nightjar over veth does 0.83 x what h2o over veth does",
                      self.first_section(ahead))
        self.assertIn("CPU per request against h2o's: 1.20 x", self.first_section(ahead))
        self.assertEqual([], behind(Results([even])))
        self.assertIn("1000x1 over memif against h2o over veth, requests per core-second: 10.00 x",
                      self.first_section(even))

    def test_attacks(self):
        row = {"p50": 9e3, "p99": 3e4, "p99.9": 9e4, "p50_alone": 8e3, "p99_alone": 2e4,
               "p99.9_alone": 8e4, "ratio_p99": 1.5, "busy": 0.5, "connections": 1e4,
               "opened": 2e4, "by_fin": 1e4, "by_rst": 0, "refused": 0, "bytes": 2**21}
        attacks = run("attacks", [("flood", "nightjar", "memif", row,
                                   {"counted": {"status_4xx": 5e5, "answered_404": 100}})])
        text = page.page([attacks], None)
        self.assertIn("flood over HTTP/1.1 at half load: p99 of other clients against p99 without: "
                      "1.50 x (+10.0 us), wanted <= 1.20 x", self.first_section(attacks))
        attacks["rows"][0]["noisy"] = True
        self.assertIn("**Not measured**: flood over HTTP/1.1", self.first_section(attacks))
        self.assertIn("| flood | 10,000 | 50 % | 8 | 9 | 20 | 30 | 80 | 90 | 1.50 | 1.5 to 1.5 |",
                      text)
        self.assertIn("| flood | 20,000 | 10,000 | 0 | 0 | 2 | `status_4xx` 500,000 |", text)

    def test_peers_over_http1_have_a_section_of_their_own(self):
        of = lambda ns: {"full": 1e9 / ns, "ns": ns, "rate": 1e9 / ns}  # noqa: E731
        both = run(page.HTTP1, [("16x32", "nightjar", "memif", of(1000)),
                                ("16x32", "nightjar", "memif+http1", of(900)),
                                ("16x32", "h2o", "veth+http1", of(2000))])
        text = page.page([serve(), peers(7e4, 6e4), both], None)
        self.assertIn("## 6. Comparison over HTTP/1.1\n", text)
        self.assertIn("| 16x32 | 0.900 | 0.900 | 0.900 |", text)
        self.assertIn("| h2o | veth+http1 | 500,000 |", text)

    def test_failures_are_shown(self):
        failed = [{"shape": "100k", "link": "memif", "why": "the server ends\nthem again"}]
        self.assertIn("serve, 100k memif: the server ends them again",
                      self.first_section(serve(failed=failed)))

    def test_runs_of_two_commits_are_shown(self):
        other = serve()
        other["commit"] = other["commit"] | {"id": "other"}
        self.assertIn("The runs are of 2 commits", page.page([other, peers(7e4, 6e4)], None))


class Reading(unittest.TestCase):
    def read(self, *values):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, f"{i}.json") for i in range(len(values))]
            for path, value in zip(paths, values):
                with open(path, "w", encoding="utf-8") as f:
                    f.write(value if isinstance(value, str) else record.compact(value))
            return page.read(paths)

    def complaint(self, *values):
        with self.assertRaises(record.Unreadable) as found:
            self.read(*values)
        return str(found.exception)

    def test_messages_about_invalid_files(self):
        without = serve()
        del without["bench"]
        self.assertIn("0.json: not the --json output of a ./dev bench command: it has no bench",
                      self.complaint(without))
        self.assertIn("it has no bench, machine", self.complaint("[]"))
        self.assertIn("0.json: Expecting", self.complaint("{"))
        self.assertIn("of ./dev bench memory, which is not part",
                      self.complaint(run("memory", [])))
        self.assertIn("1.json: a second run of serve", self.complaint(serve(), serve()))

    def test_runs_of_peers_over_both_versions(self):
        http1 = peers(7e4, 6e4) | {"command": ["./dev", "bench", "peers", "--http1"]}
        runs, _ = self.read(http1, peers(7e4, 6e4))
        self.assertEqual(["peers", page.HTTP1], [r["bench"] for r in runs])

    def test_a_written_run_is_read(self):
        runs, baseline = self.read(serve(), {"tools": {"cc": "1"}, "shapes": {}})
        self.assertEqual("serve", runs[0]["bench"])
        self.assertEqual(serve()["rows"], runs[0]["rows"])
        self.assertEqual({"cc": "1"}, baseline["tools"])

    def test_compact_json_is_the_same(self):
        value = {"a": [{"b": [1, 2.5], "c": {"d": "x [\" { y"}}], "e": "}", "f": []}
        self.assertEqual(value, json.loads(record.compact(value)))

    def test_a_value_that_some_rounds_lack(self):
        found = record.summary([{"a": 1, "b": None}, {"a": 3, "b": 5}, {"a": 2}])
        self.assertEqual({"median": 2, "min": 1, "max": 3, "runs": [1, 3, 2]}, found["a"])
        self.assertEqual([5], found["b"]["runs"])


class Committed(unittest.TestCase):
    def test_the_page_matches_the_runs(self):
        self.assertIsNone(page.complaint())


if __name__ == "__main__":
    unittest.main()
