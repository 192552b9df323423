# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench downloads [--quick] [--json FILE] [--svg FILE] [SHAPE ...]

Up to 10,000 paced downloads from one lcore, compared with nginx (limit_rate) with one worker on the
same CPU, over the same kind of link to the same client. The two servers alternate.

  article  clients at 200 KiB/s repeatedly read 200 KiB; their number grows at fixed intervals from
           1 to 100: response time and time to the first byte, compared with those of one client
  crowd    10, 100, 1,000, 10,000 downloads at 20 KiB/s: rate of each over the window, time to the
           first byte of a new client, wake-ups that sent nothing, CPU
  global   a limit of 20 MiB/s for the whole server: share of it reached, bytes in the worst 100 ms
  share    two classes with guaranteed rates of 3:1
  client   one client with 8 connections of 32 streams with ranges, compared with its limit
  change   a limit changes during the downloads: delay until the rate changes
  evil     a thousand clients request 10 MiB and do not read: response time of other clients
"""
import argparse
import platform
import sys

from perf.bench import record
from perf.bench.downloads_shapes import PEERS, SHAPES, Figure
from perf.bench.lab import backlog_drops
from perf.bench.peers_worlds import haproxy_can, nginx_version
from perf.bench.svg import multiplot
from tests.netlab.world import Failed


def table(figures):
    print(f"\n{'shape':<12}{'server':<10}{'what':<50} {'measured':<48} {'target':<12}")
    for f in figures:
        verdict = "" if f.met is None else "met" if f.met else "BELOW"
        print(f"{f.shape:<12}{f.who:<10}{f.what:<50} {f.text:<48} {f.target:<12}{verdict}")
    judged = [f for f in figures if f.met is not None]
    print(f"\n{sum(f.met for f in judged)} of {len(judged)} targets met")


def limits(dropped):
    print(f"""
One lcore or one worker process on one CPU, the client on another; a veth pair with an MTU of 1500,
all offloads off, the kernel's TCP of each side on that side's CPU. nginx {nginx_version()} with
limit_rate, HTTP/2 without TLS; it sends the bytes of a second at once. HAProxy {haproxy_can()}
(bwlim came with 2.7, Debian 12 has 2.6). "CPU busy" is of nightjar's lcore from its cycle counters,
of nginx's worker from the kernel's accounts, which exclude the cost of incoming packets.
Bytes count when the client has read them. Packets dropped in the machine's own input queues, of
all processes: {dropped}.""")


def data(name, points):
    return f"${name} << EOD\n" + "\n".join(" ".join(map(str, p)) for p in points) + "\nEOD\n"


def plot(title, x, y, series, log=""):
    """`series` is {server: [(x, y)]}; `log` names the axes with a logarithmic scale."""
    script = f"set title '{title}'\nset xlabel '{x}'\nset ylabel '{y}'\nunset logscale\n"
    script += f"set yrange [{'*' if 'y' in log else 0}:*]\n" + f"set logscale {log}\n" * bool(log)
    for server, points in series.items():
        script += data(server, points)
    lines = (f"${server} using 1:2 title '{server}'" for server in series)
    return script + "plot " + ", ".join(lines) + "\n"


def chart(results, path):
    """Response time and time to the first byte, over the number of clients."""
    plots = []
    if "article" in results:
        curves = {server: runs[0]["curve"] for server, runs in results["article"].items()}
        for column, what, scale in ((1, "response time", 1), (2, "time to the first byte", 1e3)):
            unit = "s" if scale == 1 else "ms"
            plots.append(plot(f"{what}, 200 KiB at 200 KiB/s", "clients", unit,
                              {server: [(p[0], p[column] * scale) for p in points]
                               for server, points in curves.items()}))
    if "crowd" in results:
        runs = results["crowd"]
        plots.append(plot("time to the first byte of new clients, downloads at 20 KiB/s",
                          "downloads", "ms",
                          {server: [(r["n"], r["within"]["ttfb_p50"] * 1e3) for r in rs]
                           for server, rs in runs.items()}, "xy"))
        plots.append(plot("largest error of a rate", "downloads", "%",
                          {server: [(r["n"], r["error"]["max_abs"] * 100) for r in rs]
                           for server, rs in runs.items()}, "x"))
    if not plots:
        sys.exit("bench: --svg shows article and crowd, and neither was measured")
    multiplot(path, plots, 420, "set key top left\nset style data linespoints")


def options():
    parser = argparse.ArgumentParser(prog="./dev bench downloads", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="shorter ramps and windows")
    parser.add_argument("--full", action="store_true",
                        help="the article's original times: one client more each 6 s, then 10 "
                             "minutes")
    parser.add_argument("--rounds", type=int, default=1, help="of article [1]")
    parser.add_argument("--crowd", type=lambda text: [int(n) for n in text.split(",")],
                        metavar="N,N,...", help="[10,100,1000,10000]")
    parser.add_argument("--streams", type=int, default=10, help="per connection of crowd [10]")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=["nightjar", "nginx"],
                        metavar="NAME,NAME")
    parser.add_argument("--json", metavar="FILE", help="write all measured values")
    parser.add_argument("--svg", metavar="FILE", help="curves over the number of clients")
    parser.add_argument("--strict", action="store_true",
                        help="exit status 1 when a target is missed")
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", default=[])
    args = parser.parse_args()
    args.shapes = args.shapes or list(SHAPES)
    if wrong := set(args.shapes) - set(SHAPES):
        parser.error(f"no such shape: {', '.join(wrong)}; there are {', '.join(SHAPES)}")
    if wrong := set(args.peers) - set(PEERS):
        parser.error(f"no such peer: {', '.join(wrong)}; there are {', '.join(PEERS)}")
    args.alone, args.hold, args.ramp_ms = (10, 10, 100) if args.quick else (20, 30, 600)
    if args.full:
        args.alone, args.hold, args.ramp_ms = 60, 600, 6000
    args.crowd = args.crowd or ([10, 10_000] if args.quick else [10, 100, 1000, 10_000])
    args.crowd_hold, args.crowd_ramp_ms, args.probe = 30, 5000, 5 if args.quick else 10
    return args


def main():
    args = options()
    before = backlog_drops()
    results, figures = {}, []
    for shape in args.shapes:
        try:
            results[shape], found = SHAPES[shape](
                args, lambda what: print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True))
            figures += found
        except Failed as failed:  # keep the results of the other shapes
            print(f"\r\033[Kbench: {shape}: {failed}", file=sys.stderr)
            figures.append(Figure(shape, "", "could not be measured", None, "", "", False))
    print("\r\033[K", end="", file=sys.stderr)
    dropped = backlog_drops() - before
    if args.json:
        record.dump(args.json, {"kernel": platform.release(), "results": results,
                                "figures": [figure.as_dict() for figure in figures]})
    table(figures)
    limits(dropped)
    if args.svg:
        chart(results, record.caller_path(args.svg))
    return int(args.strict and any(f.met is False for f in figures))


if __name__ == "__main__":
    record.run_main("bench downloads", main, Failed)
