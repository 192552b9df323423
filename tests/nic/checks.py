# SPDX-License-Identifier: BSD-3-Clause
"""A server in a guest, and its checks on one NIC."""
import contextlib
import hashlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import time

from tests.netlab.world import (PREFIX_BITS, PREFIX_BITS6, SERVER_ADDR, SERVER_ADDR6, Failed,
                                Server, inside, ip, server_path, until)
from tests.nic import pack

SERVER_SECONDS_MAX = 180  # for the start or the end; 5 on an idle machine
CURL_SECONDS_MAX = 120
LINK_SECONDS_MAX = 60
DOWNLOAD = "10MiB"
BEGUN_BYTES = 256 << 10  # received before an event during a download
SESSIONS, REQUESTS = 32, 2000
RSS_TRIES = 5
JUMBO_MTU, JUMBO_BYTES = 9000, 8000
LOOPS_PER_SECOND_MAX = 150  # of an lcore that wakes up every 50 ms and for timers
ETH_P_IP = 0x0800


class GuestServer(Server):
    """A world.Server in a guest, run by `user` on CPUs from `first` on. `options`: of nightjar.
    `name`: unique among the servers of a guest."""

    def __init__(self, guest, preset, lcores, options, user="root", name="rte", first=1):
        self.guest, self.name = guest, name
        self.output = ""
        self.has_ended = False
        guest.output.unread = b""
        command = [server_path(), "--preset", preset, "--file-prefix", name,
                   "-l", ",".join(str(first + i) for i in range(lcores)), "--",
                   "--addr", f"{SERVER_ADDR}/{PREFIX_BITS}",
                   "--addr", f"{SERVER_ADDR6}/{PREFIX_BITS6}", "--root", pack.SITE,
                   "--config", pack.POLICY, "--drain-timeout", "60s", *options]
        run = f"echo $$ >/tmp/{name}.pid; exec {shlex.join(command)}"
        guest.run(f"( {pack.as_user(user, run)}; echo ended $? ) </dev/null >/dev/ttyS2 2>&1 &")

    def wait_for(self, pattern, seconds):
        """Waits for a pattern in the further output of the server. Returns the match."""
        answer = self.guest.output.read_until(pattern.encode(), seconds)
        if not answer:
            raise Failed(f"the server did not print {pattern!r} within {seconds} s; its output:\n"
                         f"{self.output}{self.guest.output.unread.decode(errors='replace')}\n"
                         f"{self.guest.console_end()}")
        found, before = answer
        self.output += (before + found[0]).decode(errors="replace")
        return found

    def wait_ready(self, seconds=SERVER_SECONDS_MAX):
        ended = self.wait_for(r"nightjar: info: ready.*\n|^ended (\d+)\n", seconds)[1]
        if ended:
            self.has_ended = True
            raise Failed(f"the server ended before it was ready: exit status {ended.decode()}\n"
                         f"{self.output}")

    def signal(self, number=signal.SIGTERM):
        self.guest.run(f"kill -{int(number)} $(cat /tmp/{self.name}.pid)")

    def wait(self, seconds=SERVER_SECONDS_MAX):
        status = int(self.wait_for(r"^ended (\d+)\n", seconds)[1])
        self.has_ended = True
        return status

    def telemetry(self, command):
        answer = self.guest.run(f"printf %s {command} | socat -t10 - "
                                f"UNIX-CONNECT:/var/run/dpdk/{self.name}/dpdk_telemetry.v2,type=5")
        decoder = json.JSONDecoder()
        _, end = decoder.raw_decode(answer)  # the greeting
        return decoder.raw_decode(answer, end)[0][command.split(",")[0]]


class Checks:
    """The checks of one NIC of a guest, with a number of lcores on CPUs from `first` on. A check
    raises an exception if it fails. It may return a text for the table. `name`: of its server,
    unique among the servers of the guest."""

    def __init__(self, guest, nic, lcores, sums, name="rte", first=1):
        self.guest, self.nic, self.lcores, self.sums = guest, nic, lcores, sums
        self.name, self.first = name, first
        self.world = guest.world
        self.server = None

    @contextlib.contextmanager
    def network(self):
        """Assigns the clients' addresses to the tap of this NIC, until the end of the block."""
        self.world.client_dev = self.nic.name
        self.world.address_client()
        try:
            yield
        finally:
            with contextlib.suppress(Failed):  # the tap is gone if QEMU has ended
                ip("-n", self.world.client_ns, "addr", "flush", "dev", self.nic.name,
                   "scope", "global")

    def start(self, *options, preset=None, differs=""):
        """`differs`: part of the expected warning that the port is not as the preset expects."""
        self.kill()
        preset = preset or self.nic.preset or self.nic.name
        self.server = GuestServer(self.guest, f"{preset},pci={self.guest.address(self.nic)}",
                                  self.lcores, options, name=self.name, first=self.first)
        self.server.wait_ready()
        warnings = re.findall(r"warning: preset .*", self.server.output)
        if self.lcores == 3 and not differs:
            differs = self.nic.warning_of_3_lcores
        if len(warnings) != bool(differs) or differs not in "".join(warnings):
            raise Failed(f"expected {differs!r} in warnings about the preset; the output:\n"
                         f"{self.server.output}")
        self.rights()

    def stop(self):
        self.server.signal()
        self.expect_end()

    def expect_end(self):
        status = self.server.wait()
        if status:
            raise Failed(f"exit status {status} after SIGTERM\n{self.server.output}")

    def kill(self):
        """Kills the server that a failed check has left running."""
        if self.server and not self.server.has_ended:
            self.server.signal(signal.SIGKILL)
            self.server.wait()

    def curl(self, *args):
        """Returns the received bytes."""
        done = self.world.client("curl", *self.curl_args(), *args, text=False,
                                 seconds=CURL_SECONDS_MAX + 10)
        if done.returncode:
            raise Failed(f"curl {' '.join(args)}: {done.stderr.decode()}")
        return done.stdout

    @staticmethod
    def curl_args():
        return ("-gsS", "--http2-prior-knowledge", "--max-time", str(CURL_SECONDS_MAX))

    def expect_sum(self, name, body):
        if hashlib.sha256(body).hexdigest() != self.sums[name]:
            raise Failed(f"{name}: received {len(body)} bytes with another sha256")

    def page(self):
        body = self.curl(self.world.url("/"))
        if b"<title>nightjar</title>" not in body:
            raise Failed(f"received another page: {body[:200]}")

    def rights(self, user=pack.NOBODY, bounding_set=0):
        """Each thread of the server is this user, without capabilities, and has a filter."""
        text = self.guest.run(f"cat /proc/$(cat /tmp/{self.name}.pid)/task/*/status")
        zero = "0" * 16
        expected = {"Uid": "\t".join([str(user)] * 4), "CapPrm": zero, "CapEff": zero,
                    "CapBnd": f"{bounding_set:016x}", "CapAmb": zero, "NoNewPrivs": "1",
                    "Seccomp": "2"}
        found = {name: re.findall(rf"^{name}:\s+(.*)$", text, re.M) for name in expected}
        for name, value in expected.items():
            if len(found[name]) < 8 or set(found[name]) != {value}:
                raise Failed(f"{name} of the threads: {found[name]}, expected {value}\n{text}")
        if "seccomp, Landlock" not in self.server.output:
            raise Failed(f"no Landlock, which Debian's kernel has\n{self.server.output}")

    def sha256(self):
        self.expect_sum(DOWNLOAD, self.curl(self.world.url(f"/{DOWNLOAD}")))

    def ipv6(self):
        is_ready = f"address {SERVER_ADDR6}/{PREFIX_BITS6} is ready\n"
        if is_ready not in self.server.output:
            self.server.wait_for(re.escape(is_ready), 30)
        name = "200KiB"
        self.expect_sum(name, self.curl(f"http://[{SERVER_ADDR6}]/{name}"))

    def h2load(self):
        done = self.world.client("h2load", f"-n{REQUESTS}", f"-c{SESSIONS}", "-m5",
                                 self.world.url("/one"))
        if f" {REQUESTS} succeeded, 0 failed" not in done.stdout:
            raise Failed(done.stdout + done.stderr)

    def rss(self):
        """Called after h2load: each lcore must have had connections. With some RSS keys one of
        three lcores gets none of 32 consecutive ports; then h2load runs again with other ports."""
        for _ in range(RSS_TRIES):
            requests = [shard["requests"] for shard in self.server.shards()]
            if all(requests):
                break
            self.h2load()
        answer = self.server.telemetry("/nightjar/shards")
        if not all(requests):
            raise Failed(f"requests per lcore: {requests}\n{answer}")
        by_device = answer["spread"].startswith("RSS")
        if self.nic.has_rss and not by_device:
            raise Failed(f"the server does not use the RSS of the device: {answer['spread']}")
        return "device" if by_device else "rings"

    @contextlib.contextmanager
    def download_in_progress(self):
        """A download at 2 MiB/s, which must complete. The block runs after its first bytes."""
        path = f"{self.world.scratch}/download"
        curl = self.world.client_popen(
            "curl", *self.curl_args(), "--no-buffer", "-H", pack.PACED_HEADER, "-o", path,
            self.world.url(f"/{DOWNLOAD}"), stderr=subprocess.PIPE, text=True)
        try:
            until("the first bytes of a download",
                  lambda: os.path.exists(path) and os.path.getsize(path) >= BEGUN_BYTES, 30)
            yield
            _, errors = curl.communicate(timeout=CURL_SECONDS_MAX + 10)
            if curl.returncode:
                raise Failed(f"curl: {errors}")
            with open(path, "rb") as f:
                self.expect_sum(DOWNLOAD, f.read())
        finally:
            curl.kill()
            curl.communicate()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def link_is(self, word, port=0):
        return self.server.telemetry(f"/ethdev/link_status,{port}")["status"] == word

    def flap(self):
        """Sets the link down during a download, until the driver reports it and TCP times out."""
        timeouts = self.server.stats()["tcp_rto"]
        with self.download_in_progress():
            self.guest.set_link(self.nic, False)
            try:
                until("the driver reports that the link is down", lambda: self.link_is("DOWN"),
                      LINK_SECONDS_MAX)
                until("time-outs of TCP while the link is down",
                      lambda: self.server.stats()["tcp_rto"] > timeouts, LINK_SECONDS_MAX)
            finally:
                self.guest.set_link(self.nic, True)
            until("the driver reports that the link is up", lambda: self.link_is("UP"),
                  LINK_SECONDS_MAX)

    def drain(self):
        """SIGTERM during a download: the download completes, and the exit status is 0."""
        with self.download_in_progress():
            self.server.signal()
        self.expect_end()

    def restart(self):
        """Starts with the preset of the other binding. The server prints a warning."""
        preset = "uio" if self.guest.binding == "vfio" else "vfio"
        self.start(preset=preset, differs="expected it bound to ")
        self.page()
        self.stop()

    def killed(self):
        """SIGKILL during a download. The next start serves a page."""
        self.start()
        with contextlib.suppress(Failed), self.download_in_progress():
            self.kill()
            raise Failed("ends the wait for the rest of the download")
        self.start()
        self.page()
        self.stop()

    def no_link(self):
        """Starts while the link is down. Then the link goes up."""
        self.guest.set_link(self.nic, False)
        try:
            self.start()
        finally:
            self.guest.set_link(self.nic, True)
        until("the driver reports that the link is up", lambda: self.link_is("UP"),
              LINK_SECONDS_MAX)
        self.page()
        self.stop()

    def lcores_sleep(self):
        """Do idle lcores make few steps: one per timer, and one per 50 ms?"""
        loops = []
        began = time.monotonic()
        for _ in range(2):
            loops.append([s["loops_idle"] + s["loops_busy"] for s in self.server.shards()])
            time.sleep(0.5)  # the measured period
        loops_max = LOOPS_PER_SECOND_MAX * (time.monotonic() - began)
        return all(after - before < loops_max for before, after in zip(*loops))

    def interrupt(self):
        """Idle lcores sleep until an interrupt of the NIC, or a message says that it has none."""
        self.start("--idle", "interrupt")
        self.page()
        polls = "has no receive interrupts: lcores sleep" in self.server.output
        for _ in range(0 if polls else 3):
            until("all lcores asleep", self.lcores_sleep, LINK_SECONDS_MAX)
            self.page()
        self.sha256()
        self.stop()
        return "polled" if polls else "ok"

    def jumbo(self):
        """A server with jumbo frames, and a peer with jumbo frames and without."""
        self.start("--mtu", str(JUMBO_MTU), "--no-offload")  # with TSO frames are long, too
        try:
            self.set_tap_mtu(JUMBO_MTU)
            with inside(self.world.client_ns):
                capture = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
            with capture:
                capture.bind((self.nic.name, 0))
                capture.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
                self.sha256()
                if longest(capture) <= JUMBO_BYTES:
                    raise Failed(f"received no frame above {JUMBO_BYTES} bytes")
        finally:
            self.set_tap_mtu(1500)
        self.sha256()
        self.stop()

    def set_tap_mtu(self, n_bytes):
        ip("-n", self.world.client_ns, "link", "set", self.nic.name, "mtu", str(n_bytes))


class Bond(Checks):
    """Two NICs are one port in mode 1 (active backup). A bridge connects their taps."""

    BRIDGE = "nj-bridge"

    def __init__(self, guest, sums):
        super().__init__(guest, guest.nics[0], 1, sums)

    @contextlib.contextmanager
    def network(self):
        ns = self.world.client_ns
        ip("-n", ns, "link", "add", self.BRIDGE, "type", "bridge")
        for nic in self.guest.nics:
            ip("-n", ns, "link", "set", nic.name, "master", self.BRIDGE)
        self.world.client_dev = self.BRIDGE
        self.world.address_client()
        try:
            yield
        finally:
            ip("-n", ns, "link", "del", self.BRIDGE)

    def start(self):
        pci = "".join(f",pci={self.guest.address(nic)}" for nic in self.guest.nics)
        self.server = GuestServer(self.guest, f"bonding{pci},mode=1", 1, ())
        self.server.wait_ready()

    def loss(self):
        """Sets the link of each NIC down during a download, which continues on the other NIC."""
        for port, nic in enumerate(self.guest.nics):
            with self.download_in_progress():
                self.guest.set_link(nic, False)
                until(f"port {port} is down", lambda p=port: self.link_is("DOWN", p),
                      LINK_SECONDS_MAX)
            self.guest.set_link(nic, True)
            until(f"port {port} is up", lambda p=port: self.link_is("UP", p), LINK_SECONDS_MAX)


def longest(capture):
    """Bytes of the longest frame in the receive queue of a packet socket."""
    capture.setblocking(False)
    n_bytes = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            n_bytes = max(n_bytes, len(capture.recv(1 << 16)))
    return n_bytes
