# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench peers [--quick] [--rounds N] [--seconds S] [--json FILE] [--svg FILE]
                  [--tls | --http1] [SHAPE ...]

nightjar compared with h2o, nginx, nghttpd, HAProxy and Jetty: CPU cost per request of each server.
All servers serve the same files on the same CPU, one worker each, to the same h2load on another
CPU; nightjar also serves nightjar-load over memif. In each round every server runs each shape once,
in an order that rotates by one each round. SIGSTOP stops the other servers meanwhile.

  1x1 1x100 16x32 1000x1   connections x streams, a file of 128 bytes
  200KiB 10MiB             downloads: 16 connections of 4 streams; 8 of one

Links:
  veth      a veth pair without offloads: packets of the MTU, with their checksums
  veth+tso  the same with TSO and checksum offload, as the kernel has on a good network card.
            In downloads only; nightjar does not use it
  memif     shared memory between nightjar and nightjar-load, without the kernel
  ...+tls   the same with TLS 1.3 and AES-128-GCM (--tls)
  ...+http1 the same with HTTP/1.1 (--http1), whose streams are pipelined requests

Columns:
  CPU us/req   CPU time of the server per request, the value compared. Peers: user and system time
               of their processes. nightjar: cycles of its steps that found work, including the
               device's system calls
  all us/req   peers: all non-idle time of the CPU. It includes the TCP work for packets that arrive
               while the server sleeps, or that ksoftirqd processes. The kernel charges the TCP work
               for other packets to the server
  req/core-s   requests per second of the server's core: the inverse of CPU per request. Downloads
               count by their bytes
  x h2o        req/core-s divided by h2o's over the plain veth
  busy         share of its CPU that the server used: nightjar's own steps, the peers' CPU
  client       the same of the client's CPU. Where it is above 95 % and the server's is not, the
               client was the limit: req/s is then a lower bound, and CPU per request still holds
  p50 p99      latency of the client's requests. Over veth from a short separate run, because h2load
               logs each request with a system call; over memif from the measured run

Settings are in perf/peers/. Jetty's JIT compiler needs a warm-up: 15 seconds of 16x32 and 3 of
every other shape (--quick: 8 and 1). The other servers have half a second for each shape.
"""
import argparse
import contextlib
import os
import subprocess
import sys
import time

from perf.bench import record
from perf.bench.apart import near, summary
from perf.bench.pair import FILES
from perf.bench.peers_contenders import Memif, OverKernel, OverVeth
from perf.bench.peers_report import (aead_rates, chart, http1_ratios, table, tls_targets, verdicts,
                                     wanted)
from perf.bench.peers_worlds import HTTP1_PEERS, KERNEL_PEERS, TLS_PEERS, versions
from tests.netlab.reaper import Reaper
from tests.netlab.world import Failed

SHAPES = ["1x1", "1x100", "16x32", "1000x1", "200KiB", "10MiB"]
BULK = ("200KiB", "10MiB")
SERVERS = ["nightjar", *KERNEL_PEERS]
BROKEN = (Failed, OSError, subprocess.SubprocessError)  # failures of one contender's turn
WARM_SECONDS = 0.5


def start_all(stack, args, root, say):
    """(contenders that started, {peer: why it failed}). A failure of nightjar is raised."""
    contenders, failed = [], {}
    for make, tls in ((Memif, False), (Memif, True), (OverVeth, args.tls)):
        if "nightjar" in args.peers and (args.tls or not tls):
            say(f"nightjar over {make.link} starts")
            contenders.append(make(stack, root, tls, args.http1))
    for name in TLS_PEERS if args.tls else HTTP1_PEERS if args.http1 else KERNEL_PEERS:
        if name in args.peers:
            say(f"{name} starts")
            try:
                contenders.append(OverKernel(stack, root, name, args.tls, args.http1))
            except BROKEN as why:
                failed[name] = str(why)
                print(f"\r\033[Kbench: {name} is left out: {why}", file=sys.stderr)
    return contenders, failed


def warm(contender, args):
    for shape in args.shapes:
        if contender.name == "jetty":
            seconds = args.jit[0] if shape == "16x32" else args.jit[1]
        else:
            seconds = WARM_SECONDS
        try:
            contender.warm(shape, seconds)
        except BROKEN as why:  # the contender's turns report their own failures
            print(f"\r\033[Kbench: {contender.name}, {shape}, warm-up: {why}", file=sys.stderr)


def lanes(contenders, shape):
    """[(contender, link)]: the turns of a shape."""
    return [(c, link) for c in contenders for link in c.links(shape in BULK)]


class Progress:
    def __init__(self, n):
        self.n, self.done, self.began = n, 0, time.monotonic()

    def __call__(self, what):
        text = f"\r{what}"
        if self.done:
            left = (time.monotonic() - self.began) / self.done * (self.n - self.done)
            text += f"; about {left / 60:.1f} min left"
        print(text + "\033[K", end="", file=sys.stderr, flush=True)
        self.done += 1


def take_turn(contender, shape, link, args, runs, failed):
    key = (shape, contender.name, link)
    try:
        values = near(lambda: contender.run(shape, link, args.seconds))
        runs.setdefault(key, []).append(values)
    except BROKEN as why:
        failed[key] = str(why)
        print(f"\r\033[Kbench: {' '.join(key)}: {why}", file=sys.stderr)


def measure(contenders, args):
    """({(shape, peer, link): [values of a round]}, {(shape, peer, link): why a round failed},
    rounds)"""
    runs, failed = {}, {}
    say = Progress(args.rounds * sum(len(lanes(contenders, shape)) for shape in args.shapes))
    with record.Rounds(args.rounds) as rounds:
        for i in rounds:
            for shape in args.shapes:
                turns = lanes(contenders, shape)
                first = i % len(turns)
                for contender, link in turns[first:] + turns[:first]:
                    say(f"round {i + 1} of {args.rounds}, {shape}, {contender.name} over {link}")
                    take_turn(contender, shape, link, args, runs, failed)
    return runs, failed, rounds


def make_site(stack):
    """The files that all servers serve. Readable for all, as some peers run as the user nobody."""
    reaper = Reaper()
    stack.callback(reaper.finish)
    root = f"/run/njt-{os.getpid()}-site"
    reaper.will_make("folder", root)
    os.mkdir(root)
    os.chmod(root, 0o755)
    for name, n_bytes in FILES.items():
        with open(os.path.join(root, name), "wb") as f:
            f.write(os.urandom(n_bytes))
    return root


def bench(args):
    run = record.begin("peers")
    run.facts["versions"] |= versions()
    if args.tls:
        run.facts["aead"] = aead_rates()
    say = lambda what: print(f"\r{what}\033[K", end="", file=sys.stderr, flush=True)  # noqa: E731
    with contextlib.ExitStack() as stack:
        contenders, absent = start_all(stack, args, make_site(stack), say)
        for contender in list(contenders):
            say(f"check and warm-up of {contender.name} over {contender.link}")
            try:
                contender.check()
                warm(contender, args)
            except BROKEN as why:
                if contender.name == "nightjar":
                    raise
                contenders.remove(contender)
                absent[contender.name] = str(why)
                print(f"\r\033[Kbench: {contender.name} is left out: {why}", file=sys.stderr)
        if not contenders:
            raise Failed("no server is left to measure")
        runs, failed, rounds = measure(contenders, args)
    print("\r\033[K", end="", file=sys.stderr)
    # Rounds may have begun with different shapes.
    for key in sorted(runs, key=lambda key: args.shapes.index(key[0])):
        row = run.row(key[0], runs[key], peer=key[1], link=key[2])
        row["client_limited"] = client_limited(row["values"])
    failed |= {("", name, ""): why for name, why in absent.items()}
    return run, runs, failed, rounds


def client_limited(values):
    return values["client_busy"]["median"] > 0.95 > values["busy"]["median"]


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="[5, quick: 2]")
    parser.add_argument("--seconds", type=float, help="of each run [2, quick: 0.8]")
    parser.add_argument("--quick", action="store_true", help="about 4 minutes instead of 13")
    variant = parser.add_mutually_exclusive_group()
    variant.add_argument("--tls", action="store_true",
                         help="over TLS 1.3 with AES-128-GCM: nightjar, h2o, nginx and nghttpd; "
                              "nightjar over memif in cleartext beside them")
    variant.add_argument("--http1", action="store_true",
                         help="over HTTP/1.1: nightjar, h2o, nginx and HAProxy; nightjar over "
                              "memif with HTTP/2 beside them")
    parser.add_argument("--peers", metavar="NAME,...", default=",".join(SERVERS),
                        help="only these [%(default)s]")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--svg", metavar="FILE", help="requests per core-second, all in one chart")
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", default=SHAPES)
    args = parser.parse_args()
    args.peers = args.peers.split(",")
    args.rounds = (2 if args.quick else 5) if args.rounds is None else args.rounds
    args.seconds = (0.8 if args.quick else 2) if args.seconds is None else args.seconds
    if args.rounds < 1 or not 0.1 <= args.seconds <= 600:
        parser.error("at least one round; from 0.1 to 600 seconds")
    args.jit = (8, 1) if args.quick else (15, 3)
    record.check_names(parser, args.shapes, SHAPES)
    record.check_names(parser, args.peers, SERVERS, "peer")
    if args.http1:
        args.peers = [name for name in args.peers if name in ("nightjar", *HTTP1_PEERS)]
    return args


def main():
    args = arguments()
    run, runs, failed, rounds = bench(args)
    if args.json:
        missing = [dict(zip(("shape", "peer", "link", "why"), (*key, why)))
                   for key, why in failed.items()]
        run.write(args.json, **rounds.facts(), seconds=args.seconds, missing=missing)
    table(run, failed, args, rounds)
    verdicts(wanted(run))
    if args.tls:
        verdicts(tls_targets(run),
                 "Targets of TLS, nightjar over memif, by requests per core-second")
    if args.http1:
        http1_ratios(runs)
    print("\n" + summary(runs.values()))
    if args.svg and run.rows:
        chart(run.rows, record.caller_path(args.svg))
    return rounds.status or int(bool(failed))


if __name__ == "__main__":
    record.run_main("bench peers", main, Failed)
