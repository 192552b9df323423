# SPDX-License-Identifier: BSD-3-Clause
"""The report of ./dev bench peers: a table per shape, nightjar's targets, and a chart."""
import subprocess

from perf.bench import record, serve
from perf.bench.ewyk_targets import quartiles
from perf.bench.pair import cpus
from perf.bench.svg import multiplot
from perf.bench.targets import Results, at_least, ratio, targets
from tests.netlab.world import Failed

AEAD = record.program("perf/micro/bench_aead", option="--tls")
TITLES = {
    "1x1": "1x1: one connection, one request at a time, 128 bytes",
    "1x100": "1x100: one connection of 100 streams, 128 bytes",
    "16x32": "16x32: 16 connections of 32 streams, 128 bytes",
    "1000x1": "1000x1: 1,000 connections of one request at a time, 128 bytes",
    "200KiB": "200KiB: 16 connections of 4 streams, 200 KiB",
    "10MiB": "10MiB: 8 connections of one stream, 10 MiB",
}
LINKS = tuple(link + variant for link in ("memif", "veth", "veth+tso")
              for variant in ("", "+tls", "+http1"))
PEERS = ("nightjar", "h2o", "nginx", "nghttpd", "haproxy", "jetty")
HEAD = ("peer      link            ", "     req/s", "CPU us/req", "   least", "    most",
        "all us/req", "req/core-s", "  x h2o", "    busy", "  client")


def us(ns):
    """Three significant digits."""
    value = ns / 1e3
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def h2o_of(rows, shape):
    """The row that all rows of a shape are compared with."""
    return next((found for link in ("veth", "veth+tls", "veth+http1")
                 if (found := values_of(rows, shape, "h2o", link))), None)


def values_of(rows, shape, peer, link):
    return next((row["values"] for row in rows
                 if (row["shape"], row["peer"], row["link"]) == (shape, peer, link)), None)


def order(row):
    return PEERS.index(row["peer"]), LINKS.index(row["link"])


def line(row, h2o):
    values = row["values"]
    m = {name: value["median"] for name, value in values.items()}
    cost = values["ns"]
    ratio = f"{m['full'] / h2o['full']['median']:.2f}" if h2o else "-"
    bulk = serve.SHAPES[row["shape"]][0] != "/128"
    last = (f"{m['bytes'] / 1e6:>9,.0f}{m['bytes_full'] / 1e9:>11.2f}" if bulk else
            f"{us(m['p50']):>9}{us(m['p99']):>11}")
    return (f"{row['peer']:<10}{row['link']:<16}{m['rate']:>11,.0f}{us(cost['median']):>12}"
            f"{us(cost['min']):>9}{us(cost['max']):>9}"
            f"{us(m['busy_ns']) if 'busy_ns' in m else '-':>12}{m['full']:>12,.0f}{ratio:>9}"
            f"{m['busy'] * 100:>8.0f}%{m['client_busy'] * 100:>8.0f}%{last}"
            + ("  the client was the limit" if row["client_limited"] else ""))


def table(run, failed, args, rounds):
    print(record.headline(run.facts))
    print("nightjar beside " + ", ".join(
        f"{name} {run.facts['versions'][name]}" for name in PEERS[1:] if name in args.peers)
        + f"; {rounds.n_done} rounds of {args.seconds} s: medians")
    for shape in args.shapes:
        rows = sorted((row for row in run.rows if row["shape"] == shape), key=order)
        ends = ("     MB/s", "  GB/core-s") if serve.SHAPES[shape][0] != "/128" else \
            ("   p50 us", "     p99 us")
        print(f"\n{TITLES[shape]}\n{HEAD[0]}" + " ".join(("", *HEAD[1:])) + "".join(ends))
        for row in rows:
            print(line(row, h2o_of(run.rows, shape)))
        for (where, peer, link), why in failed.items():
            if where in (shape, ""):
                some = any((r["peer"], r["link"]) == (peer, link) for r in rows)
                print(f"{peer:<10}{link:<16} {'A ROUND FAILED' if some else 'NOT MEASURED'}: "
                      f"{' '.join(why.split())[:150]}")


# --- targets --------------------------------------------------------------------------------------

def wanted(run):
    """Targets that these rows measure; missed targets come first."""
    found = targets(Results([{"bench": "peers", "rows": run.rows}]))
    return sorted((t for t in found if t.met is not None), key=lambda t: t.met)


def verdicts(found, what="Targets of nightjar"):
    if found:
        print(f"\n{what}:")
    for t in found:
        print(f"  {'met  ' if t.met else 'BELOW'}  {t.what}: {t.reached}, {t.wanted}")


# --- TLS ------------------------------------------------------------------------------------------

def aead_rates():
    """GB/s of encryption and of memcpy: records of 16 KiB in the cache, by bench_aead."""
    done = subprocess.run(["taskset", "-c", str(cpus()[1]), AEAD], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{AEAD}: exit status {done.returncode}: {done.stderr.strip()}")
    last = [line.split() for line in done.stdout.splitlines()]
    seal = max(float(words[-1]) for words in last if words[1:3] == ["AES-128-GCM", "seal"]
               and len(words) == 7)
    copy = next(float(words[-1]) for words in last if words[0] == "memcpy")
    return {"seal": seal, "memcpy": copy}


def median_of(run, value, shape, peer, *links):
    """The largest median over these links."""
    found = [v[value]["median"] for link in links if (v := values_of(run.rows, shape, peer, link))]
    return max(found, default=None)


def tls_targets(run):
    """nightjar over memif with TLS, by requests per core-second: against its own cleartext, against
    h2o and nginx over veth, with TSO where they are faster with it, and against the cost of
    cleartext with encryption in the place of a copy."""
    def against(what, shape, peer, least, *links):
        ours = median_of(run, "full", shape, "nightjar", "memif+tls")
        value = ratio(ours, median_of(run, "full", shape, peer, *links))
        return at_least(f"{shape} / {what}", least, value, lambda x: f"{x:.2f}")
    found = [against("its cleartext", shape, "nightjar", least, "memif")
             for shape, least in (("16x32", 0.8), ("1000x1", 0.75), ("10MiB", 0.7))]
    found += [against(peer, shape, peer, 2 if shape == "10MiB" else 1, "veth+tls", "veth+tso+tls")
              for peer in ("h2o", "nginx") for shape in ("16x32", "1000x1", "10MiB")]
    clear = median_of(run, "bytes_full", "10MiB", "nightjar", "memif")
    ours = median_of(run, "bytes_full", "10MiB", "nightjar", "memif+tls")
    if ours and clear:
        seal, copy = (run.facts["aead"][name] for name in ("seal", "memcpy"))
        bound = 1 / (1e9 / clear + 1 / seal - 1 / copy)
        what = (f"10MiB / {bound:.2f} GB/core-s = 1 / (1 / {clear / 1e9:.2f} cleartext "
                f"+ 1 / {seal:.2f} AEAD - 1 / {copy:.1f} copy)")
        found.append(at_least(what, 0.9, ours / 1e9 / bound, lambda x: f"{x:.2f}"))
    return [t for t in found if t.met is not None]


# --- HTTP/1.1 -------------------------------------------------------------------------------------

def http1_ratios(runs):
    """nightjar over memif: CPU per request of HTTP/1.1 divided by that of HTTP/2 in the same round,
    in which one server has both in turn."""
    shapes = dict.fromkeys(shape for shape, _, link in runs if link == "memif+http1")
    if shapes:
        print("\nnightjar over memif: CPU per request of HTTP/1.1 / HTTP/2, in each round")
    for shape in shapes:
        pair = [runs.get((shape, "nightjar", link), []) for link in ("memif", "memif+http1")]
        if len(pair[0]) != len(pair[1]):
            print(f"  {shape:<8} a round failed")
            continue
        low, middle, high = quartiles([b["ns"] / a["ns"] for a, b in zip(*pair)])
        print(f"  {shape:<8} median {middle:.3f}, quartiles {low:.3f} to {high:.3f}, "
              f"{len(pair[0])} rounds")


# --- chart ----------------------------------------------------------------------------------------

SERIES = [("nightjar", "memif", "nightjar, memif", "#b2182b"),
          ("nightjar", "veth", "nightjar, veth", "#ef8a62"), ("h2o", "veth", "h2o", "#2166ac"),
          ("nginx", "veth", "nginx", "#4393c3"), ("nghttpd", "veth", "nghttpd", "#92c5de"),
          ("haproxy", "veth", "HAProxy", "#878787"), ("jetty", "veth", "Jetty", "#c4c4c4")]
SETTINGS = """
set style data histograms
set style histogram errorbars gap 1.5 lw 1
set style fill solid 1 noborder
set boxwidth 0.9
set errorbars 0.4 front lc rgb '#303030' lw 1
set datafile missing '?'
set key outside top center horizontal
set xtics scale 0
unset grid
set grid ytics
set logscale y
set format y '%.0s%c'
"""


def group(rows, shape, tso):
    """A line of the chart's data: median, minimum and maximum of each of SERIES. nightjar's values
    are the same next to peers with TSO and without."""
    words = [f'"{shape}\\npeers: TSO"' if tso else f'"{shape}"']
    for peer, link, _, _ in SERIES:
        link = "veth+tso" if tso and peer != "nightjar" else link
        values = next((r["values"]["full"] for r in rows if (r["shape"], r["peer"], r["link"]) ==
                       (shape, peer, link)), None)
        words += [f"{values[name]:.6g}" for name in ("median", "min", "max")] if values else "???"
    return " ".join(words) + "\n"


def chart(rows, path):
    shapes = dict.fromkeys(row["shape"] for row in rows)
    data = "".join(group(rows, shape, False) for shape in shapes) + "".join(
        group(rows, shape, True) for shape in shapes
        if any(r["shape"] == shape and r["link"] == "veth+tso" for r in rows))
    least = min(row["values"]["full"]["min"] for row in rows)
    plot = f"$rows << EOD\n{data}EOD\nset yrange [{least / 2}:*]\n"
    plot += "set title 'Requests per second of the server''s core (log scale; bars: min to max)'"
    plot += "\nplot " + ", ".join(
        f"$rows using {2 + 3 * i}:{3 + 3 * i}:{4 + 3 * i}" + (":xtic(1)" if i == 0 else "")
        + f" title '{title}' lc rgb '{colour}'" for i, (_, _, title, colour) in enumerate(SERIES))
    multiplot(path, [plot + "\n"], 620, SETTINGS, columns=1)
