# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench idle [--seconds 60] [--tries 20] [--modes sleep ...] [--json FILE]

CPU use and response delay of an idle server, over a tap and with two lcores: the
CPU time of the process without traffic, in percent of one CPU, and the time from a request on
an open connection to the end of its response, each time after a second without packets.

An idle CPU wakes slowly, on a virtual machine more slowly than most servers respond, and the CPU of
the client must wake, too. The table therefore shows a floor: the same client and
an echo process that waits in recv(), over the kernel's TCP on the loopback.
"""
import argparse
import os
import socket
import statistics
import time

from perf.bench import record
from tests.netlab.world import Failed, World

MODES = ("sleep", "interrupt", "pause", "spin")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
QUIET_SECONDS = 1


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND  # utime, stime


def busy(pid, seconds):
    """Percent of one CPU."""
    before, began = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_seconds(pid) - before) / (time.monotonic() - began)


def ends_stream(data):
    """Whether one of these HTTP/2 frames ends a stream."""
    at = 0
    while at + 9 <= len(data):
        if data[at + 3] <= 1 and data[at + 4] & 1:  # DATA or HEADERS with END_STREAM
            return True
        at += 9 + int.from_bytes(data[at:at + 3], "big")
    return False


def first_answer(sock, request, is_whole):
    """Seconds from a request after an idle period to its response, and the response."""
    answer = b""
    time.sleep(QUIET_SECONDS)
    began = time.perf_counter()
    sock.sendall(request)
    while not is_whole(answer):
        answer += sock.recv(65536)
    return time.perf_counter() - began, answer


def floor(tries):
    """Seconds until each response of an echo process."""
    listener = socket.create_server(("127.0.0.1", 0))
    child = os.fork()
    if child == 0:
        peer, _ = listener.accept()
        while data := peer.recv(65536):
            peer.sendall(data)
        os._exit(0)
    with socket.create_connection(listener.getsockname()) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        waits = [first_answer(sock, b"?" * 20, len)[0] for _ in range(tries)]
    listener.close()
    os.waitpid(child, 0)
    return waits


def answers(world, tries):
    """Seconds until each response of nightjar."""
    from tests.netlab.h2client import Client  # of python3-h2, which --help does without
    client = Client(world.connect())
    client.response(client.request("/"))
    waits = []
    for _ in range(tries):
        stream = client.prepare("/")
        seconds, answer = first_answer(client.sock, client.h2.data_to_send(), ends_stream)
        waits.append(seconds)
        client.take(client.h2.receive_data(answer))
        if client.response(stream)[0] != 200:
            raise Failed("the response was not the page")
    return waits


def measure(mode, args):
    world = World("tap", lcores=2, options=["--idle", mode])
    world.root = os.path.join(world.scratch, "site")
    os.mkdir(world.root)
    with open(os.path.join(world.root, "index.html"), "w", encoding="ascii") as f:
        f.write("<title>still here</title>\n")
    with world:
        time.sleep(QUIET_SECONDS)
        return {"mode": mode, "busy_percent": busy(world.server.process.pid, args.seconds),
                "answers": answers(world, args.tries)}


def tell(one):
    waits = [1e3 * seconds for seconds in one["answers"]]
    used = "       an echo process" if one["mode"] == "floor" else \
        f"{one['busy_percent']:6.2f} % of a CPU"
    print(f"{one['mode']:<10} {used}; first response: median {statistics.median(waits):.2f} ms, "
          f"{min(waits):.2f} to {max(waits):.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench idle", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--json", metavar="FILE", help="write all measured values")
    args = parser.parse_args()
    found = []
    for mode in ("floor", *args.modes):
        found.append({"mode": "floor", "busy_percent": 0, "answers": floor(args.tries)}
                     if mode == "floor" else measure(mode, args))
        if args.json:  # also if a later mode fails
            record.dump(args.json, found)
        tell(found[-1])


if __name__ == "__main__":
    record.run_main("bench idle", main, Failed)
