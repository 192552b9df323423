# SPDX-License-Identifier: BSD-3-Clause
"""A nightjar in a guest, and what is checked of it on one NIC."""
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

SERVER_SECONDS_MAX = 180  # to start or to end; 5 on a quiet machine
CURL_SECONDS_MAX = 120
LINK_SECONDS_MAX = 60
DOWNLOAD = "10MiB"
UNDER_WAY_BYTES = 256 << 10  # have come of a download during which something is to happen
SESSIONS, REQUESTS = 32, 2000
RSS_TRIES = 5
JUMBO_MTU, JUMBO_BYTES = 9000, 8000
LOOPS_PER_SECOND_MAX = 150  # of an lcore that sleeps for 50 ms, and has timers
ETH_P_IP = 0x0800


class GuestServer(Server):
    """world.Server in a guest, which `user` runs, on CPUs from `first` on. `options` are
    nightjar's. `name` is of this server, where there are several."""

    def __init__(self, guest, preset, lcores, options, user="root", name="rte", first=1):
        self.guest, self.name = guest, name
        self.said = ""
        self.has_ended = False
        guest.said.unread = b""
        command = [server_path(), "--preset", preset, "--file-prefix", name,
                   "-l", ",".join(str(first + i) for i in range(lcores)), "--",
                   "--addr", f"{SERVER_ADDR}/{PREFIX_BITS}",
                   "--addr", f"{SERVER_ADDR6}/{PREFIX_BITS6}", "--root", pack.SITE,
                   "--config", pack.POLICY, "--drain-timeout", "60s", *options]
        run = f"echo $$ >/tmp/{name}.pid; exec {shlex.join(command)}"
        guest.run(f"( {pack.as_user(user, run)}; echo ended $? ) </dev/null >/dev/ttyS2 2>&1 &")

    def wait_for(self, pattern, seconds):
        """The match of a pattern in what the server says from now on."""
        answer = self.guest.said.read_until(pattern.encode(), seconds)
        if not answer:
            raise Failed(f"the server did not say {pattern!r} within {seconds} s; it said\n"
                         f"{self.said}{self.guest.said.unread.decode(errors='replace')}\n"
                         f"{self.guest.console_end()}")
        found, before = answer
        self.said += (before + found[0]).decode(errors="replace")
        return found

    def wait_ready(self, seconds=SERVER_SECONDS_MAX):
        ended = self.wait_for(r"nightjar: info: ready.*\n|^ended (\d+)\n", seconds)[1]
        if ended:
            self.has_ended = True
            raise Failed(f"the server ended before it was ready: exit status {ended.decode()}\n"
                         f"{self.said}")

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
    """Those of one NIC of a guest, with a number of lcores on CPUs from `first` on. Each raises an
    exception when something is wrong; what it returns, if anything, is for the table. `name` is of
    its server, where there are several."""

    def __init__(self, guest, nic, lcores, sums, name="rte", first=1):
        self.guest, self.nic, self.lcores, self.sums = guest, nic, lcores, sums
        self.name, self.first = name, first
        self.world = guest.world
        self.server = None

    @contextlib.contextmanager
    def network(self):
        """The clients' addresses are those of this NIC's tap meanwhile."""
        self.world.client_dev = self.nic.name
        self.world.address_client()
        try:
            yield
        finally:
            with contextlib.suppress(Failed):  # the tap goes with QEMU
                ip("-n", self.world.client_ns, "addr", "flush", "dev", self.nic.name,
                   "scope", "global")

    def start(self, *options, preset=None, differs=""):
        """`differs`: what is told of the port and the preset, where that is not the NIC's own."""
        self.kill()
        preset = preset or self.nic.preset or self.nic.name
        self.server = GuestServer(self.guest, f"{preset},pci={self.guest.address(self.nic)}",
                                  self.lcores, options, name=self.name, first=self.first)
        self.server.wait_ready()
        told = re.findall(r"warning: preset .*", self.server.said)
        if self.lcores == 3 and not differs:
            differs = self.nic.told_of_3_lcores
        if len(told) != bool(differs) or differs not in "".join(told):
            raise Failed(f"not as the preset expects, but for {differs!r}:\n{self.server.said}")

    def stop(self):
        self.server.signal()
        self.expect_end()

    def expect_end(self):
        status = self.server.wait()
        if status:
            raise Failed(f"exit status {status} after SIGTERM\n{self.server.said}")

    def kill(self):
        """Ends a server that a check which failed has left."""
        if self.server and not self.server.has_ended:
            self.server.signal(signal.SIGKILL)
            self.server.wait()

    def curl(self, *args):
        """The bytes that came."""
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
            raise Failed(f"{name}: {len(body)} bytes came, with another sha256")

    def page(self):
        body = self.curl(self.world.url("/"))
        if b"<title>nightjar</title>" not in body:
            raise Failed(f"another page came: {body[:200]}")

    def sha256(self):
        self.expect_sum(DOWNLOAD, self.curl(self.world.url(f"/{DOWNLOAD}")))

    def ipv6(self):
        is_ready = f"address {SERVER_ADDR6}/{PREFIX_BITS6} is ready\n"
        if is_ready not in self.server.said:
            self.server.wait_for(re.escape(is_ready), 30)
        name = "200KiB"
        self.expect_sum(name, self.curl(f"http://[{SERVER_ADDR6}]/{name}"))

    def h2load(self):
        done = self.world.client("h2load", f"-n{REQUESTS}", f"-c{SESSIONS}", "-m5",
                                 self.world.url("/one"))
        if f" {REQUESTS} succeeded, 0 failed" not in done.stdout:
            raise Failed(done.stdout + done.stderr)

    def rss(self):
        """After h2load: every lcore had some of the connections. Of 32 ports in a row some keys
        give none to one of three lcores, so other ports are tried then."""
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
            raise Failed(f"the device has RSS, which is not used: {answer['spread']}")
        return "device" if by_device else "rings"

    @contextlib.contextmanager
    def download_under_way(self):
        """A download at 2 MiB/s, whose first bytes have come, and whose last ones must."""
        path = f"{self.world.scratch}/download"
        curl = self.world.client_popen(
            "curl", *self.curl_args(), "--no-buffer", "-H", pack.PACED_HEADER, "-o", path,
            self.world.url(f"/{DOWNLOAD}"), stderr=subprocess.PIPE, text=True)
        try:
            until("a download is under way",
                  lambda: os.path.exists(path) and os.path.getsize(path) >= UNDER_WAY_BYTES, 30)
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
        """The link is down until the driver says so and TCP has noticed."""
        timeouts = self.server.stats()["tcp_rto"]
        with self.download_under_way():
            self.guest.set_link(self.nic, False)
            try:
                until("the driver says that the link is down", lambda: self.link_is("DOWN"),
                      LINK_SECONDS_MAX)
                until("time-outs of TCP while the link is down",
                      lambda: self.server.stats()["tcp_rto"] > timeouts, LINK_SECONDS_MAX)
            finally:
                self.guest.set_link(self.nic, True)
            until("the driver says that the link is up", lambda: self.link_is("UP"),
                  LINK_SECONDS_MAX)

    def drain(self):
        """A download that runs when SIGTERM comes is finished, and the exit status is 0."""
        with self.download_under_way():
            self.server.signal()
        self.expect_end()

    def restart(self):
        """With the preset for the other way to bind a NIC, which is told."""
        preset = "uio" if self.guest.binding == "vfio" else "vfio"
        self.start(preset=preset, differs="expected it bound to ")
        self.page()
        self.stop()

    def killed(self):
        """kill -9 in a download, and the next start finds all that it needs."""
        self.start()
        with contextlib.suppress(Failed), self.download_under_way():
            self.kill()
            raise Failed("the rest of the download need not come")
        self.start()
        self.page()
        self.stop()

    def no_link(self):
        """A start without a link, which comes later."""
        self.guest.set_link(self.nic, False)
        try:
            self.start()
        finally:
            self.guest.set_link(self.nic, True)
        until("the driver says that the link is up", lambda: self.link_is("UP"), LINK_SECONDS_MAX)
        self.page()
        self.stop()

    def lcores_sleep(self):
        """Do those without work take few steps: one for each timer, one each 50 ms?"""
        loops = []
        began = time.monotonic()
        for _ in range(2):
            loops.append([s["loops_idle"] + s["loops_busy"] for s in self.server.shards()])
            time.sleep(0.5)  # the span that is looked at
        loops_max = LOOPS_PER_SECOND_MAX * (time.monotonic() - began)
        return all(after - before < loops_max for before, after in zip(*loops))

    def interrupt(self):
        """Without work lcores sleep until the NIC has something, or say that it cannot tell."""
        self.start("--idle", "interrupt")
        self.page()
        polls = "has no receive interrupts: lcores sleep" in self.server.said
        for _ in range(0 if polls else 3):
            until("all lcores asleep", self.lcores_sleep, LINK_SECONDS_MAX)
            self.page()
        self.sha256()
        self.stop()
        return "polled" if polls else "ok"

    def jumbo(self):
        """A server with jumbo frames, and peers with and without them."""
        self.start("--mtu", str(JUMBO_MTU), "--no-offload")  # TSO would make long frames, too
        try:
            self.set_tap_mtu(JUMBO_MTU)
            with inside(self.world.client_ns):
                capture = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
            with capture:
                capture.bind((self.nic.name, 0))
                capture.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
                self.sha256()
                if longest(capture) <= JUMBO_BYTES:
                    raise Failed(f"no frame above {JUMBO_BYTES} bytes came")
        finally:
            self.set_tap_mtu(1500)
        self.sha256()
        self.stop()

    def set_tap_mtu(self, n_bytes):
        ip("-n", self.world.client_ns, "link", "set", self.nic.name, "mtu", str(n_bytes))


class Bond(Checks):
    """Two NICs as one port, in mode 1 (active backup), before a bridge of the clients' kernel."""

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
        """Each NIC loses its link once in a download, which goes on through the other one."""
        for port, nic in enumerate(self.guest.nics):
            with self.download_under_way():
                self.guest.set_link(nic, False)
                until(f"port {port} is down", lambda p=port: self.link_is("DOWN", p),
                      LINK_SECONDS_MAX)
            self.guest.set_link(nic, True)
            until(f"port {port} is up", lambda p=port: self.link_is("UP", p), LINK_SECONDS_MAX)


def longest(capture):
    """Bytes of the longest frame that waits in a packet socket."""
    capture.setblocking(False)
    n_bytes = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            n_bytes = max(n_bytes, len(capture.recv(1 << 16)))
    return n_bytes
