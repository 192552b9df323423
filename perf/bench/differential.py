# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench differential [--quick] [--rounds N] [--json FILE] [--cells PATTERN ...]

The same transfer with the kernel's TCP (CUBIC, otherwise the default settings) and with nightjar as
the sender, over the same emulated link to the same receiver: curl on the kernel's TCP.

  lossL/rttR     bulk: goodput in Mbit/s of a download of --seconds, where L % of the packets with
                 data are lost at random on a path of R ms
  SK-tailN/rttR  short: milliseconds until S KiB have arrived, whose last N packets are lost once

The senders alternate. Each round has its own seed, the same for both senders: the link drops the
k-th packet with data of both senders, or of none. The queue is one BDP, at least 64 KiB. A ratio
above 1 is in nightjar's favour, for bulk and for short; the table also has the minimum and the
maximum of the ratios within a round.
"""
import argparse
import fnmatch
import json
import os
import platform
import statistics
import subprocess
import sys

from perf.bench import record
from perf.bench.lab import LINK, Lab, Unfit, backlog_drops
from tests.netlab.world import Failed

LOSSES, RTTS = (0, 0.1, 1, 3), (1, 20, 100)
SHORT_KIB, TAILS, SHORT_RTTS = (16, 64), (0, 1, 3), (20, 100)
QUEUE_MIN = 64 << 10
SHORT_SECONDS_MAX = 10
TARGET, TARGET_TAIL = 0.95, 1.2
ATTEMPTS = 3  # of a transfer that the link itself has disturbed
LATE_US_MIN, LATE_SHARE = 500, 0.1  # permitted lateness of frames: in us; share of the round trip
BULK_BYTES = 1 << 30


class Cell:
    def __init__(self, rtt_ms, loss=0.0, kib=0, tail=0):
        self.rtt_ms, self.loss, self.kib, self.tail = rtt_ms, loss, kib, tail
        self.name = f"{kib}K-tail{tail}/rtt{rtt_ms}" if kib else f"loss{loss:g}/rtt{rtt_ms}"
        self.target = TARGET_TAIL if tail else TARGET
        self.runs = {"linux": [], "nightjar": []}

    def specs(self, rate_mbit):
        """(impairment of the sender's packets, impairment of the receiver's packets)"""
        queue = max(QUEUE_MIN, int(rate_mbit * 1e6 / 8 * self.rtt_ms / 1e3))
        back = f"rate={rate_mbit}M,delay={self.rtt_ms / 2}ms,queue={queue}"
        there = back + f",loss={self.loss / 100:.6f}" * (self.loss > 0) + \
            f",tail={self.tail}:{self.kib << 10}" * (self.tail > 0)
        return there, back

    def figure(self, run):
        """Mbit/s of a bulk transfer, milliseconds of a short one."""
        return run["seconds"] * 1e3 if self.kib else run["bytes"] * 8 / run["seconds"] / 1e6

    def figures(self, sender):
        return [self.figure(run) for run in self.runs[sender]]

    def ratio(self, linux, nightjar):
        if self.kib:
            return linux / nightjar
        return nightjar / linux if linux else float("inf")

    def result(self):
        linux, nightjar = self.figures("linux"), self.figures("nightjar")
        pairs = [self.ratio(a, b) for a, b in zip(linux, nightjar)]
        return {"cell": self.name, "kind": "short" if self.kib else "bulk", "target": self.target,
                "unit": "ms" if self.kib else "Mbit/s", "linux": linux, "nightjar": nightjar,
                "ratio": self.ratio(statistics.median(linux), statistics.median(nightjar)),
                "ratio_min": min(pairs), "ratio_max": max(pairs), "remarks": self.remarks()}

    def remarks(self):
        found = []
        for sender, runs in self.runs.items():
            unfinished = sum(self.kib > 0 and not run["done"] for run in runs)
            if unfinished:
                found.append(f"{sender}: {unfinished} runs not done in {SHORT_SECONDS_MAX} s")
            if bad := sum(run["status"] != 200 for run in runs):
                found.append(f"{sender}: {bad} runs without status 200")
            if other := sum(not self.hit_the_tail(run) for run in runs):
                found.append(f"{sender}: in {other} runs other packets than the last were lost")
        return found

    def hit_the_tail(self, run):
        there = run["link"]["ab"]
        return there["drop_tail"] == self.tail and (
            not self.tail or (there["tail_last"] == there["new_data"] and
                              there["tail_first"] == there["new_data"] - self.tail + 1))


def all_cells():
    yield from (Cell(rtt, loss=loss) for loss in LOSSES for rtt in RTTS)
    yield from (Cell(rtt, kib=kib, tail=tail)
                for kib in SHORT_KIB for tail in TAILS for rtt in SHORT_RTTS)


def disturbed(run, cell):
    """Whether frames were later than LATE_US_MIN and LATE_SHARE permit."""
    return run["link"]["late_us"]["p99"] > max(LATE_US_MIN, cell.rtt_ms * 1e3 * LATE_SHARE)


def transfer(lab, sender, cell, args, seed):
    there, back = cell.specs(args.rate)
    path, seconds = (f"{cell.kib}K", SHORT_SECONDS_MAX) if cell.kib else ("bulk", args.seconds)
    for last in (False,) * (ATTEMPTS - 1) + (True,):
        try:
            run = lab.transfer(sender, path, seconds, there, back, seed, cell.rtt_ms)
            if last or not disturbed(run, cell):
                return run
            why = f"frames left {run['link']['late_us']['p99']} us late (p99)"
        except Unfit as failed:
            if last:
                raise
            why = failed
        print(f"\r\033[K{cell.name}: repeated: {why}", file=sys.stderr)


def fill(root):
    with open(os.path.join(root, "bulk"), "wb") as f:
        f.truncate(BULK_BYTES)  # sparse
    for kib in SHORT_KIB:
        with open(os.path.join(root, f"{kib}K"), "wb") as f:
            f.write(os.urandom(kib << 10))


def measure(cells, args):
    with Lab(("linux",) if args.control else ("linux", "nightjar")) as lab:
        fill(lab.root)
        lab.check_cubic()
        for number in range(args.rounds):
            turns = ("linux", "nightjar") if number % 2 == 0 else ("nightjar", "linux")
            for cell in cells:
                for sender in turns:
                    print(f"\r\033[Kround {number + 1} of {args.rounds}: {cell.name}, {sender}",
                          end="", file=sys.stderr, flush=True)
                    cell.runs[sender].append(transfer(lab, "linux" if args.control else sender,
                                                      cell, args, args.seed + 2 * number))
    print("\r\033[K", end="", file=sys.stderr)


def spread(values):
    return f"{statistics.median(values):9.1f} {min(values):8.1f}-{max(values):<8.1f}"


def row(r):
    good = r["ratio"] >= r["target"] and not r["remarks"]
    return (f"{r['cell']:<18}{r['unit']:>6} {spread(r['linux'])} {spread(r['nightjar'])} "
            f"{r['ratio']:6.2f} {r['ratio_min']:6.2f}-{r['ratio_max']:<6.2f}"
            f"{r['target']:5.2f} {'ok' if good else 'BELOW' if r['ratio'] < r['target'] else '?'}"
            + "".join("\n    " + remark for remark in r["remarks"]))


def instrument(cells, self_test, dropped):
    """Errors of the link itself, by which the figures may be off."""
    runs = [(run, cell) for cell in cells for runs in cell.runs.values() for run in runs]
    late = [run["link"]["late_us"] for run, _ in runs]
    return {
        "disturbed": sum(disturbed(run, cell) for run, cell in runs),
        "self_test": self_test,
        "late_us_p50": statistics.median(x["p50"] for x in late),
        "late_us_p99_worst": max(x["p99"] for x in late),
        "late_us_max": max(x["max"] for x in late),
        "kernel_backlog_drops": dropped,
    }


def limits(what, args):
    delay = what["self_test"]["delay_error_us"]["delay=10ms"]
    rate = what["self_test"]["rate_error_percent"]["rate=100M,queue=1M"]
    return f"""
Link {args.rate:g} Mbit/s of Ethernet frames ({args.rate * 1448 / 1514:.1f} of data); \
{args.rounds} rounds, bulk {args.seconds:g} s each, seed {args.seed}.
Median, minimum and maximum of the rounds; ratio of the medians, and its minimum and maximum \
within a round.
The link delays frames {delay['p50']:.0f} us too long in the median, {delay['p99']:.0f} us at p99 \
(self-test); its rate is off by {rate:+.3f} %.
In these transfers frames left {what['late_us_p50']:.0f} us late in the median, p99 of the worst \
transfer {what['late_us_p99_worst']} us, at most {what['late_us_max']} us; the table includes \
{what['disturbed']} disturbed transfers.
Packets dropped in the machine's own input queues, of all processes: \
{what['kernel_backlog_drops']}.
Few losses occur in {args.seconds:g} s at 0.1 % or at 100 ms: compare the spread there, not the \
median.
Only packets with data are lost at random, no ACK and no SYN. `--control` shows this table for the \
kernel against itself."""


def write(cells, args, what):
    record.dump(args.json, {
        "kernel": platform.release(), "rate_mbit": args.rate, "rounds": args.rounds,
        "bulk_seconds": args.seconds, "seed": args.seed, "control": args.control,
        "instrument": what, "cells": [cell.result() for cell in cells],
        "runs": {cell.name: cell.runs for cell in cells}})


def report(cells, args, what):
    """Prints the results. Returns how many cells are below their target."""
    results = [cell.result() for cell in cells]
    name = "linux again" if args.control else "nightjar"
    print(f"{'cell':<18}{'':>6} {'linux':>9}{'':18} {name:>11}{'':16} {'ratio':>6}{'':14}target")
    print(*map(row, results), sep="\n")
    below = sum(r["ratio"] < r["target"] for r in results)
    print(f"\n{len(results) - below} of {len(results)} cells reach their target")
    print(limits(what, args))
    return below


def options():
    parser = argparse.ArgumentParser(prog="./dev bench differential", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 rounds of 2 s: about 4 minutes")
    parser.add_argument("--rounds", type=int, help="[5]")
    parser.add_argument("--seconds", type=float, help="of a bulk transfer [5]")
    parser.add_argument("--rate", type=float, default=100, metavar="MBIT", help="of the link [100]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cells", nargs="+", default=["*"], metavar="PATTERN",
                        help="only these, e.g. 'loss1/*' '*tail*'")
    parser.add_argument("--control", action="store_true",
                        help="the kernel against itself: the error of the measurement")
    parser.add_argument("--json", metavar="FILE", help="write all measured values")
    parser.add_argument("--strict", action="store_true",
                        help="exit status 1 when a cell is below its target")
    args = parser.parse_args()
    args.rounds = args.rounds or (3 if args.quick else 5)
    args.seconds = args.seconds or (2 if args.quick else 5)
    cells = [c for c in all_cells() if any(fnmatch.fnmatch(c.name, p) for p in args.cells)]
    if not cells:
        parser.error(f"no such cell; there are {', '.join(c.name for c in all_cells())}")
    return args, cells


def main():
    args, cells = options()
    done = subprocess.run([LINK, "--fifo", "--self-test"],
                          capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise Failed(f"the link's self-test: {done.stderr.strip()}")
    before = backlog_drops()
    measure(cells, args)
    what = instrument(cells, json.loads(done.stdout), backlog_drops() - before)
    if args.json:
        write(cells, args, what)
    return int(report(cells, args, what) > 0 and args.strict)


if __name__ == "__main__":
    record.run_main("bench differential", main, Failed)
