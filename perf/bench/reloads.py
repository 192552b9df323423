# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench reloads [--quick] [--rounds 5] [--seconds 60] [--reloads 100] [--json FILE]

1,000 paced downloads and 2,000 requests per second, from one lcore, while SIGHUP reads a changed
configuration again: 100 times in 60 s. Rounds with reloads alternate with rounds without, each on a
server of its own. Every byte is compared, and no request may be refused or reset, and no connection
may end.

  step     p99.9 of the times of the lcore's steps with work (/nightjar/latency; one step in 64 is
           measured): with reloads at most 1.2 times that without, of the medians of the rounds
  memory   the process's resident memory after the last reload, against that after the first ten:
           at most 1 MiB more, beyond what the rounds without reloads grow in the same time
"""
import argparse
import os
import signal
import statistics
import time

from perf.bench import record
from perf.bench.downloads_shapes import KIB, MIB, fill, grown, load
from perf.bench.peers_worlds import Nightjar
from tests.netlab.world import Failed, until

DOWNLOADS, CONNECTIONS, RATE, BYTES = 1000, 100, 16 * KIB, 192 * KIB
CLIENTS, PAUSE_MS = 200, 100  # 2,000 requests per second of 1 KiB
STEP_MAX, GROWN_MAX = 1.2, 1 * MIB
WARM = 10  # reloads until the memory of one more needs no further pages
# Two configurations that differ in all that a reload takes, but not in the rate of the downloads.
CONFIG = """\
[server]
rate = {rate}MiB/s
[class paced]
path = /paced/
request_rate = 16KiB/s
[class {other}]
path = /other/
list = {other}
requests = {rate}
[list {other}]
networks = 192.0.2.0/24, 2001:db8:{rate}::/48
[limits]
max_body = {rate}KiB
idle_timeout = {rate}s
send_timeout = {rate}s
[site www.example.org]
header = set X-Round: {rate}
[path www.example.org /{other}/]
redirect = 301 https://www.example.net/$rest
"""


def write_config(world, number):
    with open(os.path.join(world.scratch, "nightjar.conf"), "w", encoding="ascii") as f:
        f.write(CONFIG.format(rate=100 + number % 2, other=("even", "odd")[number % 2]))


def resident(world):
    """Bytes of the server's resident memory."""
    with open(f"/proc/{world.server.process.pid}/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def reload(world, number):
    version = world.server.telemetry("/nightjar/limits")["version"]
    write_config(world, number)
    world.server.signal(signal.SIGHUP)
    until("the reload", lambda: world.server.telemetry("/nightjar/limits")["version"] > version)


def run_reloads(world, begin, args, reloads):
    """Spreads the reloads evenly over the window. Returns the memory after the first and the last
    ones; without `reloads` at the same times."""
    memory = []
    for number in range(1, args.reloads + 1):
        at = begin + args.seconds * number / (args.reloads + 1)
        time.sleep(max(0, at - time.monotonic()))
        if reloads:
            reload(world, number)
        if number in (min(WARM, args.reloads // 2), args.reloads):
            memory.append(resident(world))
    return memory


def check(what, result, cut):
    """Each request got all of its bytes; only those that run at the end may be `cut`."""
    bad = ("mismatch", "other_status", "reset", "closed", "refused", "gone")
    wrong = {k: result[k] for k in bad if result[k]}
    if wrong:
        raise Failed(f"{what}: {wrong}")
    if not result["done"] or (not cut and result["left"]):
        raise Failed(f"{what}: {result['done']} of {result['requests']} requests ended")


def run(args, reloads):
    world = Nightjar(("--max-connections", "4000"))
    os.mkdir(os.path.join(world.root, "paced"))
    fill(world, "paced/f", BYTES)
    fill(world, "small", KIB)
    write_config(world, 0)
    world.options += ["--config", os.path.join(world.scratch, "nightjar.conf")]
    of = ("--check", os.path.join(world.root, "paced/f"), "--downloads", DOWNLOADS,
          "--connections", CONNECTIONS, "--ramp", 3, "--hold", args.seconds)
    with world:
        world.client("ping", "-c1", "-W5", "198.18.0.2")
        with load(world, *of, path="/paced/f") as paced:
            begin = paced.steady(60)
            before = world.look()
            with load(world, "--check", os.path.join(world.root, "small"), "--downloads", CLIENTS,
                      "--connections", CLIENTS // 10, "--pause", PAUSE_MS, "--ramp", 1,
                      "--settle", 0, "--hold", args.seconds - 1, path="/small") as small:
                memory = run_reloads(world, begin, args, reloads)
                small_result = small.end(120)
            result = paced.end(120)
        after = world.look()
        check("downloads", result, True)
        check("requests", small_result, True)
        if grown(before, after, "request_refused") or grown(before, after, "conn_denied"):
            raise Failed("the server has refused requests")
        step = world.server.telemetry("/nightjar/latency")["step"]
    return {"step_p50_us": step["p50_us"], "step_p999_us": step["p999_us"],
            "step_max_us": step["max_us"], "steps": step["count"],
            "memory_grown": memory[1] - memory[0], "memory": memory[1],
            "downloads": result["done"], "requests_per_s": small_result["done"] / args.seconds,
            "mb_s": result.rate() / 1e6, "busy": world.busy(before, after)}


def show(name, v):
    print(f"{name:<10} step p50 {v['step_p50_us']:>4.0f} us, p99.9 {v['step_p999_us']:>5.0f} us, "
          f"max {v['step_max_us']:>6.0f} us; {v['requests_per_s']:>5.0f} requests/s, "
          f"{v['downloads']:>6.0f} downloads, {v['mb_s']:.1f} MB/s; CPU {v['busy'] * 100:.0f} %; "
          f"memory {v['memory'] / MIB:.1f} MiB, {v['memory_grown'] / KIB:+.0f} KiB", flush=True)


def judge(rounds):
    """Prints the targets. Returns whether all are met."""
    median = {name: {key: statistics.median(r[key] for r in of) for key in of[0]}
              for name, of in rounds.items()}
    for name, values in median.items():
        show(f"= {name}", values)
    ratio = median["reloads"]["step_p999_us"] / median["none"]["step_p999_us"]
    more = median["reloads"]["memory_grown"] - median["none"]["memory_grown"]
    print(f"\nbytes exact, no refusal, in {sum(len(of) for of in rounds.values())} runs\n"
          f"p99.9 of step times with reloads / without: {ratio:.2f} (target: <= {STEP_MAX})\n"
          f"memory grown by reloads: {more / KIB:+.0f} KiB (target: <= {GROWN_MAX // KIB})")
    return ratio <= STEP_MAX and more <= GROWN_MAX


def main():
    parser = argparse.ArgumentParser(prog="./dev bench reloads", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of 8 s with 13 reloads")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--reloads", type=int, default=100)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.seconds, args.reloads = 1, 8, 13
    if args.rounds < 1 or args.reloads < 2 or args.seconds < 2:
        parser.error("expected at least 1 round, 2 reloads and 2 seconds")
    told = record.begin("reloads")
    print(record.headline(told.facts))
    rounds = {"none": [], "reloads": []}
    for number in range(args.rounds):
        for name in list(rounds)[::1 if number % 2 == 0 else -1]:
            rounds[name].append(run(args, name == "reloads"))
            show(name, rounds[name][-1])
    if args.json:
        for name, of in rounds.items():
            told.row(name, of, link="veth")
        told.write(args.json, rounds=args.rounds, seconds=args.seconds, reloads=args.reloads)
    return 0 if judge(rounds) else 1


if __name__ == "__main__":
    record.run_main("bench reloads", main, Failed)
