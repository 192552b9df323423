# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench guard [--renew] [--profile N] [--cache-sim] [--json FILE] [SHAPE ...]

Instructions of the server per request. The counts do not depend on the speed or the load of the
machine. callgrind counts a release build's nj-exchange, which has a server and its clients in one
thread. Only the server's instructions count, after its first requests (./dev bench exchange --help
describes the shapes).

The guard compares the counts with perf/baseline.json. A count more than 3 % above it is a failure,
and the report lists the functions that grew. With a count more than 3 % below it, a new baseline is
due: --renew writes it; commit it with the change that reduced the count. If compiler or libraries
differ from the baseline's, the guard reports differences and does not fail. --profile only lists
the N most expensive functions.

--cache-sim only shows misses per request in caches that callgrind simulates: 32 KiB for
instructions (I1) and 32 KiB for data (D1), 8 ways each, and 1 MiB behind both (LL), 16 ways.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import tempfile

from perf.bench import record

PROGRAM = record.program("perf/tools/exchange/nj-exchange")
BASELINE = os.path.join(record.REPO, "perf", "baseline.json")
PAGE = os.path.join(record.REPO, "docs", "performance.md")
SHAPES = ("1x1", "16x32", "route", "1000x1", "200KiB", "10MiB", "16x32+tls", "10MiB+tls",
          "1000x1+http1", "10MiB+http1", "1000x1+site", "1000x1+sites")
LIMIT = 0.03
COUNTED = "nj_exchange_server_step"
# The same simulated machine everywhere: by default callgrind simulates the host's caches.
CACHES = ("--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64")
MISSES = {"I1": ("I1mr",), "D1 read": ("D1mr",), "D1 write": ("D1mw",),
          "LL": ("ILmr", "DLmr", "DLmw")}
# Flags of the CPU for which libraries have other code.
CPU_FLAGS = {"avx2": {"avx2"}, "aes": {"aes", "pclmulqdq", "movbe"}}
KEPT = 80  # functions of a shape in the baseline; the others are one sum
TOLD = 15  # functions that grew, in a report
SECONDS = 900  # for one shape, on whatever machine: 10 on an idle one
REST = "(all others)"
OURS = ("nj-exchange", "nj-ahead")
AROUND = ("main", "(below main)", "libc: (below main)", "libc: __libc_start_main@@GLIBC_2.34",
          "run", "count_shape", "pair_run", "until_done", "turn", COUNTED)  # who calls the server
CLONE = re.compile(r"(?:\.(?:part|isra|constprop|cold|lto_priv)(?:\.\d+)?)+$")
VARIANT = re.compile(r"_(?:sse\d|ssse3|avx|evex|erms|x86_64)")  # libc's, which the CPU selects


class Failed(Exception):
    pass


# ---- callgrind's counts ----

def name_of(object_path, function):
    """The name in the baseline: independent of CPU, path, library version and clone suffix."""
    library = os.path.basename(object_path).split(".so")[0]
    function = CLONE.sub("", re.sub(r"'\d+$", "", function))
    if library in OURS:
        return function
    if function.startswith("0x") or function == "???":
        function = "(no name)"  # of a stripped library: addresses depend on its build
    elif library == "libc" and VARIANT.search(function):
        function = "mem* and str*"
    return f"{library}: {function}"


def parse(lines):
    """(own, inclusive): instructions by name, from a callgrind file without compressed names."""
    own, inclusive = collections.Counter(), collections.Counter()
    object_path = function = ""
    called = False
    for line in lines:
        key, equals, value = line.rstrip("\n").partition("=")
        if equals and key in ("ob", "fn", "cob", "calls"):
            if key == "ob":
                object_path = value
            elif key == "fn":
                function = name_of(object_path, value)
            called = called or key == "calls"
        elif line[:1].isdigit():
            n = int(line.split()[1])
            if not called:
                own[function] += n
            inclusive[function] += n
            called = False
    return own, inclusive


def misses(lines):
    """Misses of the whole file, by cache; empty if no cache was simulated."""
    events, totals = [], []
    for line in lines:
        key, _, values = line.partition(":")
        events = values.split() if key == "events" else events
        totals = [int(n) for n in values.split()] if key == "totals" else totals
    if "D1mr" not in events:
        return {}
    totals += [0] * (len(events) - len(totals))  # callgrind omits trailing zeros
    total = dict(zip(events, totals))
    return {cache: sum(total[event] for event in of) for cache, of in MISSES.items()}


def count(program, arguments, options=()):
    """Counts of the server in `program`, per request. `options` are callgrind's."""
    with tempfile.TemporaryDirectory(prefix="nj-guard-") as scratch:
        out = os.path.join(scratch, "callgrind.out")
        # The alignment of the stack affects copying: use the same name and environment everywhere.
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--toggle-collect={COUNTED}",
             "--compress-strings=no", "--compress-pos=no", f"--callgrind-out-file={out}", *options,
             "./" + os.path.basename(program), "--count", *arguments],
            cwd=os.path.dirname(program), env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
        if run.returncode:
            raise Failed(f"{' '.join(arguments)}: {run.stderr}")
        with open(out) as f:
            lines = f.readlines()
    own, inclusive = parse(lines)
    found = json.loads(run.stdout)
    n, missed = found["requests"], misses(lines)
    if not own:
        raise Failed(f"{' '.join(arguments)}: callgrind counted no instructions in {COUNTED}()")
    return {"requests": n, "instructions": sum(own.values()) / n,
            **{key: found[key] / n for key in ("steps", "rx_packets", "tx_packets")},
            **({"misses": {cache: m / n for cache, m in missed.items()}} if missed else {}),
            "functions": {name: cost / n for name, cost in own.items()},
            "inclusive": {name: cost / n for name, cost in inclusive.items()}}


def tools():
    """The tools and libraries that the instruction counts depend on."""
    def version(package):
        return record.said_by("pkg-config", "--modversion", package)
    comment = subprocess.run(["readelf", "-p", ".comment", PROGRAM], capture_output=True, text=True)
    compiler = re.search(r"\]\s+(.*\S)", comment.stdout)
    with open("/proc/cpuinfo") as f:
        flags = set(f.read().split())
    return {"compiler": compiler[1] if compiler else "unknown", "libdpdk": version("libdpdk"),
            "libsodium": version("libsodium"), "libcrypto": version("libcrypto"),
            "libc": os.confstr("CS_GNU_LIBC_VERSION"),
            "valgrind": record.said_by("valgrind", "--version").removeprefix("valgrind-"),
            **{name: "yes" if needs <= flags else "no" for name, needs in CPU_FLAGS.items()}}


# ---- before and after ----

def shortened(functions):
    """The most expensive functions, and one sum of the others."""
    ranked = sorted(functions.items(), key=lambda item: (-item[1], item[0]))
    kept = {name: round(cost, 1) for name, cost in ranked[:KEPT]}
    kept[REST] = round(sum(cost for _, cost in ranked[KEPT:]), 1)
    return kept


def grown(before, after):
    """(name, count before, count now) of functions whose count grew, the largest growth first.
    A function that the baseline does not name had at most the count of its cheapest function."""
    least = min((cost for name, cost in before.items() if name != REST), default=0)
    least = least if before.get(REST) else 0
    found = []
    for name, cost in after.items():
        growth = cost - before.get(name, least)
        if growth >= 0.5:  # baselines are rounded
            was = f"{before[name]:,.1f}" if name in before else f"up to {least:,.1f}"
            found.append((growth, name, was if least or name in before else "new", cost))
    return [entry[1:] for entry in sorted(found, key=lambda entry: (-entry[0], entry[1]))]


def compare(shape, before, after):
    """(verdict, lines): "grown", "same" or "shrunk", and the lines of the report."""
    was, now = before["instructions"], after["instructions"]
    change = now / was - 1
    lines = [f"{shape:<13}{was:>14,.1f} -> {now:>14,.1f} instructions per request, {change:+.2%}"]
    for key, what in (("rx_packets", "packets to"), ("tx_packets", "packets from")):
        if abs(after[key] / before[key] - 1) > LIMIT:
            lines.append(f"    {what} the server, per request: {before[key]:.2f} -> "
                         f"{after[key]:.2f}")
    if change > LIMIT:
        for name, told, cost in grown(before["functions"], after["functions"])[:TOLD]:
            lines.append(f"    {told:>18} -> {cost:>14,.1f}  {name}")
        return "grown", lines
    return ("shrunk" if change < -LIMIT else "same"), lines


def differences(before, after):
    return [f"{name}: {before.get(name)} in the baseline, {after.get(name)} now"
            for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)]


def judge(baseline, now_tools, results):
    """Prints the comparison. Returns (shapes that passed, shapes that failed)."""
    verdicts = collections.Counter()
    for shape, after in results.items():
        before = baseline["shapes"].get(shape)
        if not before:
            print(f"{shape:<13}{'':>17} {after['instructions']:>14,.1f} instructions per request; "
                  "it has no baseline: --renew")
            verdicts["grown"] += 1
            continue
        verdict, lines = compare(shape, before, after)
        verdicts[verdict] += 1
        print(*lines, sep="\n")
    others = differences(baseline["tools"], now_tools)
    if others:
        print("The baseline was made with other tools, so differences do not fail:", *others,
              sep="\n    ")
        if verdicts["grown"] or verdicts["shrunk"]:
            print("To keep these tools: ./dev bench guard --renew")
        return len(results), 0
    if verdicts["shrunk"]:
        print(f"More than {LIMIT:.0%} fewer instructions: keep them with ./dev bench guard --renew")
    if verdicts["grown"]:
        print(f"More than {LIMIT:.0%} more instructions. To accept them: "
              "./dev bench guard --renew, and give the reason in the commit.")
    return len(results) - verdicts["grown"], verdicts["grown"]


def renew(now_tools, results):
    """Writes the counted shapes. The other shapes stay in the file, if the tools are the same."""
    try:
        with open(BASELINE) as f:
            baseline = json.load(f)
    except FileNotFoundError:
        baseline = {"tools": now_tools, "shapes": {}}
    if baseline["tools"] != now_tools:
        if set(results) != set(SHAPES):
            raise Failed("the tools differ from the baseline's: renew all shapes at once")
        baseline = {"tools": now_tools, "shapes": {}}
    for shape, after in results.items():
        baseline["shapes"][shape] = {
            "requests": after["requests"], "instructions": round(after["instructions"], 1),
            **{key: round(after[key], 4) for key in ("steps", "rx_packets", "tx_packets")},
            "functions": shortened(after["functions"])}
    with open(BASELINE, "w") as f:
        json.dump(baseline, f, indent=1)
        f.write("\n")
    print(f"{os.path.relpath(BASELINE, record.REPO)} is renewed: commit it")
    if os.path.exists(PAGE):
        print("docs/performance.md has these figures, too: ./dev bench page")


def profile(shape, found, n):
    total = found["instructions"]
    print(f"\n{shape}: {total:,.1f} instructions per request; per request "
          f"{found['steps']:.3f} steps, {found['rx_packets']:.3f} packets in, "
          f"{found['tx_packets']:.3f} out")
    for title, key in (("its own", "functions"), ("with callees", "inclusive")):
        costs = {name: cost for name, cost in found[key].items()
                 if key == "functions" or (name not in AROUND and "(no name)" not in name)}
        print(f"\n{'':>12}{'share':>8}  {title}")
        for name, cost in sorted(costs.items(), key=lambda item: (-item[1], item[0]))[:n]:
            print(f"{cost:>12,.1f}{cost / total:>8.2%}  {name}")


def show_misses(results):
    print(f"{'per request':<13} {'instructions':>12}  misses:", *(f"{c:>9}" for c in MISSES))
    for shape, found in results.items():
        print(f"{shape:<13} {found['instructions']:>12,.1f}         ",
              *(f"{found['misses'][cache]:>9,.2f}" for cache in MISSES))


def main():
    parser = argparse.ArgumentParser(prog="./dev bench guard", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--renew", action="store_true", help="write perf/baseline.json")
    parser.add_argument("--profile", type=int, metavar="N")
    parser.add_argument("--cache-sim", action="store_true",
                        help="show misses of simulated caches, without a comparison")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", default=list(SHAPES))
    args = parser.parse_args()
    record.check_names(parser, args.shapes, SHAPES)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        options = CACHES if args.cache_sim else ()
        results = dict(zip(args.shapes, pool.map(lambda shape: count(PROGRAM, [shape], options),
                                                 args.shapes)))
    now_tools = tools()
    if args.json:
        record.dump(args.json, {"tools": now_tools, "shapes": results})
    for shape in results if args.profile else ():
        profile(shape, results[shape], args.profile)
    if args.cache_sim:
        show_misses(results)
    if args.renew:
        renew(now_tools, results)
    if args.renew or args.profile or args.cache_sim:
        return 0
    with open(BASELINE) as f:
        passed, failed = judge(json.load(f), now_tools, results)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    record.run_main("bench guard", main, Failed, subprocess.TimeoutExpired)
