# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench memory [--connections N] [--get K] [--json FILE]
./dev bench memory --tls [--connections N] [--json FILE]

Memory of an idle connection in a release build of the server. Opens N (1,000,000) idle connections
and reads the server's memory from the kernel at 0, N/4, N/2 and N of them. Splits the growth by
object with /nightjar/memory. Then sends a request over K (1000) random connections and checks each
response. Then resets all and checks that the server frees them.

The server and the clients are two DPDK processes with a memif link between them; both need about
N times 0.7 KB. Growth of anonymous memory is what connections cost; EAL memory (packet buffers) is
shown separately, as it does not depend on N.

With --tls: the memory that TLS adds to an idle connection, of nightjar, h2o and nginx, on 100,000
connections (perf/bench/memory_tls.py). Sockets in the kernel of h2o and nginx are not included.
"""
import argparse
import sys

from perf.bench import record
from perf.bench.memory_tls import FIRST_CONNECTIONS, bench as bench_tls
from tests.netlab.crowd import Crowd
from tests.netlab.world import Failed

MIB = 1 << 20
CLIENT_BYTES, SERVER_BYTES = 800, 800  # per connection, with a margin


def look(crowd, n):
    objects = crowd.server.telemetry("/nightjar/memory")
    return {"connections": n, **crowd.memory(), "objects": objects}


def split(points):
    """Bytes per connection at the last point: of each kind of object, and of the rest."""
    n, objects = points[-1]["connections"], points[-1]["objects"]
    grown = points[-1]["anonymous"] - points[0]["anonymous"]
    parts = {name.removesuffix("_high"): high * objects[name.removesuffix("high") + "bytes"]
             for name, high in objects.items() if name.endswith("_high")}
    parts["flow_table"] = objects["flow_table_bytes"]
    parts["rest"] = grown - sum(parts.values())
    return {name: part / n for name, part in parts.items()}


def show(points, parts, got):
    first = points[0]
    print(f"\n{'connections':>12}{'anonymous':>14}{'per connection':>16}{'EAL memory':>14}"
          f"{'hugepages':>12}")
    for p in points:
        n = p["connections"]
        each = f"{(p['anonymous'] - first['anonymous']) / n:.1f} B" if n else ""
        print(f"{n:>12,}{p['anonymous'] / MIB:>10.1f} MiB{each:>16}"
              f"{p['shared_memory'] / MIB:>10.1f} MiB{p['hugepages'] / MIB:>8.1f} MiB")
    print("\nof it, per connection:")
    for name, n_bytes in parts.items():
        what = {"tcb": "TCP control block", "xfer": "TCP, under way", "run": "TCP, losses",
                "syn": "TCP, half open", "time_wait": "TCP, TIME-WAIT",
                "conn": "connection of the shard", "talk": "connection with a request",
                "flow_table": "flow table", "rest": "the rest"}.get(name, name)
        print(f"  {what:<24}{n_bytes:>8.1f} B")
    print(f"\n{got['ok']} requests over random connections answered correctly: "
          f"p50 {got['p50_us']} us, p99 {got['p99_us']} us, at most {got['max_us']} us")


def measure(args):
    n = args.connections
    with Crowd(n, progress=sys.stderr) as crowd:
        points = [look(crowd, 0)]
        opened = []
        for target in dict.fromkeys((n // 4, n // 2, n)):
            if target:
                opened.append(crowd.open(target))
                points.append(look(crowd, target))
        got = crowd.command(f"get {min(args.get, n)}")
        if crowd.server.stats()["connections"] != n:
            raise Failed("connections were lost during the requests over others")
        with_h2 = look(crowd, n)
        aborted = crowd.abort()
        return {"points": points, "opened": opened, "got": got, "after_get": with_h2,
                "aborted": aborted, "per_connection": split(points)}


def check_room(n):
    with open("/proc/meminfo", encoding="ascii") as f:
        free = int(next(line for line in f if line.startswith("MemAvailable")).split()[1]) << 10
    wanted = n * (CLIENT_BYTES + SERVER_BYTES) + 1024 * MIB
    if wanted > free:
        sys.exit(f"bench: {n:,} connections need about {wanted >> 20} MiB for both sides, "
                 f"{free >> 20} MiB are free")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench memory", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tls", action="store_true", help="what TLS adds, beside h2o and nginx")
    parser.add_argument("--connections", type=int, help="[1,000,000; --tls: 100,000]")
    parser.add_argument("--get", type=int, default=1000, metavar="K")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    args.connections = args.connections or (100_000 if args.tls else 1_000_000)
    if args.tls:
        if not 2 * FIRST_CONNECTIONS <= args.connections <= 500_000:
            parser.error(f"from {2 * FIRST_CONNECTIONS} to 500000 connections with --tls")
        return bench_tls(args.connections, args.json)
    if not (1 <= args.connections <= 1 << 24 and 1 <= args.get <= 100_000):
        parser.error("from 1 to 16777216 connections, from 1 to 100000 requests")
    check_room(args.connections)
    result = measure(args)
    if args.json:
        record.dump(args.json, result)
    show(result["points"], result["per_connection"], result["got"])


if __name__ == "__main__":
    record.run_main("bench memory", main, Failed)
