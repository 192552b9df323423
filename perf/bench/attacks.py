# SPDX-License-Identifier: BSD-3-Clause
"""
sudo ./dev bench attacks [--quick] [--hugepages] [--rounds N] [--seconds S] [--json FILE]
                         [ATTACK ...]

Latency of innocent clients of HTTP/2 while others attack over HTTP/1.1, divided by the latency
without the attack. The server has one lcore. The attackers send so much that the lcore is busy half
of the time, the innocents' requests included:

  slowloris   10,000 connections, the head of whose request arrives byte by byte and never ends
  slow-post   10,000 connections, the body of whose request arrives byte by byte; the route takes
              whole bodies (OS_BLOCKING)
  idle        10,000 connections that request a file once and then nothing. Half of the lcore's
              capacity is out of reach: the load is that of opening and closing them
  flood       100 connections with pipelined requests, 16 in a segment, for a file that does not
              exist

and, for comparison:

  requests    100 connections with ordinary requests of HTTP/2, as many as take half of the lcore

A connection that the server ends is opened again. The limits of time are as short as the measured
interval, and the connections are opened evenly within such a time. So each slow connection reaches
its limit once per round, and they do so evenly: 3 to 25 times as often as with the defaults.

All clients are one program (perf/tools/attack), which polls a memif: no kernel, no other process
and no timer is between an innocent's request and the server. The program's own delay is shown: half
of `step` adds to each latency in the mean. Each attack is preceded by an interval without one; the
ratios are those of such a pair. The table has medians over all rounds.
"""
import argparse
import collections
import json
import os
import select
import statistics
import subprocess
import sys

from perf.bench import record
from perf.bench.hugepages import Memory
from perf.bench.pair import cpus
from perf.bench.targets import ATTACK_RATIO
from tests.netlab.generator import Memif
from tests.netlab.limits import time_limit
from tests.netlab.priority import FIRST, first_of
from tests.netlab.world import CLIENT_ADDR, SERVER_ADDR, Failed, until

PROGRAM = record.program("perf/tools/attack/nj-attack")
SERVER = "nj-attack-server"
record.program(f"perf/tools/attack/{SERVER}")
FILE_BYTES, INNOCENTS, RATE = 128, 8, 5000  # RATE: of all innocents, per second
FAR_NS = 100_000  # round trip of a network within a building, for the last column of the verdicts
STALLED_MAX = 0.005  # share of time; above, p99 is that of other work of the machine
HALF, TRIES = 0.5, 3  # of the calibration

# kind: of nj-attack; rate: first guess of the pieces per second; depth: requests of a piece
Attack = collections.namedtuple("Attack", "kind connections rate depth judged")
ATTACKS = {"slowloris": Attack("slowloris", 10_000, 200_000, 1, True),
           "slow-post": Attack("slow-post", 10_000, 200_000, 1, True),
           "idle": Attack("idle", 10_000, 0, 1, True),
           "flood": Attack("flood", 100, 30_000, 16, True),
           "requests": Attack("h2", 100, 300_000, 1, False)}
# Counters that say what became of the attackers.
COUNTED = ("h1_head_timeout", "body_timeout", "body_slow", "conn_timeout", "conn_evicted",
           "conn_shed", "conn_rx_limit", "conn_memory_limit", "client_share_limit",
           "request_refused", "exchange_rejected", "status_2xx", "status_4xx", "status_5xx")
QUANTILES = ("p50", "p90", "p99", "p99.9")
SHOWN = ("p50", "p99", "p99.9")
KEPT = ("busy", "client_busy", "step_ns", "late_p99", "full", "stalled_share", "open", "opened",
        "by_fin", "by_rst", "refused", "pieces", "held", "forgotten")


class Site(Memif):
    """A server with one lcore, and nj-attack as its gateway."""

    def __init__(self, memory, seconds):
        self.seconds = seconds  # of a round, and the limits of time
        limit = f"{int(seconds * 1000)}ms"
        super().__init__(lcores=f"0@{cpus()[1]}", program=SERVER, memory=memory.eal, options=[
            "--busy-poll", "--gateway", CLIENT_ADDR, "--header-timeout", limit, "--body-timeout",
            limit, "--idle-timeout", limit])
        self.root = os.path.join(self.scratch, "site")
        os.mkdir(self.root)
        with open(os.path.join(self.root, "file"), "wb") as f:
            f.write(os.urandom(FILE_BYTES))
        self.clients, self.unread = None, b""

    def start(self):
        super().start()
        first_of(self.server_ns)
        most = max(attack.connections for attack in ATTACKS.values())
        self.clients = self.client_popen(
            PROGRAM, "--no-pci", "--no-shconf", *self.eal_memory, self.device("client"), "--lcores",
            f"0@{cpus()[0]}", "--file-prefix", self.prefix, "--", str(most), CLIENT_ADDR,
            SERVER_ADDR, "/file", str(RATE), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=open(f"{self.scratch}/clients", "wb"), **FIRST)
        self.answer("connect")

    def command(self, text, seconds=60):
        try:
            self.clients.stdin.write(text.encode() + b"\n")
            self.clients.stdin.flush()
        except BrokenPipeError:
            pass  # answer() describes the reason
        return self.answer(text, seconds)

    def answer(self, to, seconds=60):
        fd = self.clients.stdout.fileno()
        while b"\n" not in self.unread:
            if not select.select([fd], [], [], time_limit(seconds))[0]:
                raise Failed(f"nj-attack did not complete {to!r}")
            chunk = os.read(fd, 65536)
            if not chunk:
                with open(f"{self.scratch}/clients", encoding="utf-8", errors="replace") as f:
                    raise Failed(f"nj-attack ended at {to!r}: {f.read()[-500:].strip()}\n"
                                 f"{self.errors()[-500:]}")
            self.unread += chunk
        line, self.unread = self.unread.split(b"\n", 1)
        return json.loads(line)

    def close(self):
        if self.clients:
            self.clients.kill()
            self.clients.wait()
            self.clients.stdin.close()
            self.clients.stdout.close()
            self.clients = None
        super().close()

    def look(self):
        return self.server.stats() | self.memory()

    def measure(self, seconds):
        """What nj-attack reports, and the share of time for which the lcore had work."""
        before = self.server.stats()
        found = self.command(f"measure {seconds}", seconds + 60)
        after = self.server.stats()
        if found["answered"] != found["asked"]:
            raise Failed(f"innocents were not answered: {found}")
        busy, idle = (after[name] - before[name] for name in ("cycles_busy", "cycles_idle"))
        return found | {"busy": busy / (busy + idle)}

    def attack(self, attack, rate):
        opens = attack.connections / self.seconds
        self.command(f"attack {attack.kind} {attack.connections} {opens:.0f} {rate:.0f} "
                     f"{attack.depth}")

    def end(self):
        self.command("end")
        until("the server has the innocents' connections only",
              lambda: self.server.stats()["connections"] == INNOCENTS)

    def calibrated(self, attack):
        """Pieces per second at which the lcore is busy half of the time."""
        rate = attack.rate
        for _ in range(TRIES if rate else 0):
            self.attack(attack, rate)
            found = self.measure(self.seconds)
            self.end()
            rate = round(rate * min(2.5, max(0.3, HALF / found["busy"])))
        return rate

    def turn(self, attack, rate):
        """(values, {counter: events}) of an interval without the attack, and one with it."""
        alone = self.measure(max(0.5, self.seconds / 2))
        before = self.look()
        self.attack(attack, rate)
        under = self.measure(self.seconds)
        after = self.look()
        self.end()
        values = {f"{name}_alone": alone[name] for name in QUANTILES}
        values |= {name: under[name] for name in QUANTILES}
        values |= {f"ratio_{name}": under[name] / alone[name] for name in QUANTILES if alone[name]}
        values["far_ratio_p99"] = (under["p99"] + FAR_NS) / (alone["p99"] + FAR_NS)
        values |= {name: under[name] for name in KEPT}
        values |= {"step_ns_alone": alone["step_ns"], "busy_alone": alone["busy"],
                   "rate": rate, "connections": after["connections"] - INNOCENTS,
                   "bytes": after["anonymous"] - before["anonymous"],
                   "session_bytes": after["h2_bytes"] - before["h2_bytes"]}
        counted = {name: after[name] - before[name] for name in COUNTED}
        counted |= {f"answered_{status}": n for status, n in under["status"].items()}
        return values, counted


def measure(site, args, say):
    rates, runs, counts = {}, {}, {}
    for name in args.attacks:
        say(f"calibration, {name}")
        rates[name] = site.calibrated(ATTACKS[name])
    with record.Rounds(args.rounds) as rounds:
        for i in rounds:
            first = i % len(args.attacks)
            for name in args.attacks[first:] + args.attacks[:first]:
                say(f"round {i + 1} of {args.rounds}, {name}")
                values, counted = site.turn(ATTACKS[name], rates[name])
                runs.setdefault(name, []).append(values)
                counts.setdefault(name, []).append(counted)
    return runs, counts, rounds


def medians(counts):
    """{counter: median over the rounds}, without those that are 0."""
    names = dict.fromkeys(name for one in counts for name in one)
    found = {name: statistics.median(one.get(name, 0) for one in counts) for name in names}
    return {name: n for name, n in found.items() if n}


def median(runs, name):
    return statistics.median(run[name] for run in runs)


def us(ns):
    return f"{ns / 1e3:,.1f}" if ns < 1e6 else f"{ns / 1e3:,.0f}"


def table(runs, counts):
    print(f"\n{'':<11}{'lcore':>6}{'client':>7}{'':>9}{'step, us':>14}"
          f"{'alone, us':>27}{'with the attack, us':>27}{'attack / alone':>33}")
    print(f"{'attack':<11}{'busy':>6}{'busy':>7}{'open':>9}{'alone':>7}{'then':>7}"
          + 2 * "".join(f"{name:>9}" for name in SHOWN)
          + f"{'p50':>8}{'p99':>8}{'least':>6}{'most':>6}")
    for name, all_of in runs.items():
        m = {key: median(all_of, key) for key in all_of[0]}
        ratios = [run["ratio_p99"] for run in all_of]
        print(f"{name:<11}{m['busy'] * 100:>5.0f}%{m['client_busy'] * 100:>6.0f}%"
              f"{m['connections']:>9,.0f}{m['step_ns_alone'] / 1e3:>7.2f}{m['step_ns'] / 1e3:>7.2f}"
              + "".join(f"{us(m[q + end]):>9}" for end in ("_alone", "") for q in SHOWN)
              + f"{m['ratio_p50']:>8.2f}{m['ratio_p99']:>8.2f}{min(ratios):>6.2f}"
              f"{max(ratios):>6.2f}")
    print("\nIn a round:")
    for name, all_of in runs.items():
        m = {key: median(all_of, key) for key in all_of[0]}
        print(f"  {name:<11}{m['rate']:,.0f} pieces/s; {m['opened']:,.0f} connections opened, "
              f"{m['by_fin']:,.0f} closed and {m['by_rst']:,.0f} reset by the server, "
              f"{m['refused']:,.0f} refused; memory grew by {m['bytes'] / 2**20:.1f} MiB, of "
              f"sessions {m['session_bytes'] / 2**20:.1f}")
        print(" " * 13 + "counted: " + ", ".join(f"{key} {n:,.0f}"
                                                 for key, n in medians(counts[name]).items()))


def is_noisy(all_of):
    """Whether other processes had the client's CPU, and so the server's, for so long that the p99
    says nothing about the server."""
    return median(all_of, "stalled_share") > STALLED_MAX


def word_of(name, all_of):
    if is_noisy(all_of):
        return "NOISE"
    if not ATTACKS[name].judged:
        return "-    "
    return "met  " if median(all_of, "ratio_p99") <= ATTACK_RATIO else "ABOVE"


def verdicts(runs):
    """Whether each attack is met."""
    print(f"\np99 of the innocents with the attack / without, median of the rounds, at most "
          f"{ATTACK_RATIO}:")
    for name, all_of in runs.items():
        value = median(all_of, "ratio_p99")
        more = statistics.median(run["p99"] - run["p99_alone"] for run in all_of)
        far = median(all_of, "far_ratio_p99")
        print(f"  {word_of(name, all_of)}  {name:<11}{value:>7.2f}, {more / 1e3:+.1f} us; "
              f"with a network of {FAR_NS / 1e3:.0f} us between them {far:.2f}")
    if any(is_noisy(all_of) for all_of in runs.values()):
        print(f"NOISE: the client stood still for more than {STALLED_MAX * 100:.1f} % of the time, "
              "because other work had its CPU: these values say nothing. Repeat it on an idle "
              "machine.")


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench attacks", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--hugepages", action="store_true",
                        help="reserve them for the run where too few are free")
    parser.add_argument("--rounds", type=int, help="[7, quick: 2]")
    parser.add_argument("--seconds", type=float, help="of each attack [3, quick: 1]")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", default=list(ATTACKS))
    args = parser.parse_args()
    args.rounds = (2 if args.quick else 7) if args.rounds is None else args.rounds
    args.seconds = (1 if args.quick else 3) if args.seconds is None else args.seconds
    record.check_names(parser, args.attacks, ATTACKS)
    if args.rounds < 1 or not 0.5 <= args.seconds <= 600:
        parser.error("at least one round; from 0.5 to 600 seconds")
    return args


def main():
    args = arguments()
    run = record.begin("attacks")
    print(record.headline(run.facts))
    say = lambda what: print(f"\r{what}\033[K", end="", file=sys.stderr, flush=True)  # noqa: E731
    with Memory(args.hugepages) as memory, Site(memory, args.seconds) as site:
        print(memory.text)
        runs, counts, rounds = measure(site, args, say)
    say("")
    if args.json:
        for name, all_of in runs.items():
            run.row(name, all_of, judged=ATTACKS[name].judged,
                    noisy=is_noisy(all_of), counted=medians(counts[name]))
        run.write(args.json, **rounds.facts(), seconds=args.seconds, memory=memory.facts())
    table(runs, counts)
    verdicts(runs)
    return rounds.status


if __name__ == "__main__":
    record.run_main("bench attacks", main, Failed)
