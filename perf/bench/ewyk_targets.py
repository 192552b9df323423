# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench ewyk --targets: targets of the strategies, as ratios of runs of one round.

The load of the machine changes from round to round, and less from one run to the next. So the
benchmark compares adjacent runs, and reverses their order each round. A ratio is of one round; the
table has the median and the quartiles of the rounds.
"""
import statistics
import sys

# Share of wasted recruits with one producer: half of the share measured before the strategy
# published IDLE ahead of waking a recruit. With two producers the share is only reported.
WASTED = {"tiny/b0": 0.97 / 2, "4KiB/b0": 0.89 / 2, "4KiB/b1": 0.66 / 2}
# (strategy, task, threads, least share of the unblocked rate that is kept, with 1 % blocking)
KEPT = (("adaptive", "5us", 64, 0.90), ("adaptive", "4KiB", 256, 0.66), ("lcore", "4KiB", 64, 0.98))
PRODUCERS = ("1", "2")
POOL = 64


def quartiles(values):
    """(lower, median, upper)"""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3


def groups():
    """Lists of (strategy, cell, threads). The members of a list are compared with each other."""
    for n in PRODUCERS:
        for strategy, task, pool, _ in KEPT:
            yield [(strategy, f"{task}/{blocking}/{n}", pool) for blocking in ("b0", "b1")]
        yield [(strategy, f"4KiB/b0/{n}", POOL) for strategy in ("adaptive", "pec", "pc")]
        yield [("adaptive", f"{cell}/{n}", POOL) for cell in WASTED if cell != "4KiB/b0"]


def name_of(strategy, cell, pool):
    return f"{strategy} {cell} {pool}"


def measure(run, rounds, ms):
    """{name: [run, ...]}, one run of each round."""
    results = {}
    for i in rounds:
        for group in groups():
            for which in group if i % 2 == 0 else group[::-1]:
                print(f"\rround {i + 1} of {rounds.n}, {name_of(*which)}\033[K", end="",
                      file=sys.stderr)
                strategy, cell, pool = which
                results.setdefault(name_of(*which), []).append(run(strategy, cell, ms, pool))
    print("\r\033[K", end="", file=sys.stderr)
    return results


def per_second(r):
    return r["per_second"]


def cpu_ns(r):
    return r["cpu_ns"]


def ratios(results, above, below, key):
    """Omits rounds in which a run completed no task: the machine was too busy."""
    both = zip(results[name_of(*above)], results[name_of(*below)])
    return [key(a) / key(b) for a, b in both if a["per_second"] and b["per_second"]]


def wasted(results, *which):
    """Shares of the sent recruits; omits rounds in which none was sent."""
    return [r["recruits_wasted"] / r["recruits_sent"] for r in results[name_of(*which)]
            if r["recruits_sent"]]


def lines(results):
    """(name, values, comparison, limit); without a comparison the values are only reported."""
    for strategy, task, pool, least in KEPT:
        for n in PRODUCERS:
            some, none = ((strategy, f"{task}/{b}/{n}", pool) for b in ("b1", "b0"))
            threads = "" if strategy == "lcore" else f", pool of {pool}"
            yield (f"{strategy}: rate kept with 1 % blocking, {task}/{n}{threads}",
                   ratios(results, some, none, per_second), ">" if least == 0.66 else ">=", least)
            yield ("the same, tasks per CPU second", ratios(results, none, some, cpu_ns), "", 0)
    for cell, most in WASTED.items():
        one, two = (wasted(results, "adaptive", f"{cell}/{n}", POOL) for n in PRODUCERS)
        yield f"share of adaptive's recruits wasted, {cell}/1", one, "<=", most
        yield f"the same, {cell}/2", two, "", 0
    for other, comparison, most in (("pec", "<", 1), ("pc", "<=", 1.3)):
        for n in PRODUCERS:
            of = [(strategy, f"4KiB/b0/{n}", POOL) for strategy in ("adaptive", other)]
            yield (f"adaptive's CPU per task / {other}'s, 4KiB/b0/{n}",
                   ratios(results, *of, cpu_ns), comparison, most)


def holds(value, comparison, limit):
    return {"<": value < limit, "<=": value <= limit, ">": value > limit,
            ">=": value >= limit}[comparison]


def verdicts(results):
    found = []
    for what, values, comparison, limit in lines(results):
        low, middle, high = quartiles(values) if values else (None,) * 3
        found.append({"what": what, "lower_quartile": low, "median": middle,
                      "upper_quartile": high, "rounds": len(values), "only_told": not comparison,
                      "wanted": f"{comparison} {limit:g}" if comparison else None,
                      "met": holds(middle, comparison, limit) if comparison and values else None})
    return found


def tell(found, n_rounds):
    print(f"\n{'median and quartiles of ' + str(n_rounds) + ' rounds':<58}{'median':>8}"
          f"{'quartiles':>16}{'target':>10}")
    for t in found:
        what = "    " * t["only_told"] + t["what"]
        if t["median"] is None:
            print(f"{what:<58}{'none':>8}")
            continue
        middle = f"{t['lower_quartile']:.3f}, {t['upper_quartile']:.3f}"
        verdict = "" if t["only_told"] else "  met" if t["met"] else "  NOT met"
        print(f"{what:<58}{t['median']:>8.3f}{middle:>16}{t['wanted'] or '':>10}{verdict}")
