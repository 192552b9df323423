# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench synflood [--seconds 60] [--rate N] [--json FILE]

SYNs from random sources against nightjar, as fast as the veth takes them, while once a second a
real client (curl, a new connection each time) expects a response within a second. Reports the rate
of the flood, the number and delay of responses, and the server's memory before, during and
after.

The flood and the client share one CPU, the server has the other. Responses to the random
sources go to a router that does not exist, at almost no cost for the server's CPU. Packets beyond
the device's ring are lost before the server, those of the client included: the last
line but one shows their number.
"""
import argparse
import os
import statistics
import sys
import time

from perf.bench import record
from perf.bench.lab import cpus
from tests.netlab.flood import OPTIONS, Flood, Router, resident_kib, visit
from tests.netlab.priority import first_of
from tests.netlab.world import Failed, World

EVERY_SECONDS = 1


def watch(world, args):
    pid = world.server.process.pid
    before, stats = resident_kib(pid), world.server.stats()
    visits, memory = [], []
    flood = Flood(world, args.seconds, args.rate, args.seed)
    began = time.monotonic()
    while flood.running():
        visits.append(visit(world))
        memory.append(resident_kib(pid))
        print(f"\r\033[K{sum(ok for ok, _ in visits)} of {len(visits)} clients answered", end="",
              file=sys.stderr, flush=True)
        time.sleep(max(0, began + EVERY_SECONDS * len(visits) - time.monotonic()))
    print("\r\033[K", end="", file=sys.stderr)
    sent = flood.end()
    now = world.server.stats()
    return {"flood": sent, "visits": visits,
            "resident_kib": {"before": before, "first_second": memory[0], "most": max(memory),
                             "after": resident_kib(pid)},
            "counted": {name: now[name] - stats[name] for name in now if now[name] != stats[name]}}


def report(found):
    flood, visits, kib = found["flood"], found["visits"], found["resident_kib"]
    waits = [seconds for ok, seconds in visits if ok]
    received = found["counted"].get("rx_packets", 0)
    print(f"flood     {flood['per_second']:,.0f} SYN/s for {flood['seconds']:.0f} s")
    print(f"clients   {len(waits)} of {len(visits)} answered within a second"
          + (f"; median {statistics.median(waits) * 1e3:.1f} ms, worst {max(waits) * 1e3:.1f} ms"
             if waits else ""))
    mib = {when: n / 1024 for when, n in kib.items()}
    missed = max(0, 1 - received / flood["sent"])
    print(f"memory    {mib['before']:.1f} MiB before, {mib['first_second']:.1f} in the first "
          f"second, at most {mib['most']:.1f}, {mib['after']:.1f} after")
    print(f"device    {missed * 100:.1f} % of the flood did not get as far as the server")
    print("counted   " + ", ".join(f"{name} {n:,}" for name, n in found["counted"].items()
                                   if name.startswith(("tcp_", "drop_", "rx_packets", "tx_packets",
                                                       "mbuf_", "conn_"))))


def main():
    parser = argparse.ArgumentParser(prog="./dev bench synflood", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rate", type=int, default=0, help="SYNs per second [0: the maximum]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="write all measured values")
    args = parser.parse_args()
    world = World("veth", lcores=f"0@{cpus()[1]}", options=OPTIONS)
    world.root = os.path.join(world.scratch, "site")
    os.mkdir(world.root)
    with open(os.path.join(world.root, "index.html"), "w") as f:
        f.write("<title>still here</title>\n")
    with world, Router(world):
        first_of(world.server_ns)
        found = watch(world, args)
    if args.json:
        record.dump(args.json, found)
    report(found)


if __name__ == "__main__":
    record.run_main("bench synflood", main, Failed)
