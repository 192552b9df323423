# SPDX-License-Identifier: BSD-3-Clause
"""A flood of SYNs to the server of a world, and requests of a real client."""
import json
import os
import re
import select
import socket
import struct
import subprocess
import threading

from tests.netlab.priority import FIRST
from tests.netlab.limits import time_limit
from tests.netlab.programs import program
from tests.netlab.world import SERVER_ADDR, inside

PROGRAM = program("perf/tools/link/nj-synflood")
CLIENT_SECONDS_MAX = 1
# The gateway for the server's replies to spoofed addresses. The clients' kernel drops frames to
# this MAC address early, because it is not its own.
ROUTER_ADDR, ROUTER_MAC = "198.18.0.254", bytes.fromhex("0200000000fe")
OPTIONS = ("--gateway", ROUTER_ADDR)
ARP_REQUEST, ARP_REPLY = 1, 2


class Router:
    """Answers ARP requests for ROUTER_ADDR. It forwards no packets."""

    def __init__(self, world):
        with inside(world.client_ns):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806))
            self.socket.bind(("nj0", 0x0806))
        self.stop_read, self.stop_write = os.pipe()
        self.thread = threading.Thread(target=self.answer)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        os.close(self.stop_write)
        self.thread.join()
        os.close(self.stop_read)
        self.socket.close()

    def answer(self):
        while True:
            ready, _, _ = select.select([self.socket, self.stop_read], [], [])
            if self.stop_read in ready:
                return
            frame = self.socket.recv(64)
            if len(frame) >= 42 and struct.unpack("!H", frame[20:22])[0] == ARP_REQUEST \
                    and frame[38:42] == socket.inet_aton(ROUTER_ADDR):
                sender = frame[22:32]  # MAC and IPv4 address
                self.socket.send(sender[:6] + ROUTER_MAC + b"\x08\x06" + struct.pack(
                    "!HHBBH6s4s", 1, 0x0800, 6, 4, ARP_REPLY, ROUTER_MAC, frame[38:42]) + sender)


class Flood:
    """
    nj-synflood in the clients' namespace. `rate`: SYNs per second; 0: as many as the device
    accepts. It has priority over other processes of the machine.
    """

    def __init__(self, world, seconds, rate=0, seed=1):
        mac = world.server_mac().hex(":")
        self.process = world.client_popen(
            PROGRAM, "--to", SERVER_ADDR, "--mac", mac, "--seconds", str(seconds), "--rate",
            str(rate), "--seed", str(seed), "nj0", stdout=subprocess.PIPE, text=True, **FIRST)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(time_limit())

    def running(self):
        return self.process.poll() is None

    def end(self):
        """Ends the flood. Returns {sent, failed, seconds, per_second}."""
        self.process.terminate()
        return json.loads(self.process.communicate(timeout=time_limit())[0])


def visit(world, path="/", seconds_max=CLIENT_SECONDS_MAX):
    """Sends a request on a new connection. Returns (was the status 200 in time, seconds)."""
    done = world.client("curl", "-s", "-o", "/dev/null", "--http2-prior-knowledge", "--max-time",
                        str(seconds_max), "-w", "%{http_code} %{time_total}",
                        world.url(path), **FIRST)
    status, seconds = done.stdout.split()
    return done.returncode == 0 and status == "200", float(seconds)


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"^VmRSS:\s+(\d+) kB", f.read(), re.M)[1])
