# SPDX-License-Identifier: BSD-3-Clause
"""Tests perf/bench/guard.py: parsing of callgrind's output, and the threshold of failure."""
import contextlib
import io
import json
import os
import tempfile
import unittest

from perf.bench import ahead, exchange, guard

EXCHANGE = "ob=/a/b/build-release/perf/tools/exchange/nj-exchange\n"
PROFILE = EXCHANGE + """fl=???
fn=nj_shard_step
0 100
cfn=nj_h2_input
calls=7 0
0 50
3 11
cob=/usr/lib/x86_64-linux-gnu/libc.so.6
cfn=__memcpy_avx_unaligned_erms
calls=1 0
0 9

fn=nj_h2_input.part.0
0 30
fi=other.h
17 12

fn=nj_h2_input'2
0 8

ob=/usr/lib/x86_64-linux-gnu/libc.so.6
fn=__memcpy_avx_unaligned_erms
281 5
fn=__memset_sse2_unaligned
281 4
fn=malloc
12 6

ob=/usr/lib/libnghttp2.so.14.24.1
fn=0x0000000000017ed0
0 20
fn=0x0000000000017ee0
0 21
fn=nghttp2_is_fatal
0 1
"""
TOOLS = {"compiler": "GCC: 12", "libdpdk": "22.11"}


def shape(**functions):
    return {"requests": 100, "instructions": sum(functions.values()), "steps": 1.0,
            "rx_packets": 1.0, "tx_packets": 0.5, "functions": functions}


class Parse(unittest.TestCase):
    own, inclusive = guard.parse(PROFILE.splitlines(keepends=True))

    def test_costs_of_calls_belong_to_the_callee(self):
        self.assertEqual(self.own["nj_shard_step"], 111)
        self.assertEqual(self.inclusive["nj_shard_step"], 170)

    def test_clones_are_one_function(self):
        self.assertEqual(self.own["nj_h2_input"], 50)

    def test_functions_of_libraries_have_a_prefix(self):
        self.assertEqual(self.own["libnghttp2: nghttp2_is_fatal"], 1)
        self.assertEqual(self.own["libc: malloc"], 6)

    def test_functions_that_differ_by_cpu_or_build_are_one(self):
        self.assertEqual(self.own["libc: mem* and str*"], 9)
        self.assertEqual(self.own["libnghttp2: (no name)"], 41)

    def test_the_sum_is_complete(self):
        self.assertEqual(sum(self.own.values()), 111 + 50 + 15 + 42)


class Misses(unittest.TestCase):
    events = "events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\n"

    def test_each_cache_is_the_sum_of_its_events(self):
        text = self.events + "\nfn=a\n0 900 200 100 1 2 3 4 5 6\ntotals: 900 200 100 1 2 3 4 5 6\n"
        self.assertEqual(guard.misses(text.splitlines(keepends=True)),
                         {"I1": 1, "D1 read": 2, "D1 write": 3, "LL": 15})

    def test_missing_values_at_the_end_are_zero(self):
        self.assertEqual(guard.misses([self.events, "totals: 900 200 100 1 2\n"]),
                         {"I1": 1, "D1 read": 2, "D1 write": 0, "LL": 0})

    def test_no_misses_without_simulation(self):
        self.assertEqual(guard.misses(["events: Ir\n", "totals: 900\n"]), {})

    def test_instructions_are_the_first_of_many_costs(self):
        own, inclusive = guard.parse([EXCHANGE, "fn=a\n", "0 900 200 100 1 2 3\n", "cfn=b\n",
                                      "calls=1 0\n", "0 50 7 7\n"])
        self.assertEqual((own["a"], inclusive["a"]), (900, 950))

    def test_misses_are_shown_per_request(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            guard.show_misses({"16x32": shape(a=100.0) | {"misses": {
                "I1": 9.4, "D1 read": 19.51, "D1 write": 16.9, "LL": 2.5}}})
        self.assertRegex(out.getvalue(), r"16x32 +100\.0 +9\.40 +19\.51 +16\.90 +2\.50\n")


class Compare(unittest.TestCase):
    before = shape(parse=1000.0, send=2000.0, look=7000.0)

    def verdict(self, **functions):
        verdict, lines = guard.compare("16x32", self.before, shape(**functions))
        return verdict, "\n".join(lines)

    def test_a_growth_below_the_threshold_passes(self):
        verdict, text = self.verdict(parse=1290.0, send=2000.0, look=7000.0)  # +2.9 %
        self.assertEqual(verdict, "same")
        self.assertIn("+2.90%", text)

    def test_a_growth_above_the_threshold_fails_and_names_functions(self):
        verdict, text = self.verdict(parse=1310.0, send=2100.0, look=6900.0)  # +3.1 %
        self.assertEqual(verdict, "grown")
        self.assertRegex(text, r"1,000\.0 -> +1,310\.0  parse\n +2,000\.0 -> +2,100\.0  send")
        self.assertNotIn("look", text)

    def test_a_new_function_is_named(self):
        verdict, text = self.verdict(parse=1000.0, send=2000.0, look=7000.0, again=400.0)
        self.assertEqual(verdict, "grown")
        self.assertRegex(text, r" new -> +400\.0  again")

    def test_a_function_of_the_rest_is_named_if_it_must_have_grown(self):
        before = {"a": 100.0, "b": 20.0, guard.REST: 30.0}
        self.assertEqual(guard.grown(before, {"a": 100.0, "b": 20.0, "c": 19.0, "d": 25.0}),
                         [("d", "up to 20.0", 25.0)])

    def test_a_large_decrease_needs_a_new_baseline(self):
        self.assertEqual(self.verdict(parse=700.0, send=2000.0, look=7010.0)[0], "same")
        self.assertEqual(self.verdict(parse=690.0, send=2000.0, look=6990.0)[0], "shrunk")

    def test_another_number_of_packets_is_shown(self):
        after = shape(parse=1000.0, send=2000.0, look=7000.0)
        after["tx_packets"] = 0.6
        text = "\n".join(guard.compare("16x32", self.before, after)[1])
        self.assertIn("packets from the server, per request: 0.50 -> 0.60", text)

    def test_the_largest_growth_comes_first(self):
        self.assertEqual(guard.grown({"a": 10.0, "b": 20.0, "c": 5.0, "gone": 9.0},
                                     {"a": 11.0, "b": 25.0, "c": 5.4, "d": 3.0}),
                         [("b", "20.0", 25.0), ("d", "new", 3.0), ("a", "10.0", 11.0)])


class Judge(unittest.TestCase):
    baseline = {"tools": TOOLS, "shapes": {"1x1": shape(a=100.0), "16x32": shape(a=100.0)}}

    def judge(self, tools, **results):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            counts = guard.judge(self.baseline, tools, {name.replace("_", ""): result
                                                        for name, result in results.items()})
        return counts, out.getvalue()

    def test_each_shape_counts(self):
        counts, text = self.judge(TOOLS, _1x1=shape(a=104.0), _16x32=shape(a=100.0))
        self.assertEqual(counts, (1, 1))
        self.assertIn("104.0  a", text)

    def test_fewer_instructions_pass_with_advice_to_renew(self):
        counts, text = self.judge(TOOLS, _1x1=shape(a=90.0))
        self.assertEqual(counts, (1, 0))
        self.assertIn("--renew", text)

    def test_other_tools_warn_only(self):
        counts, text = self.judge({**TOOLS, "compiler": "GCC: 13"}, _1x1=shape(a=150.0))
        self.assertEqual(counts, (1, 0))
        self.assertIn("compiler: GCC: 12 in the baseline, GCC: 13 now", text)
        self.assertIn("150.0  a", text)

    def test_a_shape_without_baseline_fails(self):
        self.assertEqual(self.judge(TOOLS, _10MiB=shape(a=1.0))[0], (0, 1))


class Renew(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(setattr, guard, "BASELINE", guard.BASELINE)
        guard.BASELINE = os.path.join(scratch.name, "baseline.json")

    def renew(self, tools, results):
        with contextlib.redirect_stdout(io.StringIO()):
            guard.renew(tools, results)
        with open(guard.BASELINE) as f:
            return json.load(f)

    def test_a_renewed_baseline_passes(self):
        results = {name: shape(a=1000.04, **{f"f{i}": 2.0 for i in range(100)})
                   for name in guard.SHAPES}
        baseline = self.renew(TOOLS, results)
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(guard.judge(baseline, TOOLS, results), (len(guard.SHAPES), 0))
        kept = baseline["shapes"]["1x1"]["functions"]
        self.assertEqual(len(kept), guard.KEPT + 1)
        self.assertEqual(kept[guard.REST], 2.0 * (101 - guard.KEPT))

    def test_renewal_of_one_shape_keeps_the_others(self):
        self.renew(TOOLS, {"1x1": shape(a=1.0), "16x32": shape(a=2.0)})
        baseline = self.renew(TOOLS, {"1x1": shape(a=3.0)})
        self.assertEqual(baseline["shapes"]["1x1"]["instructions"], 3.0)
        self.assertEqual(baseline["shapes"]["16x32"]["instructions"], 2.0)

    def test_tools_are_not_mixed(self):
        self.renew(TOOLS, {"1x1": shape(a=1.0), "16x32": shape(a=2.0)})
        with self.assertRaises(guard.Failed):
            self.renew({**TOOLS, "libdpdk": "23.11"}, {"1x1": shape(a=3.0)})


class Committed(unittest.TestCase):
    """The baseline in the repository."""
    @classmethod
    def setUpClass(cls):
        with open(guard.BASELINE) as f:
            cls.shapes = json.load(f)["shapes"]

    def test_it_has_each_shape(self):
        self.assertEqual(set(self.shapes), set(guard.SHAPES))

    def test_small_requests_and_bulk_are_counted_with_tls_too(self):
        for name in ("16x32", "10MiB"):
            self.assertIn(name + "+tls", list(self.shapes))

    def test_only_shapes_with_tls_encrypt(self):
        for name, found in self.shapes.items():
            encrypts = any(of.startswith("libcrypto: ") for of in found["functions"])
            self.assertEqual(encrypts, name.endswith("+tls"), name)


class Exchange(unittest.TestCase):
    """Results of nj-exchange as rows of a page."""

    @staticmethod
    def cost(cycles):
        return {"requests": 10, "steps": 5, "rx_packets": 10, "tx_packets": 5, "cycles": cycles,
                "stages": {"tcp": 30, "h2": 10}}

    def test_figures_are_per_request(self):
        found = {"tsc_hz": 2e9, "shapes": {"1x1": {"threads": [
            {"alone": [self.cost(4000), self.cost(6000)], "together": []}]}}}
        (shape, runs), = exchange.rows(found)
        self.assertEqual((shape, len(runs)), ("1x1", 2))
        self.assertEqual(runs[0], {"cycles": 400, "ns": 200, "full": 5e6, "rx_packets": 1,
                                   "tx_packets": 0.5, "tcp": 150, "h2": 50})

    def test_a_thread_is_compared_with_itself_in_the_same_round(self):
        threads = [{"alone": [self.cost(100), self.cost(200)],
                    "together": [self.cost(c) for c in (100, 120, 210, 230)]},
                   {"alone": [self.cost(50), self.cost(50)],
                    "together": [self.cost(c) for c in (50, 50, 60, 60)]}]
        (_, runs), = exchange.rows({"tsc_hz": 1e9, "shapes": {"1x1": {"threads": threads}}})
        self.assertEqual([round(run["against_one"], 6) for run in runs], [1.1, 1.1, 1, 1.2])

    def test_the_least_of_all_rounds_is_compared_with_the_least(self):
        threads = [{"alone": [self.cost(100), self.cost(200)],
                    "together": [self.cost(c) for c in (150, 99, 120, 230)]},
                   {"alone": [self.cost(80), self.cost(50)],
                    "together": [self.cost(c) for c in (49, 75, 45, 90)]}]
        (_, runs), = exchange.rows({"tsc_hz": 1e9, "shapes": {"1x1": {"threads": threads}}})
        self.assertEqual([run.get("least_against_one") for run in runs], [1.2, 1.5, None, None])


class Ahead(unittest.TestCase):
    """Results of nj-ahead as a table."""
    simulated = [{"instructions": 6106.4, "misses": {"I1": 59.6, "D1 read": 30.0, "D1 write": 35.9,
                                                     "LL": 1.706}},
                 {"instructions": 5931.0, "misses": {"I1": 16.6, "D1 read": 45.0, "D1 write": 38.2,
                                                     "LL": 2.08}}]

    def test_figures_are_below_their_variant(self):
        found = ahead.columns(self.simulated, [[500, 460, 480, 470, 490],
                                               [420, 440, 400, 430, 410]])
        lines = ahead.table("plain", ["k=1", "k=all"], found)
        self.assertEqual([line.split() for line in lines], [
            ["plain", "k=1", "k=all"], ["instructions", "6,106", "5,931"],
            ["I1", "misses", "59.6", "16.6"], ["D1", "misses", "65.9", "83.2"],
            ["LL", "misses", "1.71", "2.08"], ["ns,", "least", "460", "400"],
            ["ns,", "lower", "quartile", "470", "410"], ["ns,", "median", "480", "420"],
            ["ns,", "upper", "quartile", "490", "430"]])

    def test_a_round_has_a_multiple_of_512_requests(self):
        for handler in ahead.HANDLERS:
            n = ahead.n_requests(handler, 32)
            self.assertTrue(n >= 512 and n % 512 == 0, handler)


if __name__ == "__main__":
    unittest.main()
