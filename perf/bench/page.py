# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench page [--check] [JSON ...]

Writes docs/performance.md, and its charts into docs/performance, from the --json output of
./dev bench serve, echo, peers (also with --http1), attacks and exchange, and from
perf/baseline.json. Without arguments it reads all files of perf/results and the baseline. The
committed page must be made of these; --check verifies that, as ./dev test does.

Shortfalls come first: each target that is missed or not measured, and each peer and shape for
which nightjar is slower.
"""
import argparse
import glob
import os
import sys

from perf.bench import record
from perf.bench.ewyk_targets import quartiles
from perf.bench.record import REPO, Unreadable
from perf.bench.svg import multiplot
from perf.bench.targets import Results, behind, targets

PAGE, CHARTS, RESULTS = "docs/performance.md", "docs/performance", "perf/results"
BASELINE = "perf/baseline.json"
STAGES = ("rx", "tcp", "h2", "handler", "tx")
HTTP1 = "peers --http1"  # the name of such a run on the page
BENCHES = {"serve": "sudo ./dev bench serve", "echo": "sudo ./dev bench echo",
           "peers": "sudo ./dev bench peers", HTTP1: "sudo ./dev bench peers --http1",
           "attacks": "sudo ./dev bench attacks", "exchange": "./dev bench exchange --threads 2"}
LIMITED = ("client_limit", "client_limited", "generator_limit")  # flags of rows


def read(paths):
    """(runs, the guard's baseline or None)"""
    runs, baseline = [], None
    for path in paths:
        run = record.read_json(path)
        if isinstance(run, dict) and "tools" in run and "shapes" in run:
            baseline = run
            continue
        run = record.checked(path, run)
        if run["bench"] == "peers" and "--http1" in run["command"]:
            run = run | {"bench": HTTP1}
        if run["bench"] not in BENCHES:
            raise Unreadable(f"{path}: of ./dev bench {run['bench']}, which is not part of the "
                             f"page; there are {', '.join(BENCHES)}")
        if any(run["bench"] == other["bench"] for other in runs):
            raise Unreadable(f"{path}: a second run of {run['bench']}: name one run of each")
        runs.append(run | {"file": os.path.basename(path)})
    return sorted(runs, key=lambda run: list(BENCHES).index(run["bench"])), baseline


# --- text -----------------------------------------------------------------------------------------

def rows_of(head, rows):
    """A table; the first column and those named with a < are to the left."""
    marks = ["---" if i == 0 or name.startswith("<") else "---:" for i, name in enumerate(head)]
    lines = [[name.lstrip("<") for name in head], marks, *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def short(value):
    """The value with three significant digits."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def value_of(row, name, scale=1):
    return short(row["values"][name]["median"] / scale) if name in row["values"] else ""


def worst_of(row, name):
    return short(row["values"][name]["max"]) if name in row["values"] else ""


def spread_of(row, name, scale=1):
    v = row["values"].get(name)
    return f"{short(v['min'] / scale)} to {short(v['max'] / scale)}" if v else ""


def limited(row):
    return any(row.get(flag) for flag in LIMITED)


def client_of(row):
    return value_of(row, "client_busy", 0.01) + " %" + (" (limit)" if limited(row) else "")


def not_ahead(r, found):
    missed = [t for t in found if t.met is False]
    unknown = [t for t in found if t.met is None]
    lines = [f"- **Missed**: {t.what}: {t.reached}, wanted {t.wanted}" for t in missed]
    lines += [f"- **Behind**: {text}" for _, text in behind(r)]
    lines += [f"- **Not measured**: {t.what} (wanted {t.wanted})" for t in unknown]
    for bench, run in r.runs.items():
        for one in run.get("failed", []) + run.get("missing", []):
            name = " ".join(filter(None, (one["shape"], one.get("peer"), one["link"])))
            why = " ".join(one["why"].split())[:200]
            lines.append(f"- **Failed**: {bench}, {name}: {why}")
    if not lines:
        lines = ["Nothing: every target is reached, and no peer is ahead at any shape."]
    return "## 1. Shortfalls\n\n" + "\n".join(lines) + "\n"


def wanted(found):
    verdict = {True: "reached", False: "**missed**", None: "**not measured**"}
    order = {False: 0, None: 1, True: 2}
    return "## 2. Targets\n\n" + rows_of(
        ("target", "wanted", "measured", "<"),
        [(t.what, t.wanted, t.reached, verdict[t.met])
         for t in sorted(found, key=lambda t: order[t.met])])


def where(runs):
    """Machine and commands, with a note if the runs are not comparable."""
    lines = ["## 3. Runs and machine\n"]
    for run in runs:
        c = run["commit"]
        with_changes = ", with changes that are not committed" if c["dirty"] else ""
        lines.append(f"- `{' '.join(run['command'])}`, {run['date']}: commit {c['name']}"
                     f"{with_changes}; {run['rounds']} rounds; "
                     + (f"{run['memory']['text']}; " if "memory" in run else "")
                     + f"load of the machine at the start {run['machine']['load']:.1f} "
                     f"([{run['file']}](../{RESULTS}/{run['file']}))")
    for m in dict.fromkeys(machine(run) for run in runs):
        lines.append(f"- Machine: {m}")
    names = {}
    for run in runs:
        names |= run["versions"]
    lines.append("- Versions: " + ", ".join(f"{k} {v}" for k, v in names.items()))
    for what, values in (("commits", {run["commit"]["id"] for run in runs}),
                         ("machines", {machine(run) for run in runs})):
        if len(values) > 1:
            lines.append(f"- **The runs are of {len(values)} {what}.**")
    return "\n".join(lines) + "\n"


def machine(run):
    m = run["machine"]
    return (f"{m['cpu']}, {m['cores']} CPUs{' of a virtual machine' if m['virtual'] else ''}, "
            f"{m['memory_bytes'] / 2**30:.0f} GiB, Linux {m['kernel']}, {m['system']}")


def serve_section(run):
    table = rows_of(
        ("shape", "<link", "req/s of a core", "ns", "least to most", "cycles",
         *(f"{s}, ns" for s in STAGES), "packets in", "out", "p50, us", "p99", "p99.9",
         "idle", "client busy"),
        [(row["shape"], row["link"], value_of(row, "full"), value_of(row, "ns"),
          spread_of(row, "ns"), value_of(row, "cycles"), *(value_of(row, s) for s in STAGES),
          value_of(row, "rx_packets"), value_of(row, "tx_packets"),
          *(value_of(row, p, 1e3) for p in ("p50", "p99", "p99.9")),
          value_of(row, "idle", 0.01) + " %",
          client_of(row))
         for row in run["rows"]])
    more = [f"- {row['shape']} over {row['link']}: {value_of(row, 'bytes_full', 1e9)} GB/s of a "
            "core" for row in run["rows"] if row["shape"] in ("200KiB", "10MiB")]
    more += [f"- {row['shape']} over {row['link']}: {value_of(row, 'connection_bytes')} bytes of "
             "ordinary memory per connection"
             for row in run["rows"] if "connection_bytes" in row["values"]]
    return ("CPU cost of a request on the server's core, with no kernel between server and "
            "nightjar-load. `./dev bench serve --help` describes the shapes and the "
            "columns.\n\n"
            "![nanoseconds per request](performance/serve.svg)\n\n" + table + "\n"
            + "\n".join(more) + "\n")


def echo_section(run):
    table = rows_of(
        ("frame, bytes", "<link", "Mpps of a core", "GB/s", "cycles per packet", "least to most",
         "idle", "<beside", "share"),
        [(row["shape"], row["link"], value_of(row, "full", 1e6), value_of(row, "bytes_full", 1e9),
          value_of(row, "cycles"), spread_of(row, "cycles"),
          value_of(row, "idle", 0.01) + " %" + (" (generator's limit)" if limited(row) else ""),
          row["beside"], f"{row['share']:.2f}")
         for row in run["rows"] if row["peer"] != "nightjar"])
    return ("testpmd in place of the server swaps MAC addresses and returns each frame: the limit "
            "of the device. The share is the rate of bench serve divided by this, in turns.\n\n"
            + table)


def http1_ratios(run):
    """Of nightjar over memif, in each round: one server has both in turn."""
    values = {(row["shape"], row["link"]): row["values"]["ns"]["runs"]
              for row in run["rows"] if row["peer"] == "nightjar"}
    pairs = [(shape, ours, values.get((shape, "memif+http1")))
             for (shape, link), ours in values.items() if link == "memif"]
    found = [(shape, *quartiles([b / a for a, b in zip(h2, h1)])) for shape, h2, h1 in pairs
             if h1 and len(h1) == len(h2)]
    return "" if not found else (
        "\n### HTTP/1.1 and HTTP/2\n\nnightjar's CPU per request over HTTP/1.1, divided by that "
        "over HTTP/2 in the same round, over memif.\n\n" + rows_of(
            ("shape", "median", "lower quartile", "upper"),
            [(shape, f"{middle:.3f}", f"{low:.3f}", f"{high:.3f}")
             for shape, low, middle, high in found]))


def http1_section(run):
    return peers_tables(
        run, "The same files on the same CPU over HTTP/1.1. h2load (`--h1`) loads the peers and "
        "nightjar over veth; nightjar-load loads nightjar over memif, with HTTP/1.1 and HTTP/2 "
        "in turn.\n") + http1_ratios(run)


def attacks_section(run):
    rows = run["rows"]
    measured = lambda row, name: value_of(row, name, 1e3)  # noqa: E731
    return (
        "Latency of innocent clients of HTTP/2 beside attacks over HTTP/1.1 that keep the only "
        "lcore busy half of the time, in pairs of intervals with the attack and without. The row "
        "`requests` has ordinary requests of HTTP/2 in the place of the attack. "
        "[limits.md](limits.md#attacks-over-http11) describes what bounds each attack.\n\n"
        + rows_of(
            ("attack", "connections", "lcore busy", "p50 without, us", "with", "p99 without, us",
             "with", "p99.9 without, us", "with", "p99 with / without", "least to most"),
            [(row["shape"], value_of(row, "connections"), value_of(row, "busy", 0.01) + " %",
              *(measured(row, name + end) for name in ("p50", "p99", "p99.9")
                for end in ("_alone", "")),
              f"{row['values']['ratio_p99']['median']:.2f}", spread_of(row, "ratio_p99"))
             for row in rows])
        + "\nWhat the server counted in a round, and what it did with the attackers' "
        "connections:\n\n" + rows_of(
            ("attack", "opened", "closed by the server", "reset", "refused", "memory, MiB",
             "<counters"),
            [(row["shape"], *(value_of(row, name) for name in ("opened", "by_fin", "by_rst",
                                                               "refused")),
              value_of(row, "bytes", 2**20),
              ", ".join(f"`{name}` {short(n)}" for name, n in row["counted"].items()
                        if not name.startswith("answered_")))
             for row in rows]))


def peers_section(run):
    return peers_tables(
        run, "The same files on the same CPU. h2load loads the peers and nightjar over veth; "
        "nightjar-load loads nightjar over memif. `req/s of a core` is per second of the "
        "server's CPU time.\n\n![requests per core-second](performance/peers.svg)\n")


def peers_tables(run, text):
    for shape in dict.fromkeys(row["shape"] for row in run["rows"]):
        rows = [row for row in run["rows"] if row["shape"] == shape]
        rows.sort(key=lambda row: -row["values"]["full"]["median"])
        bulk = shape in ("200KiB", "10MiB")
        text += f"\n### {shape}\n\n" + rows_of(
            ("server", "<link", "req/s of a core", "CPU us per request", "least to most", "req/s",
             *(["GB/s of a core"] if bulk else ["p50, us", "p99, us"]), "client busy"),
            [(f"**{row['peer']}**" if row["peer"] == "nightjar" else row["peer"], row["link"],
              value_of(row, "full"), value_of(row, "ns", 1e3), spread_of(row, "ns", 1e3),
              value_of(row, "rate"),
              *([value_of(row, "bytes_full", 1e9)] if bulk else
                [value_of(row, "p50", 1e3), value_of(row, "p99", 1e3)]),
              client_of(row))
             for row in rows])
    return text


def exchange_section(run):
    return ("The server's code alone, with its clients in the same thread and no device: a lower "
            "bound. The last columns show the effect of a second busy lcore; the lcores share no "
            "data.\n\n" + rows_of(
                ("shape", "req/s of a core", "ns", "least to most", "cycles",
                 *(f"{s}, ns" for s in STAGES), "cycles on 2 lcores against 1", "least to most",
                 "by the least of all rounds"),
                [(row["shape"], value_of(row, "full"), value_of(row, "ns"), spread_of(row, "ns"),
                  value_of(row, "cycles"), *(value_of(row, s) for s in STAGES),
                  value_of(row, "against_one"), spread_of(row, "against_one"),
                  worst_of(row, "least_against_one"))
                 for row in run["rows"]]))


def guard_section(baseline):
    tools = ", ".join(f"{name} {value}" for name, value in baseline["tools"].items())
    return ("Instructions of a fixed exchange, counted by callgrind; CI fails when they grow by "
            f"3 %. They exclude the cost of cache misses. {tools}.\n\n" + rows_of(
                ("shape", "instructions per request"),
                [(shape, short(found["instructions"]))
                 for shape, found in baseline["shapes"].items()]))


def page(runs, baseline):
    r = Results(runs)
    found = targets(r)
    parts = ["# Performance\n\nGenerated by `./dev bench page` from the runs in "
             f"[{RESULTS}](../{RESULTS}); `./dev test` fails if they differ. Values are medians "
             "of all rounds. [perf/README.md](../perf/README.md) describes each benchmark and "
             "its limits.\n", not_ahead(r, found), wanted(found), where(runs)]
    sections = {"serve": ("CPU cost per request and stage", serve_section),
                "peers": ("Comparison with other servers", peers_section),
                "echo": ("Comparison with testpmd", echo_section),
                HTTP1: ("Comparison over HTTP/1.1", http1_section),
                "attacks": ("Attacks over HTTP/1.1", attacks_section),
                "exchange": ("One lcore and two", exchange_section)}
    number = 4
    for bench, (title, section) in sections.items():
        if bench in r.runs:
            parts.append(f"## {number}. {title}\n\n{section(r.runs[bench])}")
            number += 1
    if baseline:
        parts.append(f"## {number}. Instructions\n\n{guard_section(baseline)}")
    return "\n".join(parts)


# --- charts ---------------------------------------------------------------------------------------

SETTINGS = """
set style data histograms
set style fill solid 0.9 noborder
set boxwidth 0.8
set xtics scale 0
set bmargin 3
set key outside top center horizontal
"""


def serve_chart(run, path):
    """Nanoseconds of small requests by stage, and bytes per second of downloads."""
    small = [row for row in run["rows"] if row["shape"] not in ("200KiB", "10MiB") and
             all(stage in row["values"] for stage in STAGES)]
    large = [row for row in run["rows"] if row["shape"] in ("200KiB", "10MiB")]
    plots = []
    if small:
        data = "".join(f'"{row["shape"]}\\n{row["link"]}" ' + " ".join(
            f"{row['values'][stage]['median']:.6g}" for stage in STAGES) + "\n" for row in small)
        plots.append(f"$s << EOD\n{data}EOD\nset style histogram rowstacked\nset yrange [0:*]\n"
                     "set title 'ns of the lcore per request of 128 bytes'\nplot " + ", ".join(
                         f"$s using {i + 2}{':xtic(1)' if i == 0 else ''} title '{stage}'"
                         for i, stage in enumerate(STAGES)) + "\n")
    if large:
        data = "".join(f'"{row["shape"]}\\n{row["link"]}" '
                       f"{row['values']['bytes_full']['median'] / 1e9:.6g}\n" for row in large)
        plots.append(f"$l << EOD\n{data}EOD\nset style histogram clustered\nset yrange [0:*]\n"
                     "set title 'GB/s of a core'\nplot $l using 2:xtic(1) notitle\n")
    if plots:
        multiplot(path, plots, 480, SETTINGS)


def peers_chart(run, path):
    shapes = list(dict.fromkeys(row["shape"] for row in run["rows"]))
    who = list(dict.fromkeys((row["peer"], row["link"]) for row in run["rows"]))
    values = {(row["shape"], row["peer"], row["link"]): row["values"]["full"]["median"]
              for row in run["rows"]}
    data = "".join(f'"{shape}" ' + " ".join(
        f"{values[shape, *w]:.6g}" if (shape, *w) in values else "?" for w in who) + "\n"
        for shape in shapes)
    plot = (f"$p << EOD\n{data}EOD\nset style histogram clustered gap 2\nset logscale y\n"
            "set format y '%.0s%c'\nset datafile missing '?'\n"
            "set title 'Requests per second of the server''s core (log scale)'\nplot " + ", ".join(
                f"$p using {i + 2}{':xtic(1)' if i == 0 else ''} title '{peer}, {link}'"
                for i, (peer, link) in enumerate(who)) + "\n")
    multiplot(path, [plot], 620, SETTINGS, columns=1)


def charts(runs, folder):
    os.makedirs(folder, exist_ok=True)
    for run in runs:
        draw = {"serve": serve_chart, "peers": peers_chart}.get(run["bench"])
        if draw:
            draw(run, os.path.join(folder, run["bench"] + ".svg"))


def committed():
    """The runs and the baseline of the committed page."""
    found = sorted(glob.glob(os.path.join(REPO, RESULTS, "*.json")))
    baseline = os.path.join(REPO, BASELINE)
    return found + ([baseline] if found and os.path.exists(baseline) else [])


def complaint():
    """How the committed page differs from the committed runs; None if it does not."""
    paths, path = committed(), os.path.join(REPO, PAGE)
    there = record.read_text(path)
    if not paths:
        return f"{PAGE} exists, but {RESULTS} has no run" if there else None
    return None if there == page(*read(paths)) else \
        f"{PAGE} differs from {RESULTS}: run ./dev bench page"


def main():
    parser = argparse.ArgumentParser(prog="./dev bench page", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("json", nargs="*", metavar="JSON")
    args = parser.parse_args()
    if args.check:
        return complaint()
    paths = [record.caller_path(path) for path in args.json] or committed()
    if not paths:
        return f"no JSON file is named, and {RESULTS} has none"
    runs, baseline = read(paths)
    if not runs:
        return "these files have no run: the page needs one of " + ", ".join(BENCHES)
    with open(os.path.join(REPO, PAGE), "w", encoding="utf-8") as f:
        f.write(page(runs, baseline))
    charts(runs, os.path.join(REPO, CHARTS))
    print(f"wrote {PAGE} and {CHARTS}/*.svg")
    return None


if __name__ == "__main__":
    try:
        if wrong := main():
            sys.exit(f"bench page: {wrong}")
    except Unreadable as unreadable:
        sys.exit(f"bench page: {unreadable}")
