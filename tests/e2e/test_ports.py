# SPDX-License-Identifier: BSD-3-Clause
"""Static routes, several ports and bonds."""
import hashlib
import os
import subprocess

from tests.netlab.case import ServerCase
from tests.netlab.lacp import Partner
from tests.netlab.limits import time_limit
from tests.netlab.world import CLIENT_ADDR, SERVER_ADDR, ip, until

BEHIND, ELSEWHERE = "198.19.7.1", "198.19.8.1"  # clients' addresses that are not on the link


class StaticRoutes(ServerCase):
    options = ("--route", "198.19.7.0/24=198.18.0.9")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        ip("-n", cls.world.client_ns, "addr", "add", "198.18.0.9/24", "dev", "nj0")
        for address in (BEHIND, ELSEWHERE):
            ip("-n", cls.world.client_ns, "addr", "add", f"{address}/32", "dev", "lo")

    def test_a_network_behind_a_router(self):
        self.assertIn("nightjar", self.curl("--interface", BEHIND, self.world.url("/")))

    def test_a_network_without_a_route(self):
        self.world.client("ping", "-c1", "-W1", "-I", ELSEWHERE, SERVER_ADDR)
        self.assertEqual(1, self.counted("drop_tx_no_route"))


class TwoPorts(ServerCase):
    """Two taps, each with its own lcore."""
    ADDR, PEER, ADDR6, PEER6 = "198.18.1.2", "198.18.1.1", "2001:db8:1::2", "2001:db8:1::1"
    ipv6 = True
    options = ("--port", "0", "--port", "1", "--addr", f"{ADDR}/24@1", "--addr", f"{ADDR6}/64@1")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        ns = cls.world.client_ns
        for peer, more in ((f"{cls.PEER}/24", ()), (f"{cls.PEER6}/64", ("nodad",))):
            ip("-n", ns, "addr", "add", peer, "dev", "nj1", *more)
        ip("-n", ns, "link", "set", "nj1", "up")
        until("duplicate address detection is over", lambda: cls.server.addresses().get(
            f"{cls.ADDR6}/64") == "ready")

    @classmethod
    def prepare(cls):
        cls.world.eal.append("--vdev=net_tap1,iface=nj1")

    def requests(self):
        return [shard["requests"] for shard in self.server.shards()]

    def test_both_serve_at_once(self):
        before = self.requests()
        both = [self.world.client_popen(
            "curl", "-sS", "--http2-prior-knowledge", f"http://{host}/10MiB",
            stdout=subprocess.PIPE) for host in (SERVER_ADDR, self.ADDR, f"[{self.ADDR6}]")]
        for process in both:
            body, _ = process.communicate(timeout=time_limit())
            self.assertEqual(self.sums["10MiB"], hashlib.sha256(body).hexdigest())
        self.assertEqual([1, 2], [now - then for now, then in zip(self.requests(), before)])

    def test_an_address_belongs_to_one_port(self):
        """A port drops packets for the other port's address: nightjar does not route."""
        ns = self.world.client_ns
        ip("-n", ns, "route", "add", self.ADDR, "via", SERVER_ADDR, "table", "7")
        ip("-n", ns, "rule", "add", "from", "198.18.0.1", "table", "7")
        done = self.world.client("ping", "-c1", "-W1", "-I", "198.18.0.1", self.ADDR)
        ip("-n", ns, "rule", "del", "table", "7")
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertLess(0, self.counted("drop_ip_dst"))

    def test_what_is_told(self):
        ports = self.server.telemetry("/nightjar/port")
        self.assertEqual({"port0": ("net_tap0", "up"), "port1": ("net_tap1", "up")},
                         {name: (p["device"], p["link"]) for name, p in ports.items()})
        self.assertEqual("net_tap1", self.server.telemetry("/nightjar/port,1")["device"])
        self.assertEqual([0, 1], [shard["port"] for shard in self.server.shards()])
        self.assertIn(f"{self.ADDR}/24", self.server.addresses())
        self.assertIn(f"{SERVER_ADDR}/24", self.server.addresses())
        self.assertIn("net_tap1 (net_tap)", self.world.errors())
        self.assertIn(f" http://{self.ADDR}:80/", self.world.errors())

    def test_a_link_that_goes_down(self):
        ns = self.world.client_ns
        ip("-n", ns, "link", "set", "nj1", "down")
        until("a message", lambda: "net_tap1: the link is down" in self.world.errors())
        self.assertIn("nightjar", self.curl(self.world.url("/")))
        ip("-n", ns, "link", "set", "nj1", "up")
        ip("-n", ns, "addr", "replace", f"{self.PEER6}/64", "dev", "nj1", "nodad")
        until("a message", lambda: "net_tap1: the link is up" in self.world.errors())
        self.assertIn("nightjar", self.curl(f"http://{self.ADDR}/"))


class Bond(ServerCase):
    """
    Two taps are one port; both belong to a bridge of the kernel. net_tap does not tell the bond
    that a link is down. tests/nic tests this with PCI NICs.
    """
    mode = 1  # active-backup

    @classmethod
    def prepare(cls):
        cls.world.eal += ["--preset", "tap,iface=nj1", "--preset",
                          f"bonding,mode={cls.mode},member=net_tap0,member=net_tap1"]
        cls.world.address_client = cls.join_links

    @classmethod
    def join_links(cls):
        ns = cls.world.client_ns
        ip("-n", ns, "link", "add", "br0", "type", "bridge")
        for tap in ("nj0", "nj1"):
            ip("-n", ns, "link", "set", tap, "master", "br0", "up")
        ip("-n", ns, "addr", "add", f"{CLIENT_ADDR}/24", "dev", "br0")
        ip("-n", ns, "link", "set", "br0", "up")

    def test_download(self):
        self.curl("-o", f"{self.world.scratch}/10MiB", self.world.url("/10MiB"))
        self.assertEqual(self.sums["10MiB"], self.sum_of("10MiB"))

    def sum_of(self, name):
        with open(os.path.join(self.world.scratch, name), "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()

    def test_what_is_told(self):
        port = self.server.telemetry("/nightjar/port")
        self.assertEqual(("net_bonding0", "net_bonding", "up"),
                         (port["device"], port["driver"], port["link"]))
        self.assertNotIn("not sent", self.world.errors())
        self.assertRegex(self.world.errors(), "info: preset bonding: --vdev=net_bonding0,mode="
                         f"{self.mode},(slave|member)=net_tap0,(slave|member)=net_tap1\n")
        self.assertNotIn("warning: preset", self.world.errors())


class BondOfManyLcores(Bond):
    """More lcores than a tap has queues."""
    lcores = 5

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.world.eal[cls.world.eal.index("-m") + 1] = "1100"


class BondByHash(Bond):
    mode = 2  # balance-xor: all packets of a flow use one link


class Lacp(Bond):
    mode = 4

    @classmethod
    def held(cls):
        """Without buffers: the bond may hold one with an LACPDU."""
        return [shard | {"rx_mbufs_used": 0} for shard in super().held()]

    @classmethod
    def held_at_rest(cls):
        return [shard | {"rx_mbufs_used": 0} for shard in super().held_at_rest()]

    @classmethod
    def join_links(cls):
        super().join_links()
        partner = Partner(cls.world.client_ns, ("nj0", "nj1"))
        cls.addClassCleanup(partner.close)
        until("both links distribute", lambda: len(partner.distributing) == 2)
