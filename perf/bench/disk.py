# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench disk [--quick|--full] [--rounds N] [--json FILE] [SHAPE ...]

Large files, from the disk and from memory: nightjar (16 MiB and less are read whole; larger files
in chunks of 256 KiB by io_uring), nginx, h2o, and fio for what the disk can do. Each server has one
CPU, the last one, the clients the first. In each round everybody has a turn at a shape with a
process of its own, and the one that begins moves on by one each round.

  cold    16 connections read a file each, once, none of which is in memory: the page cache is told
          to forget them (posix_fadvise). First 16 files with a server that has just started
          (fresh), then 16 others (cold). nightjar's cache holds a quarter of 16. fio reads the
          second ones with O_DIRECT, in the same chunks, --depth of them at once, into ordinary
          memory (4 KiB) and into transparent hugepages (THP), as nightjar's is where it can be
  cached  16 connections read files (--large) again and again that are all in memory, against one
          of them (hot): CPU per GB. nightjar's are in its cache (--cache), the others' in the page
          cache. Over veth as many files are read at once as there are
  zipf    16 connections ask for whole files, of which the k-th is 1/k as popular as the first (Zipf
          1.0), of a cache that holds a twentieth: share of bytes that come from it.
          First as many requests as are measured; after them a crawl over everything and the same
          once more. nj-cache serves the same requests with LRU and other policies
  beside  4 clients who ask for 200 KiB, and again 10 ms after it came: their rate and the time to
          their first byte beside --cold-readers of as many files, at 1 MiB/s each, against without
  leave   1000 readers of as many places, 256 KiB/s each, each of which resets its stream after up
          to 4 MiB, at random: bytes that were read from the disk and never sent

Links:
  memif     shared memory between nightjar and nightjar-load, no kernel between
  veth      a veth pair without offloads, nj-downloads on the kernel's TCP. For nightjar, whose
            system calls for each packet are in its CPU time there
  veth+tso  the same with TSO, and checksums left out: the best case of nginx and h2o

`nginx` has sendfile, `nginx aio` has aio threads and directio, with two buffers of 256 KiB for each
response. h2o cannot pace, and so is not in `beside`.

Columns:
  GB/s      of bodies
  CPU s/GB  of all threads of the server. nightjar's lcore: cycles of its steps that found work, and
            in brackets what the kernel accounted to its other threads (the reader of files)
  all       nginx, h2o: seconds in which their CPU was not idle, per GB: with the TCP of packets
            that came while they slept, which the kernel accounts to nobody, and others' work
  disk      bytes read from the disk, by bytes of bodies. Reads ahead that were not needed are in it
  depth     reads that were under way, on the average of looks each 50 ms
  client    share of the client's CPU: near 100 % it is the limit

With two CPUs the thread that reads files runs on the client's, as the lcore has its own: that is
told below the table. Rounds of a busy machine differ: look at the spread there.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys

from perf.bench import record
from perf.bench.apart import summary
from perf.bench.cache import OURS, POLICIES
from perf.bench.cache import Failed as NoSimulation
from perf.bench.disk_shapes import SHAPES, sites
from perf.bench.disk_worlds import GIB, PAGES, Site
from perf.bench.peers_worlds import versions
from tests.netlab.world import Failed

BROKEN = (Failed, NoSimulation, OSError, subprocess.SubprocessError)
PROGRAMS = {"nginx": "nginx", "nginx aio": "nginx", "h2o": "h2o", "fio": "fio"}
MEMIF = ("nightjar", "memif")
# Wanted; each is the median of the ratios within a round.
CACHED_MAX, COLD_MAX, NGINX_MAX, FIO_MIN, BESIDE_RATE, BESIDE_P99 = 1.1, 1.3, 0.5, 0.9, 0.9, 1.2
HITS_BEHIND, CRAWL_COST, NEVER_SENT = 0.01, 0.02, 0.03


# --- rounds ---------------------------------------------------------------------------------------

def installed(lanes, missing):
    for who, link in lanes:
        if who in PROGRAMS and not shutil.which(PROGRAMS[who]):
            missing[who, link] = "it is not installed"
    return [lane for lane in lanes if lane not in missing]


def measure(args, site):
    """({(cell, who, link): {round: values}}, {(shape, who, link): why there are none}, rounds)"""
    runs, failed = {}, {}
    with record.Rounds(args.rounds) as rounds:
        for i in rounds:
            for shape in args.shapes:
                lanes = SHAPES[shape](args, site)
                missing = {}
                turns = installed([lane for lane in lanes if lane[0] in args.peers], missing)
                failed |= {(shape, *lane): why for lane, why in missing.items()}
                first = i % max(1, len(turns))
                for lane in turns[first:] + turns[:first]:
                    if (shape, *lane) in failed:
                        continue
                    print(f"\rround {i + 1} of {args.rounds}, {shape}, {lane[0]} over {lane[1]}"
                          "\033[K", end="", file=sys.stderr, flush=True)
                    try:
                        for cell, values in lanes[lane](i).items():
                            runs.setdefault((cell, *lane), {})[i] = values
                    except BROKEN as why:
                        failed[shape, *lane] = str(why)
    print("\r\033[K", end="", file=sys.stderr)
    return runs, failed, rounds


# --- what is told ---------------------------------------------------------------------------------

def median(rounds, name):
    values = [v[name] for v in rounds.values() if name in v]
    return statistics.median(values) if values else None


def ratio(runs, name, one, other):
    """(median of the ratios within a round, or None; least; most)"""
    pairs = [(runs[one][i][name], runs[other][i][name])
             for i in runs.get(one, {}) if i in runs.get(other, {})]
    found = [a / b for a, b in pairs if b]
    return (statistics.median(found), min(found), max(found)) if found else None


def text(value, form, unit=""):
    return "-" if value is None else f"{value:{form}}{unit}"


def table(runs):
    print(f"\n{'':<8}{'server':<11}{'link':<10}{'GB/s':>7}{'CPU s/GB':>10}{'(others)':>10}"
          f"{'all':>8}{'disk':>8}{'depth':>7}{'client':>8}{'1st byte p99':>14}")
    for (cell, who, link), rounds in runs.items():
        if cell in ("beside", "leave"):
            continue
        m = lambda name, rounds=rounds: median(rounds, name)  # noqa: E731
        percent = lambda name: None if m(name) is None else 100 * m(name)  # noqa: E731
        first = None if m("first_p99") is None else m("first_p99") / 1e6
        speed = None if m("bytes") is None else m("bytes") / 1e9
        print(f"{cell:<8}{who:<11}{link:<10}{text(speed, '.2f'):>7}"
              f"{text(m('cpu_gb'), '.3f'):>10}{text(m('others_gb'), '.3f'):>10}"
              f"{text(m('all_gb'), '.3f'):>8}"
              f"{text(percent('from_disk'), '.1f', '%'):>8}{text(m('depth'), '.1f'):>7}"
              f"{text(percent('client_busy'), '.0f', '%'):>8}"
              f"{text(first, '.2f', ' ms') if cell in ('cold', 'fresh') else '':>14}")
    besides = [key for key in runs if key[0] == "beside"]
    if besides:
        print(f"\nhot clients beside cold readers, by without{'rate':>10}{'1st byte p50':>14}"
              f"{'p99':>8}{'p99 alone':>12}{'beside':>10}{'disk':>12}")
    for key in besides:
        m = lambda name, rounds=runs[key]: median(rounds, name)  # noqa: E731
        print(f"{'':<8}{key[1]:<11}{key[2]:<24}{m('rate'):>10.2f}{m('first_p50'):>14.2f}"
              f"{m('first_p99'):>8.2f}{m('alone_p99') / 1e6:>9.2f} ms{m('within_p99') / 1e6:>7.2f} "
              f"ms{m('disk_bytes') / 1e6:>7.0f} MB/s")
    if ("zipf", *MEMIF) in runs:
        rounds = runs["zipf", *MEMIF]
        print(f"\nzipf: hit ratio by bytes {100 * median(rounds, 'hits'):.1f} %; nj-cache with the "
              "same requests: " +
              ", ".join(f"{p} {100 * median(rounds, 'sim ' + p):.1f}" for p in POLICIES))


    if ("leave", "nightjar", "veth") in runs:
        m = lambda name: median(runs["leave", "nightjar", "veth"], name)  # noqa: E731
        print(f"\nleave: {m('left'):.0f} readers left; {m('disk_bytes') / 1e6:.0f} MB came from "
              f"the disk, {100 * m('never_sent'):.2f} % of which were never sent")


def judged(runs):
    """[(what, (median, least, most), wanted, is it met)]: of what was measured."""
    rows = []

    def at_most(what, found, limit, more=True):
        if found:
            rows.append((what, found, f"{'<=' if more else '>='} {limit:g}",
                         found[0] <= limit if more else found[0] >= limit))
    cold, nginx = ("cold", *MEMIF), ("cold", "nginx", "veth+tso")
    for pages in PAGES:
        at_most(f"cold: rate over memif, by fio's with pages of {pages}",
                ratio(runs, "bytes", cold, ("cold", "fio", pages)), FIO_MIN, False)
    for link in ("memif", "veth"):
        key = ("nightjar", link)
        at_most(f"CPU per GB over {link}: cached files, by one hot one",
                ratio(runs, "cpu_gb", ("cached", *key), ("hot", *key)), CACHED_MAX)
        at_most(f"CPU per GB over {link}: cold, by one hot one",
                ratio(runs, "cpu_gb", ("cold", *key), ("hot", *key)), COLD_MAX)
    at_most("CPU per GB, cold: nightjar's over memif, by nginx's over veth+tso",
            ratio(runs, "cpu_gb", cold, nginx), NGINX_MAX)
    if ("zipf", *MEMIF) in runs:
        rounds = runs["zipf", *MEMIF].values()
        best = [max(v["sim " + p] for p in POLICIES if p not in ("Belady", OURS)) - v["hits"]
                for v in rounds]
        costs = [v["crawl_costs"] for v in rounds]
        for what, values, limit in (
                ("zipf: hit ratio, behind the best simulated", best, HITS_BEHIND),
                ("zipf: hit ratio, less after a crawl", costs, CRAWL_COST)):
            at_most(what, (statistics.median(values), min(values), max(values)), limit)
    key = ("beside", "nightjar", "veth")
    for name, what, limit, more in (("rate", "rate", BESIDE_RATE, False),
                                    ("first_p99", "first byte, p99", BESIDE_P99, True)):
        values = [v[name] for v in runs.get(key, {}).values()]
        at_most(f"beside: {what} of hot clients, by without",
                values and (statistics.median(values), min(values), max(values)), limit, more)
    values = [v["never_sent"] for v in runs.get(("leave", "nightjar", "veth"), {}).values()]
    at_most("leave: bytes read and never sent, by bytes read",
            values and (statistics.median(values), min(values), max(values)), NEVER_SENT)
    return rows


def verdicts(rows):
    print(f"\n{'':<68}{'median':>8}{'least':>8}{'most':>8}  wanted")
    for what, found, limit, met in rows:
        print(f"{what:<68}" + "".join(f"{v:>8.3f}" for v in found) +
              f"  {limit:<8}{'met' if met else 'MISSED'}")


def remarks(runs, failed, rounds, args, site):
    shares = [v["reader_on_client"] for found in runs.values() for v in found.values()
              if "reader_on_client" in v]
    print(f"\n{rounds.n_done} rounds. Files: {site.n_bytes / GIB:.1f} GiB in "
          f"{os.path.dirname(site.root)}; cold, cached: {args.large[0]} of {args.large[1]} MiB; "
          f"zipf, beside:\n{args.medium[0]} of {args.medium[1]} MiB, cache of {args.zipf_cache} "
          f"MiB, {args.zipf_requests} requests; {args.cold_readers} cold readers, "
          f"{args.leavers} that leave.")
    if shares:
        print("nightjar's thread that reads files was on the client's CPU in "
              f"{100 * statistics.mean(shares):.0f} % of the looks.")
    print(summary([[v for v in found.values() if "apart_ns" in v] for found in runs.values()]))
    for (cell, who, link), found in runs.items():
        share = median(found, "from_disk") if cell in ("hot", "cached") else 0
        if share > 0.01:
            print(f"{cell}, {who} over {link}: {share * 100:.1f} % came from the disk: not all was "
                  "in memory, and the figures are not of a cache.")
    for key, why in failed.items():
        print(f"{', '.join(key)}: {why}")


# --- the command ----------------------------------------------------------------------------------

def count_and_size(word):
    n, _, size = word.partition("x")
    return int(n), int(size)


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench disk", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true",
                      help="small files and one round: does it work? The figures say little")
    size.add_argument("--full", action="store_true",
                      help="zipf over 20 GiB with a cache of 1 GiB [4 GiB, 200 MiB]")
    parser.add_argument("--rounds", type=int, help="[5, quick: 1]")
    parser.add_argument("--seconds", type=float, help="of a window [4, quick: 1]")
    parser.add_argument("--depth", type=int, default=64,
                        help="of fio [64: as many as nightjar has under way at most]")
    parser.add_argument("--file-reads", default="auto", metavar="HOW",
                        help="nightjar's option [auto]")
    parser.add_argument("--large", type=count_and_size, metavar="NxMIB",
                        help="files of cold and cached [32x256, quick: 32x32]; nightjar's cache "
                             "and the page cache hold them in turn")
    parser.add_argument("--cold-readers", type=int, help="[100, quick: 20]")
    parser.add_argument("--peers", metavar="NAME,...",
                        default="nightjar,fio,nginx,nginx aio,h2o", help="these only [%(default)s]")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", default=list(SHAPES))
    args = parser.parse_args()
    record.check_names(parser, args.shapes, SHAPES)
    args.peers = args.peers.split(",")
    record.check_names(parser, args.peers, ["nightjar", *PROGRAMS], "peer")
    quick = args.quick
    args.rounds = (1 if quick else 5) if args.rounds is None else args.rounds
    args.seconds = (1 if quick else 4) if args.seconds is None else args.seconds
    args.large = args.large or ((32, 32) if quick else (32, 256))
    args.medium = (32, 20) if quick else (640, 32) if args.full else (128, 32)
    args.zipf_cache = 64 if quick else 1024 if args.full else 200
    args.zipf_requests = 64 if quick else 1920 if args.full else 384
    args.leavers = 100 if quick else 1000
    args.cold_readers = args.cold_readers or (20 if quick else 100)
    if args.rounds < 1 or not 0.1 <= args.seconds <= 60 or args.depth < 1:
        parser.error("at least one round, from 0.1 to 60 seconds, a depth of at least 1")
    if args.large[0] < 32 or args.large[1] < 17:
        parser.error("--large: at least 32 files, of more than 16 MiB")
    return args


def main():
    args = arguments()
    run = record.begin("disk")
    run.facts["versions"] |= versions()
    print(record.headline(run.facts))
    print("\rfiles are written\033[K", end="", file=sys.stderr, flush=True)
    with Site(sites(args)) as site:
        runs, failed, rounds = measure(args, site)
        if runs:
            table(runs)
            rows = judged(runs)
            verdicts(rows)
        remarks(runs, failed, rounds, args, site)
    if args.json:
        for (cell, who, link), found in runs.items():
            run.row(cell, list(found.values()), peer=who, link=link)
        missing = [dict(zip(("shape", "peer", "link", "why"), (*key, why)))
                   for key, why in failed.items()]
        run.write(args.json, **rounds.facts(), seconds=args.seconds, missing=missing,
                  large=args.large, medium=args.medium, zipf_cache_mib=args.zipf_cache)
    return rounds.status or int(any(who == "nightjar" for _, who, _ in failed))


if __name__ == "__main__":
    record.run_main("bench disk", main, Failed)
