# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench handshakes [--quick] [--rounds N] [--seconds S] [--open N] [--peers NAME,...] [--fifo]
                       [--json FILE]
./dev bench handshakes --flood [--quick] [--rounds N] [--seconds S] [--rate N] [--requests N]
                       [--json FILE]

CPU time of a TLS 1.3 handshake: nightjar, h2o and nginx with the same ECDSA certificate (P-256),
the same key exchange (X25519) and the same client (perf/tools/handshakes) over the same veth pair.
The client has the first CPU, the server the last one, with one worker each. In each round every
server runs each shape once, in an order that rotates. SIGSTOP stops the other servers meanwhile.

  full      new sessions
  resumed   with a ticket of an earlier connection, and a key exchange (psk_dhe_ke)

A connection ends with RST when the server's SETTINGS have arrived, behind the handshake.

nightjar has two runs per round, because its lcore polls: in one, the lcore is alone on the last
CPU, and its cycles are measured; in the other one, the workers are on that CPU, too, and their CPU
time is measured. Otherwise the workers would share the first CPU, and its caches, with the client.

Columns:
  CPU us     CPU time of the server per handshake, the value compared: median, minimum, maximum of
             the rounds. Peers: user and system time of their processes. nightjar: cycles of the
             steps that found work, and user and system time of all workers
  lcore us   of nightjar: the part of the lcore
  all us     of a peer: all non-idle time of its CPU, with the TCP work that the kernel charges to
             no process
  per s      handshakes per second; of nightjar in the second run
  client     use of the first CPU, of nightjar in the second run. The client is usually the limit
  p50 p99    time of a handshake at the client, from connect() to SETTINGS, likewise

Below the table, of nightjar: time of the lcore in the code of handshakes per step; and, in virtual
time (perf/delays/handshakes.c), the time of other requests in the server, at 32,000 per second
(--requests), and the start delays of 1,000 tasks of handlers per second, with 1,000 handshakes per
second and without. The lengths are those measured: of a request, of each of six parts of a
handshake, of a call of the device's transmit function, and of the flights on workers (CPU time).

With --flood: h2load sends requests for a file of 128 bytes over 16 TLS connections at a fixed rate,
first alone, then during a flood of valid ClientHellos, 10,000 per second from 8 addresses, each on
a connection of its own, whose handshakes are never completed. nightjar runs as on a machine with
one CPU: all its threads are on the last CPU. h2load and the flood are on the first one. Meanwhile a
new client (curl) connects every 0.3 s.

  closing   the flood resets each connection when the server has answered: most work for the server
  waiting   the flood leaves each connection open for 10 s: its handshakes keep their places
"""
import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import time

from perf.bench import record
from perf.bench.apart import near, summary
from perf.bench.lab import cpus
from perf.bench.pair import STAGES
from perf.bench.peers import make_site
from perf.bench.peers_contenders import Contender, Nightjars, idle_seconds
from perf.bench.peers_worlds import KERNEL_PEERS, Nightjar, connections_of, cpu_seconds, versions
from tests.netlab import programs
from tests.netlab.priority import FIRST
from tests.netlab.world import SERVER_ADDR, Failed, until

PROGRAM = programs.program("perf/tools/handshakes/nj-handshakes")
VIRTUAL = programs.program("perf/delays/nj-handshakes-virtual")
SHAPES = {"full": [], "resumed": ["--resumed"]}
PEERS = ("h2o", "nginx")
STEP_US_MAX, KEPT_MIN, WORSE_MAX = 100, 0.9, 1.2
FLOODS = {"closing": 0, "waiting": 10_000}  # ms for which a connection stays open
FLOOD_ADDRESSES = 8
SERVED_CONNECTIONS = 16
WARM_SECONDS = 0.5
VIRTUAL_HANDSHAKES, VIRTUAL_TASKS, VIRTUAL_TASK_NS, VIRTUAL_MS = 1000, 1000, 20_000, 10_000
PARTS = 6  # of a handshake on the lcore, in perf/delays/handshakes.c
LENGTHS = ("request", "part", "device", "hello", "finished")
LOW_RATE = 2000
PERCENTILES = (("p50", "p50"), ("p99", "p99"), ("p99.9", "p999"))


def program(what, *options, port=443):
    """The command of nj-handshakes, on the client's CPU."""
    return ["taskset", "-c", str(cpus()[0]), PROGRAM, what, *map(str, options),
            f"{SERVER_ADDR}:{port}"]


def worker_seconds(pid):
    """CPU time of nightjar's worker threads, user and system."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError):  # it has ended
            name = record.read_text(f"/proc/{pid}/task/{thread}/comm")
            if name.startswith("nj-worker"):
                total += int(record.read_text(f"/proc/{pid}/task/{thread}/schedstat").split()[0])
    return total / 1e9


def move_threads(pid, name, cpu):
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if record.read_text(f"/proc/{pid}/task/{thread}/comm").startswith(name):
                os.sched_setaffinity(int(thread), {cpu})


class Ours(Nightjars):
    """nightjar. See peers_contenders.Contender."""

    def __init__(self, stack, root):
        super().__init__(stack, Nightjar(root=root, tls=True))

    def connections(self):
        return self.world.server.stats()["connections"]

    def look(self):
        """CPU time so far, in seconds. The device's transmit function has the share of the measured
        steps."""
        stages = self.world.server.telemetry("/nightjar/stages")
        return {"lcore": stages["cycles_busy"] / stages["tsc_hz"],
                "workers": worker_seconds(self.world.server.process.pid),
                "tx": stages["tx"], "stages": sum(stages[stage] for stage in STAGES)}

    def measure(self, shape, args, seconds):
        pid = self.world.server.process.pid
        values = {}
        for cpu, part in ((cpus()[0], "lcore"), (cpus()[1], "workers")):
            move_threads(pid, "nj-worker", cpu)
            before = self.look()
            got = one_run(self, shape, args, seconds)
            values |= got
            used = spent(before, self.look())
            values[part + "_us"] = used[part] / got["n"] * 1e6
            if part == "lcore":
                values["device_us"] = used["device"] / got["n"] * 1e6
        values["cpu_us"] = values["lcore_us"] + values["workers_us"]
        return values

    def steps(self):
        """Of the steps and flights so far: {"tls_step": {"count", "p50_us", ...}, "tls_task": ...}
        """
        return self.world.server.telemetry("/nightjar/latency")

    def per_request(self, rate):
        """{"request", "device"}: seconds of the lcore per request over TLS, the second one in the
        device's transmit function."""
        load = h2load(self.world, 3, rate)
        until("its connections are open",
              lambda: self.world.server.stats()["h2_connections"] >= SERVED_CONNECTIONS)
        time.sleep(1)
        before, began = self.look(), time.monotonic()
        time.sleep(2)
        used, passed = spent(before, self.look()), time.monotonic() - began
        n = h2load_rate(load) * passed
        return {"request": (used["lcore"] - used["device"]) / n, "device": used["device"] / n}


def spent(before, after):
    """{"lcore", "workers", "device"}: seconds between two looks."""
    d = {name: after[name] - before[name] for name in after}
    return {"lcore": d["lcore"], "workers": d["workers"],
            "device": d["lcore"] * d["tx"] / max(d["stages"], 1)}


class Theirs(Contender):
    def __init__(self, stack, root, name):
        self.name = name
        super().__init__(stack, KERNEL_PEERS[name](root=root, tls=True))

    def connections(self):
        return connections_of(self.world.server.process.pid)

    def measure(self, shape, args, seconds):
        pid = self.world.server.process.pid
        cpu, idle, began = cpu_seconds(pid), idle_seconds(cpus()[1]), time.monotonic()
        values = one_run(self, shape, args, seconds)
        passed = time.monotonic() - began
        idle = min(passed, idle_seconds(cpus()[1]) - idle)
        return values | {"cpu_us": (cpu_seconds(pid) - cpu) / values["n"] * 1e6,
                         "all_us": (passed - idle) / values["n"] * 1e6}


def one_run(contender, shape, args, seconds):
    idle, began = idle_seconds(cpus()[0]), time.monotonic()
    done = contender.world.client(*program("run", "--seconds", seconds, "--open", args.open,
                                           *SHAPES[shape]), seconds=seconds + 30, **FIRST)
    passed = time.monotonic() - began
    idle = min(passed, idle_seconds(cpus()[0]) - idle)
    until("the connections have ended", lambda: not contender.connections(), 60)
    if done.returncode:
        raise Failed(f"{contender.name}, {shape}: {done.stderr.strip()}")
    got = json.loads(done.stdout)
    n = got["done"]
    wrong = n - got["resumed"] if shape == "resumed" else got["resumed"]
    if not n or got["failed"] or wrong:
        raise Failed(f"{contender.name}, {shape}: {got}")
    n += shape == "resumed"  # the first one, which gave the ticket
    return {"n": n, "rate": n / got["seconds"], "client_busy": 1 - idle / passed,
            "p50_us": got["p50_us"], "p99_us": got["p99_us"]}


def rounds_of(contenders, args):
    runs = {}
    with record.Rounds(args.rounds) as rounds:
        for i in rounds:
            for shape in SHAPES:
                first = i % len(contenders)
                for one in contenders[first:] + contenders[:first]:
                    print(f"\rround {i + 1} of {args.rounds}, {shape}, {one.name}\033[K", end="",
                          file=sys.stderr, flush=True)
                    values = near(lambda: one.turn(one.measure, shape, args, args.seconds))
                    runs.setdefault((shape, one.name), []).append(values)
    print("\r\033[K", end="", file=sys.stderr)
    return runs, rounds


def median(runs, key, value):
    found = [run[value] for run in runs.get(key, []) if value in run]
    return statistics.median(found) if found else None


def table(runs):
    print(f"\n{'shape':<9}{'server':<10}{'CPU us':>8}{'min':>8}{'max':>8}{'lcore us':>10}"
          f"{'all us':>8}{'per s':>8}{'client':>8}{'p50 us':>8}{'p99 us':>8}")
    for key in sorted(runs, key=lambda key: (list(SHAPES).index(key[0]), key[1] != "nightjar")):
        cpu = [run["cpu_us"] for run in runs[key]]
        of = lambda value: median(runs, key, value)  # noqa: E731
        lcore, all_ = (f"{of(v):.1f}" if of(v) else "" for v in ("lcore_us", "all_us"))
        print(f"{key[0]:<9}{key[1]:<10}{of('cpu_us'):>8.1f}{min(cpu):>8.1f}{max(cpu):>8.1f}"
              f"{lcore:>10}{all_:>8}{of('rate'):>8.0f}{of('client_busy'):>8.0%}"
              f"{of('p50_us'):>8.0f}{of('p99_us'):>8.0f}")


def verdict(what, wanted, got, met):
    print(f"  {what:<58}{wanted:<14}{got:<14}{'met' if met else 'MISSED'}")


def verdicts(runs, found):
    print("\ntargets:")
    for shape in SHAPES:
        ours = median(runs, (shape, "nightjar"), "cpu_us")
        for peer in PEERS:
            theirs = median(runs, (shape, peer), "cpu_us")
            if ours and theirs:
                verdict(f"CPU per handshake, {shape}, against {peer}", f"<= {theirs:.1f} us",
                        f"{ours:.1f} us", ours <= theirs)
    if found:
        step = found["steps"]["tls_step"]
        for name, what in (("p999_us", "p99.9"), ("max_us", "longest")):
            verdict(f"{what} step of the lcore in code of handshakes", f"<= {STEP_US_MAX} us",
                    f"{step[name]} us", step[name] <= STEP_US_MAX)
        v = found["virtual"]
        for name, what in (("requests", "other requests"), ("tasks", "handlers' tasks")):
            without, with_ = (v[n][f"{name}_p99_ns"] for n in (0, VIRTUAL_HANDSHAKES))
            verdict(f"p99 of {what} at {VIRTUAL_HANDSHAKES:,} handshakes/s, virtual",
                    f"<= {WORSE_MAX:.1f} x", f"{with_ / without:.2f} x",
                    with_ <= WORSE_MAX * without)


def lcore_thread(pid):
    for thread in os.listdir(f"/proc/{pid}/task"):
        if "lcore" in record.read_text(f"/proc/{pid}/task/{thread}/comm"):
            return int(thread)
    raise Failed("nightjar has no thread of an lcore")


def preemptions(pid):
    """How often the kernel took the CPU from the lcore's thread."""
    status = record.read_text(f"/proc/{pid}/task/{lcore_thread(pid)}/status")
    return int(re.search(r"^nonvoluntary_ctxt_switches:\s+(\d+)", status, re.M)[1])


def lengths(contender, args):
    """The lcore shares its CPU with no thread of nightjar, and with --fifo with no other process
    that the kernel can make wait. {"request_ns", "device_ns": of the lcore,
    "tls_step", "tls_task", "preemptions"}. At a low rate each burst to the
    device has one response."""
    pid = contender.world.server.process.pid
    move_threads(pid, "nj-worker", cpus()[0])
    if args.fifo:
        os.sched_setscheduler(lcore_thread(pid), os.SCHED_FIFO, os.sched_param(1))
    before = preemptions(pid)
    for shape in SHAPES:
        one_run(contender, shape, args, args.seconds)
    return contender.steps() | {
        "preemptions": preemptions(pid) - before,
        "request_ns": contender.per_request(args.requests)["request"] * 1e9,
        "device_ns": contender.per_request(LOW_RATE)["device"] * 1e9}


def in_virtual_time(runs, steps, rate):
    """{handshakes per second: result}, and the lengths. A flight is a ClientHello or a Finished, of
    as many; the former are the longer ones."""
    of = lambda name: median(runs, ("full", "nightjar"), name)  # noqa: E731
    task = steps["tls_task"]
    hello = task["p90_us"] * 1e3
    part = (of("lcore_us") - of("device_us")) * 1e3 / PARTS
    found = {"request": steps["request_ns"], "part": part, "device": steps["device_ns"],
             "hello": hello, "finished": max(2 * task["mean_us"] * 1e3 - hello, 1000)}
    for n in (0, VIRTUAL_HANDSHAKES):
        arguments = (n, rate, VIRTUAL_TASKS, *(found[name] for name in LENGTHS), VIRTUAL_TASK_NS,
                     VIRTUAL_MS, 1)
        done = subprocess.run([VIRTUAL, *(str(int(a)) for a in arguments)], capture_output=True,
                              text=True, timeout=600)
        if done.returncode:
            raise Failed(f"nj-handshakes-virtual: {done.stderr.strip()}")
        found[n] = json.loads(done.stdout)
    return found


def show_lcore(found):
    step, v = found["steps"]["tls_step"], found["virtual"]
    print("\nlcore in code of handshakes, per step with any: " +
          ", ".join(f"{name.removesuffix('_us')} {step[name]} us" for name in
                    ("mean_us", "p50_us", "p99_us", "p999_us", "max_us")) +
          f", {step['count']:,} steps; the kernel took the CPU from the lcore "
          f"{found['steps']['preemptions']} times meanwhile")
    print("\nin virtual time, with lengths of " +
          ", ".join(f"{name} {v[name] / 1e3:.1f} us" for name in LENGTHS))
    for n in (0, VIRTUAL_HANDSHAKES):
        print(f"  {n:>5} handshakes/s: lcore busy {v[n]['busy']:.0%}; " + "; ".join(
            f"{name} " + ", ".join(f"{label} {v[n][f'{name}_{key}_ns'] / 1e3:.1f} us"
                                   for label, key in PERCENTILES)
            for name in ("requests", "tasks")))


def look_at_lcore(runs, root, args):
    """A server of its own, whose histograms begin empty."""
    with contextlib.ExitStack() as stack:
        ours = Ours(stack, root)
        steps = ours.turn(lengths, ours, args)
    return {"steps": steps, "virtual": in_virtual_time(runs, steps, args.requests)}


def bench(args):
    run = record.begin("handshakes")
    print(record.headline(run.facts) + "; " + ", ".join(
        f"{name} {version}" for name, version in versions().items() if name in PEERS))
    with contextlib.ExitStack() as stack:
        root = make_site(stack)
        contenders = [Ours(stack, root) if name == "nightjar" else Theirs(stack, root, name)
                      for name in args.peers]
        for one in contenders:
            for shape in SHAPES:
                one.turn(one.measure, shape, args, WARM_SECONDS)
        runs, rounds = rounds_of(contenders, args)
        found = look_at_lcore(runs, root, args) if "nightjar" in args.peers else None
    if args.json:
        for (shape, name), values in runs.items():
            run.row(shape, values, peer=name, link="veth+tls")
        run.write(args.json, **rounds.facts(), seconds=args.seconds, lcore=found)
    table(runs)
    if found:
        show_lcore(found)
    verdicts(runs, found)
    print("\n" + summary(runs.values()))
    return rounds.status


# --- the flood ------------------------------------------------------------------------------------

class Served(Nightjar):
    """nightjar on a machine with one CPU: the workers share the last CPU with the lcore, which
    sleeps when it has nothing to do."""

    def __init__(self, root):
        super().__init__(root=root, tls=True)
        self.options.remove("--busy-poll")

    def start(self):
        mine = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {cpus()[1]})
        try:
            super().start()
        finally:
            os.sched_setaffinity(0, mine)


def h2load(world, seconds, rate):
    """`rate` requests per second, after a second without a count."""
    return world.client_popen(
        "taskset", "-c", str(cpus()[0]), "h2load", "-c", str(SERVED_CONNECTIONS), "-m", "8", "-D",
        f"{seconds}s", "--warm-up-time=1s", f"--rps={rate // SERVED_CONNECTIONS}",
        world.url("/128"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **FIRST)


def h2load_rate(process):
    out = process.communicate(timeout=60)[0]
    found = re.search(r"finished in [\d.]+m?s, ([\d.]+) req/s", out)
    if not found or " 0 failed, 0 errored, 0 timeout" not in out:
        raise Failed(f"h2load: {out[-800:]}")
    return float(found[1])


def new_client(world):
    """Seconds of a request on a new connection, or None: it failed."""
    done = world.client("curl", "-skf", "--max-time", "3", "-o", "/dev/null", "-w", "%{time_total}",
                        world.url("/128"), **FIRST)
    return float(done.stdout) if done.returncode == 0 else None


def under_flood(world, kind, args):
    """The requests per second alone and in the flood, and what the flood did."""
    pid = world.server.process.pid
    alone_rate = h2load_rate(h2load(world, args.seconds, args.requests))
    served = h2load(world, args.seconds, args.requests)
    until("its connections are open", lambda: world.server.stats()["h2_connections"] >=
          SERVED_CONNECTIONS)
    before, workers, began = world.server.stats(), worker_seconds(pid), time.monotonic()
    flood = world.client_popen(
        *program("flood", "--seconds", args.seconds + 2, "--rate", args.rate, "--hold-ms",
                 FLOODS[kind], "--seed", args.seed, *world.flood_sources), stdout=subprocess.PIPE,
        text=True, **FIRST)
    visits = []
    while served.poll() is None:
        visits.append(new_client(world))
        time.sleep(0.3)
    workers, passed = worker_seconds(pid) - workers, time.monotonic() - began
    rate = h2load_rate(served)
    flood.terminate()
    sent = json.loads(flood.communicate(timeout=20)[0])
    until("the flood's connections have ended", lambda: not world.server.stats()["connections"], 30)
    after = world.server.stats()
    waits = [seconds for seconds in visits if seconds is not None]
    return {"alone": alone_rate, "rate": rate, "kept": rate / alone_rate,
            "flood": sent["per_second"], "answered": sent["answered"] / sent["seconds"],
            "full": after["tls_handshakes_full"] - before["tls_handshakes_full"],
            "workers": workers / passed, "visits": len(visits), "answered_visits": len(waits),
            "visit_ms": 1e3 * statistics.median(waits) if waits else None}


def flood_bench(args):
    run = record.begin("handshakes")
    print(record.headline(run.facts))
    runs = {kind: [] for kind in FLOODS}
    with contextlib.ExitStack() as stack:
        world = stack.enter_context(Served(make_site(stack)))
        world.flood_sources = [word for address in world.more_addresses(FLOOD_ADDRESSES)
                               for word in ("--source", address)]
        with record.Rounds(args.rounds) as rounds:
            for i in rounds:
                for kind, found in runs.items():
                    print(f"\rround {i + 1} of {args.rounds}, {kind}\033[K", end="",
                          file=sys.stderr, flush=True)
                    found.append(under_flood(world, kind, args))
    print("\r\033[K", end="", file=sys.stderr)
    if args.json:
        for kind, found in runs.items():
            run.row(kind, found, link="veth+tls")
        run.write(args.json, **rounds.facts(), seconds=args.seconds)
    show_floods(runs)
    return rounds.status


def show_floods(runs):
    print(f"\n{'flood':<9}{'per s':>8}{'computed':>10}{'refused':>9}{'workers':>9}{'alone/s':>9}"
          f"{'served/s':>10}{'kept':>7}{'least':>7}   new clients")
    for kind, found in runs.items():
        of = lambda name: statistics.median(r[name] for r in found)  # noqa: E731
        ms = [r["visit_ms"] for r in found if r["visit_ms"] is not None]
        print(f"{kind:<9}{of('flood'):>8,.0f}{of('answered'):>10,.0f}{of('full'):>9,.0f}"
              f"{of('workers'):>9.0%}{of('alone'):>9,.0f}{of('rate'):>10,.0f}{of('kept'):>7.3f}"
              f"{min(r['kept'] for r in found):>7.3f}   "
              f"{sum(r['answered_visits'] for r in found)} of {sum(r['visits'] for r in found)} "
              f"answered" + (f", median {statistics.median(ms):.0f} ms" if ms else ""))
    print("\ncomputed: handshakes per second that the server answered; refused: "
          "tls_handshakes_full\n\ntargets:")
    for kind, found in runs.items():
        kept = statistics.median(r["kept"] for r in found)
        verdict(f"requests of served clients kept, {kind} flood", f">= {KEPT_MIN}", f"{kept:.3f}",
                kept >= KEPT_MIN)


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench handshakes", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flood", action="store_true")
    parser.add_argument("--rounds", type=int, help="[7; quick: 2; flood: 3]")
    parser.add_argument("--seconds", type=float, help="of each run [2; quick: 0.8; flood: 5]")
    parser.add_argument("--open", type=int, default=16, help="handshakes at once [%(default)s]")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--fifo", action="store_true", help="the lcore whose steps are measured "
                        "runs under SCHED_FIFO: other processes do not preempt it")
    parser.add_argument("--peers", metavar="NAME,...", default="nightjar,h2o,nginx",
                        help="only these [%(default)s]")
    parser.add_argument("--rate", type=int, default=10_000,
                        help="ClientHellos per second of the flood [%(default)s]")
    parser.add_argument("--requests", type=int, default=32_000,
                        help="per second, of the served clients [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="of the flood")
    parser.add_argument("--json", metavar="FILE", help="write all measured values")
    args = parser.parse_args()
    args.peers = args.peers.split(",")
    args.rounds = args.rounds or (2 if args.quick else 3 if args.flood else 7)
    args.seconds = args.seconds or ((5 if args.flood else 2) if not args.quick else
                                    2 if args.flood else 0.8)
    record.check_names(parser, args.peers, ("nightjar", *PEERS), "peer")
    return args


def main():
    args = arguments()
    return flood_bench(args) if args.flood else bench(args)


if __name__ == "__main__":
    record.run_main("bench handshakes", main, Failed)
