# SPDX-License-Identifier: BSD-3-Clause
"""
Two senders and one receiver around an emulated link, each in a network namespace of its own.

      Linux sender  nj0 --veth-- sl |                       |
                                    | nj-link (per transfer) | rx --veth-- nj0  receiver
   nightjar sender  nj0 --veth-- sn |                       |

Whoever sends sends into the same kind of veth pair, from the same address and MAC; nj-link joins
one of them with the receiver for the length of one transfer. Both senders stay up all the time, so
the machine is equally busy with either.

All offloads of all veths are off. With them, the kernel's TCP would hand 64 KiB at a time to a
device that carries it whole, without a checksum in it: no such thing is ever seen on a wire, and
nightjar does not do it. Now both senders' packets are at most an MTU long when the link sees them.
"""
import json
import os
import re
import socket
import struct
import subprocess

from tests.netlab.priority import FIRST, first_of
from tests.netlab.reaper import Reaper
from tests.netlab.world import BUILD, Failed, Server, driver_args, inside, ip, make_namespace, until

SENDER, RECEIVER = "198.18.0.2", "198.18.0.1"
SENDER_MAC, RECEIVER_MAC = "02:00:00:00:00:02", "02:00:00:00:00:01"
OFFLOADS = ("rx", "tx", "sg", "tso", "gso", "gro")
# Neither the receiver's window nor the sender's buffer is to be the limit: a link of 100 Mbit/s and
# 100 ms holds 1.25 MB, and as much again in its queue.
RECEIVER_SYSCTLS = {"net.ipv4.tcp_rmem": "4096 1048576 33554432"}
SENDER_SYSCTLS = {"net.ipv4.tcp_wmem": "4096 16384 33554432", "net.ipv4.tcp_no_metrics_save": "1"}
PROGRAMS = os.path.join(BUILD, "perf", "tools", "link")


class Unfit(Failed):
    """The instrument lost packets of its own: what it measured says nothing."""


def cpus():
    """(for the link and the receiver, for the sender that works)"""
    mine = sorted(os.sched_getaffinity(0))
    return mine[0], mine[-1]


def sysctls(namespace, values):
    """Written by a process inside: /proc/sys/net is that of the reader's namespace."""
    with inside(namespace):
        for name, value in values.items():
            with open("/proc/sys/" + name.replace(".", "/"), "w") as f:
                f.write(value)


def backlog_drops():
    """Packets that the kernel's own input queues had no room for, on all CPUs."""
    with open("/proc/net/softnet_stat") as f:
        return sum(int(line.split()[1], 16) for line in f)


class Link:
    """A running nj-link; what it did, once it has ended."""

    def __init__(self, namespace, a, b, options):
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, "taskset", "-c", str(cpus()[0]),
             os.path.join(PROGRAMS, "nj-link"), "--fifo", *options, a, b],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise Failed(f"nj-link did not start, exit status {self.process.wait(10)}")

    def end(self):
        self.process.terminate()
        out, _ = self.process.communicate(timeout=10)
        return json.loads(out)


class Lab:
    """`root` is the folder that both serve; whoever makes a Lab fills it."""

    def __init__(self, senders=("linux", "nightjar")):
        self.name = f"njt-{os.getpid()}-lab"
        self.senders = senders
        self.link_ns, self.receiver_ns = self.name + "-l", self.name + "-r"
        self.sender_ns = {who: f"{self.name}-{who[0]}s" for who in senders}
        self.server = None  # nightjar
        self.reaper = Reaper()
        self.scratch = f"/run/{self.name}"
        self.reaper.will_make("folder", self.scratch)
        self.root = f"{self.scratch}/site"
        os.makedirs(self.root)

    def __enter__(self):
        try:
            self.make_link()
            for who in self.senders:
                {"linux": self.start_linux, "nightjar": self.start_nightjar}[who]()
        except BaseException:
            self.reaper.finish()
            raise
        return self

    def __exit__(self, *_):
        self.reaper.finish()

    def run_in(self, namespace, *command, seconds=60):
        return subprocess.run(["ip", "netns", "exec", namespace, *command], capture_output=True,
                              text=True, timeout=seconds, **FIRST)

    # --- what there is -------------------------------------------------------------------------

    def make_link(self):
        for ns in (self.link_ns, self.receiver_ns, *self.sender_ns.values()):
            self.reaper.will_make("namespace", ns)
            make_namespace(ns)
        for who, ns in self.sender_ns.items():
            self.make_veth("s" + who[0], ns, SENDER_MAC)
        self.make_veth("rx", self.receiver_ns, RECEIVER_MAC)
        self.address(self.receiver_ns, RECEIVER, SENDER, SENDER_MAC)
        sysctls(self.receiver_ns, RECEIVER_SYSCTLS)

    def make_veth(self, name, ns, mac):
        ip("-n", self.link_ns, "link", "add", name, "type", "veth", "peer", "name", "nj0",
           "address", mac, "netns", ns)
        for namespace, device in ((self.link_ns, name), (ns, "nj0")):
            done = self.run_in(namespace, "ethtool", "-K", device,
                               *(word for o in OFFLOADS for word in (o, "off")))
            if done.returncode:
                raise Failed(f"ethtool: {done.stderr.strip()}")
            ip("-n", namespace, "link", "set", device, "up")

    @staticmethod
    def address(ns, address, peer, peer_mac):
        """With the peer's MAC known for good: no transfer waits for ARP."""
        ip("-n", ns, "addr", "add", f"{address}/24", "dev", "nj0")
        ip("-n", ns, "neigh", "add", peer, "lladdr", peer_mac, "dev", "nj0", "nud", "permanent")

    def start_linux(self):
        ns = self.sender_ns["linux"]
        self.address(ns, SENDER, RECEIVER, RECEIVER_MAC)
        sysctls(ns, SENDER_SYSCTLS)
        # By route: as a namespace's default it needs to be allowed for the whole machine, and the
        # machine's own default (which a namespace inherits) may be another.
        try:
            ip("-n", ns, "route", "replace", "198.18.0.0/24", "dev", "nj0", "src", SENDER,
               "congctl", "cubic")
        except Failed as why:
            raise Failed(f"this kernel has no CUBIC to compare with: {why}") from None
        self.nghttpd = subprocess.Popen(
            ["ip", "netns", "exec", ns, "taskset", "-c", str(cpus()[1]), "nghttpd", "--no-tls",
             "-a", SENDER, "-d", self.root, "80"], stdout=subprocess.DEVNULL, **FIRST)
        until("nghttpd listens", lambda: self.run_in(ns, "ss", "-tlnH").stdout.strip())

    def start_nightjar(self):
        prefix = self.name
        self.reaper.will_make("prefix", prefix)
        self.errors = open(f"{self.scratch}/stderr", "w+b")
        self.server = Server(
            self.sender_ns["nightjar"], prefix,
            driver_args("af_packet") + ["--lcores", f"0@{cpus()[1]}"],
            ["--addr", f"{SENDER}/24", "--gateway", RECEIVER, "--root", self.root], self.errors)
        self.server.wait_ready()
        first_of(self.sender_ns["nightjar"])

    def check_cubic(self):
        """Says what the kernel's sender runs, from a connection as it runs it."""
        def congestion_control():
            told = self.run_in(self.sender_ns["linux"], "ss", "-tinH", "state", "established")
            found = re.search(r"\b(cubic|bbr|reno)\b", told.stdout)
            return found and found[1]
        link = Link(self.link_ns, "sl", "rx", [])
        with inside(self.receiver_ns), socket.create_connection((SENDER, 80), 5):
            found = until("a connection of the kernel's", congestion_control)
        link.end()
        if found != "cubic":
            raise Failed(f"the kernel's sender uses {found}, not cubic")

    # --- a transfer ----------------------------------------------------------------------------

    def introduce(self):
        """Asks for the sender's MAC: nightjar has no permanent neighbours, but learns ours now."""
        ours, nobody = bytes.fromhex(RECEIVER_MAC.replace(":", "")), bytes(6)
        with inside(self.receiver_ns):
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        with raw:
            raw.bind(("nj0", 0))
            raw.send(b"\xff" * 6 + ours + struct.pack(
                "!HHHBBH6s4s6s4s", 0x0806, 1, 0x0800, 6, 4, 1, ours, socket.inet_aton(RECEIVER),
                nobody, socket.inet_aton(SENDER)))

    def transfer(self, who, path, seconds, there, back, seed, rtt_ms):
        """
        One download over a link of its own, at most so long: {bytes, seconds, status, done, link}.
        `there` says what happens to the sender's packets, `back` to the receiver's.
        """
        link = Link(self.link_ns, "s" + who[0], "rx",
                    ["--ab", there, "--ba", back, "--seed", str(seed),
                     "--quiet", str(1000 * rtt_ms + 20_000)])
        self.introduce()
        done = self.run_in(
            self.receiver_ns, "taskset", "-c", str(cpus()[0]), "curl", "-sS", "-o", "/dev/null",
            "--http2-prior-knowledge", "--max-time", str(seconds), "-w",
            "%{size_download} %{time_total} %{http_code}", f"http://{SENDER}/{path}",
            seconds=seconds + 20)
        report = link.end()
        try:
            n_bytes, took, status = done.stdout.split()
        except ValueError:
            raise Failed(f"curl: {done.stdout}{done.stderr}") from None
        if done.returncode not in (0, 28):  # 28: the time is up
            raise Failed(f"curl from {who}: exit status {done.returncode}: {done.stderr.strip()}")
        for way in ("ab", "ba"):
            if report[way]["drop_overrun"] or report[way]["send_failed"]:
                raise Unfit(f"the link had no room for packets: {report[way]}")
        return {"bytes": int(n_bytes), "seconds": float(took), "status": int(status),
                "done": done.returncode == 0, "link": report}
