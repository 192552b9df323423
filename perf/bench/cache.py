# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench cache [--quick] [--seeds N] [--seed S] [--json FILE] [TRACE ...]
./dev bench cache --log FILE

Hit ratios of cache policies. S3-FIFO is the server's own code (lib/store/cache_policy.c).
LRU, SIEVE and W-TinyLFU are for comparison. `former` is the server's former policy: files of up to
16 MiB on trial or hot, in four fifths of the memory, chunks of larger ones by LRU in the rest.
`trial` applies its rule for small files to all entries. Belady is the optimum, which knows the rest
of the trace. An entry is a file of up to 256 KiB, or a chunk of 256 KiB of a larger one. 100
readers read one chunk after the other, in random turns.

A TRACE is made from a seed:

{traces}

Sizes are log-normal (median 1 MiB, sigma 2.2) or log-uniform, from 4 KiB to 4 GiB; or all 1 MiB.
The cache has 1, 5 or 10 % of all files' bytes. Hits in the second half of the lookups are counted:
by bytes, and by requests, which are hits if all their chunks were in the cache.

--log reads an access log in the combined format instead, and uses the GETs with the status 200.
"""
import argparse
import concurrent.futures
import json
import os
import re
import statistics
import subprocess

from perf.bench import record

PROGRAM = record.program("perf/cache/nj-cache")
OURS = "S3-FIFO"
POLICIES = ("LRU", "former", "trial", "SIEVE", "W-TinyLFU", OURS, "Belady")
BUDGETS = ("1%", "5%", "10%")
LOOKS = 4_000_000
QUICK_LOOKS = 1_000_000
SECONDS = 900
# name: (description, keys of nj-cache)
TRACES = {
    "zipf-0.8": ("20 GiB, log-normal, popularity by Zipf 0.8, whole files", {"zipf": 0.8}),
    "zipf-1.0": ("the same with Zipf 1.0", {}),
    "equal": ("20 GiB in files of 1 MiB, Zipf 1.0", {"file_bytes": 1 << 20}),
    "wide": ("64 GiB, log-uniform, Zipf 1.0", {"footprint_mib": 65536, "log_uniform": 1}),
    "ranges": ("the same; 80 of 100 requests are for 64 KiB to 16 MiB from a random position",
               {"footprint_mib": 65536, "log_uniform": 1, "range_percent": 80}),
    "crawls-0.8": ("zipf-0.8 and 10 crawls over everything",
                   {"zipf": 0.8, "crawls": 10}),
    "crawls-1.0": ("zipf-1.0 and 10 crawls over everything", {"crawls": 10}),
    "drift": ("zipf-1.0; 20 times a tenth of the files exchanges ranks with others",
              {"shifts": 20, "shift_percent": 10}),
    "renewal": ("zipf-1.0; 3 times all files exchange ranks", {"shifts": 3, "shift_percent": 100}),
}
QUICK = ("zipf-1.0", "crawls-1.0", "drift")
# The targets of ADR 0020: Zipf 1.0 over 20 GiB with 1 GiB, without and with one crawl.
TARGET_BUDGET, WITHIN_POINTS, CRAWL_POINTS = "1024MiB", 1.0, 2.0


class Failed(Exception):
    """nj-cache failed; the text describes the reason."""


def simulate(policies, budgets, arguments, text=None):
    """{(budget, policy): a row of nj-cache's output}"""
    done = subprocess.run([PROGRAM, ",".join(policies), ",".join(budgets), *arguments],
                          input=text, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise Failed(done.stderr.strip())
    rows = map(json.loads, done.stdout.splitlines())
    return {(row["budget"], row["policy"]): row for row in rows}


def of_seed(job):
    keys, budgets, looks, seed = job
    keys = {"looks": looks, "seed": seed} | keys
    return simulate(POLICIES, budgets, [f"{name}={value}" for name, value in keys.items()])


def cell(values, ours):
    """The median, and the range of the differences to S3-FIFO with the same seed; for S3-FIFO the
    range of its values."""
    apart = values if ours is values else [a - b for a, b in zip(values, ours)]
    sign = "" if ours is values else "+"
    return f"{statistics.median(values):.1f} ({min(apart):{sign}.1f} to {max(apart):{sign}.1f})"


def table(what, results, budgets):
    print(f"\nHit ratio by {what}, %: median of the seeds; {OURS}: (least to most), others: (least "
          f"to most\nof the difference to {OURS} with the same seed)\n")
    print(f"| trace | cache | {' | '.join(POLICIES)} |")
    print("|---|---" + "|--:" * len(POLICIES) + "|")
    for name, seeds in results.items():
        for budget in budgets:
            of = {p: [seed[budget, p][what] for seed in seeds] for p in POLICIES}
            cells = " | ".join(cell(of[p], of[OURS]) for p in POLICIES)
            print(f"| {name} | {budget.replace('%', ' %')} | {cells} |")


def targets(plain, crawled):
    """Prints the two targets of a cache of 1 GiB. Returns whether both are met."""
    rivals = [p for p in POLICIES if p not in (OURS, "Belady")]
    behind = [max(seed[TARGET_BUDGET, p]["bytes"] for p in rivals) -
              seed[TARGET_BUDGET, OURS]["bytes"] for seed in plain]
    print("\nZipf 1.0 over 20 GiB, a cache of 1 GiB, bytes")
    print(f"  {OURS} behind the best of the others with the same seed, points: median "
          f"{statistics.median(behind):.2f}, most {max(behind):.2f} (wanted: at most "
          f"{WITHIN_POINTS:.0f})")
    print("  points of hit ratio that clients lose during a crawl over all files:")
    costs = {}
    for p in POLICIES:
        costs[p] = [a[TARGET_BUDGET, p]["middle"] - b[TARGET_BUDGET, p]["middle"]
                    for a, b in zip(plain, crawled)]
        print(f"    {p:<10} median {statistics.median(costs[p]):5.2f}, most {max(costs[p]):5.2f}"
              + (f" (wanted: at most {CRAWL_POINTS:.0f})" if p == OURS else ""))
    return statistics.median(behind) <= WITHIN_POINTS and \
        statistics.median(costs[OURS]) <= CRAWL_POINTS


def run_traces(args, names):
    seeds = range(args.seed, args.seed + args.seeds)
    looks = QUICK_LOOKS if args.quick else LOOKS
    jobs = {name: (TRACES[name][1], BUDGETS) for name in names}
    jobs |= {"target": ({}, (TARGET_BUDGET,)), "target, crawl": ({"crawls": 1}, (TARGET_BUDGET,))}
    run = record.begin("cache")
    print(f"{record.headline(run.facts)}\nseeds {seeds[0]} to {seeds[-1]}, {looks:,} lookups of "
          "clients each")
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = {name: [pool.submit(of_seed, (*job, looks, seed)) for seed in seeds]
                 for name, job in jobs.items()}
        found = {name: [f.result() for f in futures] for name, futures in found.items()}
    for name, (_, budgets) in jobs.items():
        for budget in budgets:
            for p in POLICIES:
                rows = [seed[budget, p] for seed in found[name]]
                run.row(f"{name} {budget}", [{k: r[k] for k in ("requests", "bytes", "middle")}
                                             for r in rows], peer=p, link="none")
    if args.json:
        run.write(args.json, rounds=args.seeds, seed=args.seed, looks=looks)
    for what in ("bytes", "requests"):
        table(what, {name: found[name] for name in names}, BUDGETS)
    return 0 if targets(found["target"], found["target, crawl"]) else 1


# ---- access logs ----

LINE = re.compile(r'"GET (\S+) [^"]*" 200 (\d+)')


def trace_of(lines):
    """(the input of nj-cache, number of files, number of requests)"""
    numbers, sizes, requests = {}, [], []
    for line in lines:
        if match := LINE.search(line):
            number = numbers.setdefault(match[1], len(numbers))
            if number == len(sizes):
                sizes.append(0)
            sizes[number] = max(sizes[number], int(match[2]))
            requests.append(number)
    text = "".join(f"{n}\n" for n in [*sizes, "", *requests])
    return text, len(sizes), len(requests)


def run_log(path):
    try:
        with open(record.caller_path(path), encoding="utf-8", errors="replace") as f:
            text, n_files, n_requests = trace_of(f)
    except OSError as why:
        raise Failed(f"{path}: {why.strerror}") from None
    if not n_requests:
        raise Failed(f"{path}: no line is a GET with the status 200 in the combined format")
    budgets = ("5%", "10%", "20%")
    found = simulate(POLICIES, budgets, ["-"], text)
    footprint = next(iter(found.values()))["footprint"]
    print(f"{path}: {n_requests:,} requests for {n_files:,} files, {footprint:,} bytes in pages")
    for what in ("bytes", "requests"):
        print(f"\nHit ratio by {what}, %\n\n| cache | {' | '.join(POLICIES)} |")
        print("|---" + "|--:" * len(POLICIES) + "|")
        for b in budgets:
            print(f"| {b} | " + " | ".join(f"{found[b, p][what]:.1f}" for p in POLICIES) + " |")
    return 0


def main():
    told = "\n".join(f"  {name:<12}{what}" for name, (what, _) in TRACES.items())
    parser = argparse.ArgumentParser(prog="./dev bench cache",
                                     description=__doc__.replace("{traces}", told),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help=f"2 seeds, a quarter of the lookups, only {', '.join(QUICK)}")
    parser.add_argument("--seeds", type=int, metavar="N", help="how many [9]")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="the first [1]")
    parser.add_argument("--log", metavar="FILE", help="an access log in place of the traces")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("traces", nargs="*", metavar="TRACE")
    args = parser.parse_args()
    record.check_names(parser, args.traces, TRACES, "trace")
    if args.log:
        if args.traces or args.quick or args.json:
            parser.error("--log cannot be combined with other options")
        return run_log(args.log)
    args.seeds = args.seeds if args.seeds is not None else 2 if args.quick else 9
    if not 1 <= args.seeds <= 1000 or not 0 <= args.seed <= 10**12:
        parser.error("--seeds: from 1 to 1000; --seed: from 0 to 10^12")
    return run_traces(args, args.traces or (QUICK if args.quick else list(TRACES)))


if __name__ == "__main__":
    record.run_main("bench cache", main, Failed, subprocess.TimeoutExpired)
