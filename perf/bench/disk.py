# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench disk [--quick|--full] [--rounds N] [--json FILE] [SHAPE ...]

Large files, from the disk and from memory. The servers are nightjar (16 MiB and less are read
whole; larger files in chunks of 256 KiB by io_uring), nginx and h2o. fio measures the disk alone.
Each server runs on the last CPU, the clients run on the first. In each round every server has a
turn at a shape with a new process. The order of the servers rotates by one each round.

  cold    16 connections read one file each, once. No file is in memory: posix_fadvise removes the
          files from the page cache. A server that has just started reads 16 files (fresh), then 16
          other files (cold). nightjar's cache holds a quarter of 16 files. fio reads the second 16
          with O_DIRECT, in the same chunks, --depth of them at once, into ordinary memory (4 KiB)
          and into transparent hugepages (THP), which nightjar uses where possible
  cached  16 connections repeatedly read files (--large) that are all in memory, compared with one
          of the files (hot): CPU per GB. nightjar's files are in its cache (--cache), the files of
          the others in the page cache. Over veth all files are read at once
  zipf    16 connections request whole files; the k-th file is 1/k as popular as the first (Zipf
          1.0); the cache holds a twentieth of the files: share of bytes from the cache.
          A warm-up with as many requests precedes the measurement. A crawl over all files and a
          second measurement follow. nj-cache serves the same requests with LRU and other policies
  beside  4 clients request 200 KiB, and repeat 10 ms after the response: their rate and the time to
          the first byte with --cold-readers, which read other files at 1 MiB/s each, divided by the
          values without
  leave   1000 readers at random places, 256 KiB/s each; each resets its stream after at most
          4 MiB, at random: bytes that were read from the disk and never sent

Links:
  memif     shared memory between nightjar and nightjar-load, without the kernel
  veth      a veth pair without offloads, nj-downloads on the kernel's TCP. Only nightjar uses it;
            its CPU time includes the system calls for each packet
  veth+tso  the same with TSO and without checksums: the best case of nginx and h2o

`nginx` has sendfile, `nginx aio` has aio threads and directio, with two buffers of 256 KiB for each
response. h2o cannot pace, and so is not in `beside`.

Columns:
  GB/s      of bodies
  CPU s/GB  of all threads of the server. nightjar's lcore: cycles of its steps that found work. In
            brackets: CPU time that the kernel accounted to its other threads (the file reader)
  all       nginx, h2o: seconds in which their CPU was not idle, per GB. Includes the TCP work for
            packets that arrive while the server sleeps, which the kernel accounts to no process,
            and the work of other processes
  disk      bytes read from the disk, divided by bytes of bodies. Includes unused readahead
  depth     reads in flight, the average of samples every 50 ms
  client    share of the client's CPU: near 100 % the client is the limit

With two CPUs the thread that reads files runs on the client's CPU, because the lcore occupies the
other one: a line below the table reports it. On a busy machine the rounds differ: the spread is
below the table, too.
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
# Targets; each is compared with the median of the ratios within a round.
CACHED_MAX, COLD_MAX, NGINX_MAX, FIO_MIN, BESIDE_RATE, BESIDE_P99 = 1.1, 1.3, 0.5, 0.9, 0.9, 1.2
HITS_BEHIND, CRAWL_COST, NEVER_SENT = 0.01, 0.02, 0.03


# --- rounds ---------------------------------------------------------------------------------------

def installed(lanes, missing):
    for peer, link in lanes:
        if peer in PROGRAMS and not shutil.which(PROGRAMS[peer]):
            missing[peer, link] = "it is not installed"
    return [lane for lane in lanes if lane not in missing]


def measure(args, site):
    """({(cell, peer, link): {round: values}}, {(shape, peer, link): why it failed}, rounds)"""
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


# --- report ---------------------------------------------------------------------------------------

def median(rounds, name):
    values = [v[name] for v in rounds.values() if name in v]
    return statistics.median(values) if values else None


def ratio(runs, name, one, other):
    """(median of the ratios within a round, minimum, maximum), or None"""
    pairs = [(runs[one][i][name], runs[other][i][name])
             for i in runs.get(one, {}) if i in runs.get(other, {})]
    found = [a / b for a, b in pairs if b]
    return (statistics.median(found), min(found), max(found)) if found else None


def text(value, form, unit=""):
    return "-" if value is None else f"{value:{form}}{unit}"


def table(runs):
    print(f"\n{'':<8}{'server':<11}{'link':<10}{'GB/s':>7}{'CPU s/GB':>10}{'(others)':>10}"
          f"{'all':>8}{'disk':>8}{'depth':>7}{'client':>8}{'1st byte p99':>14}")
    for (cell, peer, link), rounds in runs.items():
        if cell in ("beside", "leave"):
            continue
        m = lambda name, rounds=rounds: median(rounds, name)  # noqa: E731
        percent = lambda name: None if m(name) is None else 100 * m(name)  # noqa: E731
        first = None if m("first_p99") is None else m("first_p99") / 1e6
        speed = None if m("bytes") is None else m("bytes") / 1e9
        print(f"{cell:<8}{peer:<11}{link:<10}{text(speed, '.2f'):>7}"
              f"{text(m('cpu_gb'), '.3f'):>10}{text(m('others_gb'), '.3f'):>10}"
              f"{text(m('all_gb'), '.3f'):>8}"
              f"{text(percent('from_disk'), '.1f', '%'):>8}{text(m('depth'), '.1f'):>7}"
              f"{text(percent('client_busy'), '.0f', '%'):>8}"
              f"{text(first, '.2f', ' ms') if cell in ('cold', 'fresh') else '':>14}")
    besides = [key for key in runs if key[0] == "beside"]
    if besides:
        print(f"\nhot clients with cold readers / without{'':4}{'rate':>10}{'1st byte p50':>14}"
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
    """[(name, (median, minimum, maximum), target, whether it is met)] of the measured values."""
    rows = []

    def at_most(what, found, limit, more=True):
        if found:
            rows.append((what, found, f"{'<=' if more else '>='} {limit:g}",
                         found[0] <= limit if more else found[0] >= limit))
    cold, nginx = ("cold", *MEMIF), ("cold", "nginx", "veth+tso")
    for pages in PAGES:
        at_most(f"cold: rate over memif / fio's with pages of {pages}",
                ratio(runs, "bytes", cold, ("cold", "fio", pages)), FIO_MIN, False)
    for link in ("memif", "veth"):
        key = ("nightjar", link)
        at_most(f"CPU per GB over {link}: cached files / one hot file",
                ratio(runs, "cpu_gb", ("cached", *key), ("hot", *key)), CACHED_MAX)
        at_most(f"CPU per GB over {link}: cold files / one hot file",
                ratio(runs, "cpu_gb", ("cold", *key), ("hot", *key)), COLD_MAX)
    at_most("CPU per GB, cold: nightjar over memif / nginx over veth+tso",
            ratio(runs, "cpu_gb", cold, nginx), NGINX_MAX)
    if ("zipf", *MEMIF) in runs:
        rounds = runs["zipf", *MEMIF].values()
        best = [max(v["sim " + p] for p in POLICIES if p not in ("Belady", OURS)) - v["hits"]
                for v in rounds]
        costs = [v["crawl_costs"] for v in rounds]
        for what, values, limit in (
                ("zipf: hit ratio, below the best simulated policy", best, HITS_BEHIND),
                ("zipf: hit ratio, decrease after a crawl", costs, CRAWL_COST)):
            at_most(what, (statistics.median(values), min(values), max(values)), limit)
    key = ("beside", "nightjar", "veth")
    for name, what, limit, more in (("rate", "rate", BESIDE_RATE, False),
                                    ("first_p99", "first byte, p99", BESIDE_P99, True)):
        values = [v[name] for v in runs.get(key, {}).values()]
        at_most(f"beside: {what} of hot clients, with / without cold readers",
                values and (statistics.median(values), min(values), max(values)), limit, more)
    values = [v["never_sent"] for v in runs.get(("leave", "nightjar", "veth"), {}).values()]
    at_most("leave: bytes read and never sent / bytes read",
            values and (statistics.median(values), min(values), max(values)), NEVER_SENT)
    return rows


def verdicts(rows):
    print(f"\n{'':<68}{'median':>8}{'min':>8}{'max':>8}  target")
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
          f"{args.leavers} readers that disconnect.")
    if shares:
        print("nightjar's thread that reads files was on the client's CPU in "
              f"{100 * statistics.mean(shares):.0f} % of the samples.")
    print(summary([[v for v in found.values() if "apart_ns" in v] for found in runs.values()]))
    for (cell, peer, link), found in runs.items():
        share = median(found, "from_disk") if cell in ("hot", "cached") else 0
        if share > 0.01:
            print(f"{cell}, {peer} over {link}: {share * 100:.1f} % of the bytes came from the "
                  "disk: the files were not all in memory, so this row does not measure a cache.")
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
                      help="small files and one round: a functional test without useful figures")
    size.add_argument("--full", action="store_true",
                      help="zipf over 20 GiB with a cache of 1 GiB [4 GiB, 200 MiB]")
    parser.add_argument("--rounds", type=int, help="[5, quick: 1]")
    parser.add_argument("--seconds", type=float, help="of a window [4, quick: 1]")
    parser.add_argument("--depth", type=int, default=64,
                        help="reads that fio has in flight [64: nightjar's maximum]")
    parser.add_argument("--file-reads", default="auto", metavar="HOW",
                        help="nightjar's option [auto]")
    parser.add_argument("--large", type=count_and_size, metavar="NxMIB",
                        help="files of cold and cached [32x256, quick: 32x32]; nightjar's cache "
                             "and the page cache must each hold all of them")
    parser.add_argument("--cold-readers", type=int, help="[100, quick: 20]")
    parser.add_argument("--peers", metavar="NAME,...",
                        default="nightjar,fio,nginx,nginx aio,h2o",
                        help="only these [%(default)s]")
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


def write(run, runs, failed, rounds, args):
    for (cell, peer, link), found in runs.items():
        run.row(cell, list(found.values()), peer=peer, link=link)
    missing = [dict(zip(("shape", "peer", "link", "why"), (*key, why)))
               for key, why in failed.items()]
    run.write(args.json, **rounds.facts(), seconds=args.seconds, missing=missing,
              large=args.large, medium=args.medium, zipf_cache_mib=args.zipf_cache)


def main():
    args = arguments()
    run = record.begin("disk")
    run.facts["versions"] |= versions()
    print(record.headline(run.facts))
    print("\rwriting the files\033[K", end="", file=sys.stderr, flush=True)
    with Site(sites(args)) as site:
        runs, failed, rounds = measure(args, site)
        if args.json:
            write(run, runs, failed, rounds, args)
        if runs:
            table(runs)
            verdicts(judged(runs))
        remarks(runs, failed, rounds, args, site)
    return rounds.status or int(any(peer == "nightjar" for _, peer, _ in failed))


if __name__ == "__main__":
    record.run_main("bench disk", main, Failed)
