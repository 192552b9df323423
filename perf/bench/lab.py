# SPDX-License-Identifier: BSD-3-Clause
"""
Two senders and one receiver around an emulated link, each in a network namespace of its own.

      Linux sender  nj0 --veth-- sl |                       |
                                    | nj-link (per transfer) | rx --veth-- nj0  receiver
   nightjar sender  nj0 --veth-- sn |                       |

Both senders have the same kind of veth pair, the same address and the same MAC. nj-link connects
one sender with the receiver for the duration of one transfer. Both senders run all the time, so
the load of the machine is the same with either.

All offloads of all veths are off. With offloads, the kernel's TCP would pass segments of 64 KiB
without a checksum to the device, which would carry them whole. A real link carries no such packets,
and nightjar does not send them. Without offloads both senders' packets are at most an MTU long.
"""
import json
import os
import re
import socket
import struct
import subprocess

from tests.netlab.priority import FIRST, first_of
from tests.netlab.programs import program
from tests.netlab.reaper import Reaper
from tests.netlab.world import Failed, Server, driver_args, inside, ip, make_namespace, until

SENDER, RECEIVER = "198.18.0.2", "198.18.0.1"
SENDER_MAC, RECEIVER_MAC = "02:00:00:00:00:02", "02:00:00:00:00:01"
OFFLOADS = ("rx", "tx", "sg", "tso", "gso", "gro")
# Neither the receiver's window nor the sender's buffer must be the limit: a link of 100 Mbit/s and
# 100 ms holds 1.25 MB, and its queue holds the same amount.
RECEIVER_SYSCTLS = {"net.ipv4.tcp_rmem": "4096 1048576 33554432"}
SENDER_SYSCTLS = {"net.ipv4.tcp_wmem": "4096 16384 33554432", "net.ipv4.tcp_no_metrics_save": "1"}
LINK = program("perf/tools/link/nj-link")


class Unfit(Failed):
    """The link lost packets by itself, so the transfer is not valid."""


def cpus():
    """(CPU of the link and the receiver, CPU of the active sender)"""
    mine = sorted(os.sched_getaffinity(0))
    return mine[0], mine[-1]


def sysctls(namespace, values):
    """A process inside the namespace writes them: /proc/sys/net shows the writer's namespace."""
    with inside(namespace):
        for name, value in values.items():
            with open("/proc/sys/" + name.replace(".", "/"), "w") as f:
                f.write(value)


def backlog_drops():
    """Packets that the kernel dropped because its input queues were full, on all CPUs."""
    with open("/proc/net/softnet_stat") as f:
        return sum(int(line.split()[1], 16) for line in f)


class Link:
    """A running nj-link. end() stops it and returns its report."""

    def __init__(self, namespace, a, b, options):
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, "taskset", "-c", str(cpus()[0]),
             LINK, "--fifo", *options, a, b],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise Failed(f"nj-link did not start, exit status {self.process.wait(10)}")

    def end(self):
        self.process.terminate()
        out, _ = self.process.communicate(timeout=10)
        return json.loads(out)


class Lab:
    """`root` is the folder that both senders serve; the caller fills it."""

    def __init__(self, senders=("linux", "nightjar")):
        self.name = f"njt-{os.getpid()}-lab"
        self.senders = senders
        self.link_ns, self.receiver_ns = self.name + "-l", self.name + "-r"
        self.sender_ns = {sender: f"{self.name}-{sender[0]}s" for sender in senders}
        self.server = None  # nightjar
        self.reaper = Reaper()
        self.scratch = f"/run/{self.name}"
        self.reaper.will_make("folder", self.scratch)
        self.root = f"{self.scratch}/site"
        os.makedirs(self.root)

    def __enter__(self):
        try:
            self.make_link()
            for sender in self.senders:
                {"linux": self.start_linux, "nightjar": self.start_nightjar}[sender]()
        except BaseException:
            self.reaper.finish()
            raise
        return self

    def __exit__(self, *_):
        self.reaper.finish()

    def run_in(self, namespace, *command, seconds=60):
        return subprocess.run(["ip", "netns", "exec", namespace, *command], capture_output=True,
                              text=True, timeout=seconds, **FIRST)

    # --- namespaces and servers ----------------------------------------------------------------

    def make_link(self):
        for ns in (self.link_ns, self.receiver_ns, *self.sender_ns.values()):
            self.reaper.will_make("namespace", ns)
            make_namespace(ns)
        for sender, ns in self.sender_ns.items():
            self.make_veth("s" + sender[0], ns, SENDER_MAC)
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
        """Sets the address, and a permanent neighbour entry: no transfer waits for ARP."""
        ip("-n", ns, "addr", "add", f"{address}/24", "dev", "nj0")
        ip("-n", ns, "neigh", "add", peer, "lladdr", peer_mac, "dev", "nj0", "nud", "permanent")

    def start_linux(self):
        ns = self.sender_ns["linux"]
        self.address(ns, SENDER, RECEIVER, RECEIVER_MAC)
        sysctls(ns, SENDER_SYSCTLS)
        # Set by route: as the default of a namespace it would have to be allowed for the whole
        # machine, and the machine's own default, which a namespace inherits, may be different.
        try:
            ip("-n", ns, "route", "replace", "198.18.0.0/24", "dev", "nj0", "src", SENDER,
               "congctl", "cubic")
        except Failed as why:
            raise Failed(f"this kernel has no CUBIC, which the comparison needs: {why}") from None
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
            ["--addr", f"{SENDER}/24", "--gateway", RECEIVER, "--root", self.root,
             "--management-socket", "none"], self.errors)
        self.server.wait_ready()
        first_of(self.sender_ns["nightjar"])

    def check_cubic(self):
        """Checks the congestion control of a connection of the kernel's sender."""
        def congestion_control():
            done = self.run_in(self.sender_ns["linux"], "ss", "-tinH", "state", "established")
            found = re.search(r"\b(cubic|bbr|reno)\b", done.stdout)
            return found and found[1]
        link = Link(self.link_ns, "sl", "rx", [])
        with inside(self.receiver_ns), socket.create_connection((SENDER, 80), 5):
            found = until("the kernel's sender has a connection", congestion_control)
        link.end()
        if found != "cubic":
            raise Failed(f"the kernel's sender uses {found}, not cubic")

    # --- a transfer ----------------------------------------------------------------------------

    def introduce(self):
        """Sends an ARP request for the sender's MAC: nightjar has no permanent neighbour entries,
        and learns the receiver's MAC from the request."""
        receiver, unknown = bytes.fromhex(RECEIVER_MAC.replace(":", "")), bytes(6)
        with inside(self.receiver_ns):
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        with raw:
            raw.bind(("nj0", 0))
            raw.send(b"\xff" * 6 + receiver + struct.pack(
                "!HHHBBH6s4s6s4s", 0x0806, 1, 0x0800, 6, 4, 1, receiver,
                socket.inet_aton(RECEIVER), unknown, socket.inet_aton(SENDER)))

    def transfer(self, sender, path, seconds, there, back, seed, rtt_ms):
        """
        One download over a link of its own, of at most `seconds`. Returns {bytes, seconds, status,
        done, link}. `there` is the impairment of the sender's packets, `back` of the receiver's.
        """
        link = Link(self.link_ns, "s" + sender[0], "rx",
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
        if done.returncode not in (0, 28):  # 28: --max-time has passed
            raise Failed(f"curl from {sender}: exit status {done.returncode}: "
                         f"{done.stderr.strip()}")
        for way in ("ab", "ba"):
            if report[way]["drop_overrun"] or report[way]["send_failed"]:
                raise Unfit(f"a queue of the link was full: {report[way]}")
        return {"bytes": int(n_bytes), "seconds": float(took), "status": int(status),
                "done": done.returncode == 0, "link": report}
