# SPDX-License-Identifier: BSD-3-Clause
"""
Neighbours with a new MAC address, and forged ones (docs/adr/0013): forged ARP replies do not stop a
download. The server follows an announced failover. It keeps the address of a configured neighbour,
and defends its own address (RFC 5227 2.4).
"""
import socket
import struct

from tests.netlab.case import ServerCase
from tests.netlab.world import CLIENT_ADDR, SERVER_ADDR, ip, until

FORGED = bytes.fromhex("02c0ffee0001")
MOVED = "02:00:00:00:77:01"
FIXED = "02:00:00:00:77:02"


class Neighbours(ServerCase):
    link = "veth"

    def request(self):
        self.curl("-o", "/dev/null", "--max-time", "10", self.world.url("/200KiB"))

    @staticmethod
    def forge(raw, server, addr=CLIENT_ADDR):
        """Sends an unsolicited ARP reply with another MAC address for `addr`."""
        raw.send(server + FORGED + struct.pack("!HHHBBH", 0x0806, 1, 0x0800, 6, 4, 2) + FORGED +
                 socket.inet_aton(addr) + server + socket.inet_aton(SERVER_ADDR))

    def move(self, mac):
        """The client gets another MAC address and announces it, as after a failover."""
        self.world.client("sh", "-c", "echo 1 >/proc/sys/net/ipv4/conf/nj0/arp_notify")
        ip("-n", self.world.client_ns, "link", "set", "nj0", "address", mac)

    def test_1_forged_replies(self):
        self.request()
        server = self.world.server_mac()
        with self.world.raw_socket() as raw:
            for _ in range(10):
                self.forge(raw, server)
                self.request()
        until("the server counts claims", lambda: self.counted("neigh_claimed") > 0)
        self.assertEqual(0, self.counted("neigh_moved"))

    def test_2_failover(self):
        self.request()
        self.move(MOVED)
        until("the server uses the new address", lambda: self.counted("neigh_moved") > 0)
        self.request()


    def test_3_address_is_defended(self):
        """The kernel of the client learns the server's MAC address from its announcement."""
        server = self.world.server_mac()
        self.world.client("sh", "-c", "echo 0 >/proc/sys/net/ipv4/neigh/nj0/locktime")
        ip("-n", self.world.client_ns, "neigh", "replace", SERVER_ADDR, "dev", "nj0",
           "lladdr", FORGED.hex(":"), "nud", "stale")
        with self.world.raw_socket() as raw:
            for _ in range(5):
                self.forge(raw, server, SERVER_ADDR)
        until("the kernel has the server's MAC address", lambda: server.hex(":") in ip(
            "-n", self.world.client_ns, "neigh", "show", SERVER_ADDR, "dev", "nj0"))
        until("the server counts claims", lambda: self.counted("arp_claimed") == 5)
        line = f"address {SERVER_ADDR}: another host on the link uses it, too (MAC address " \
            f"{FORGED.hex(':').upper()})"
        until("a message", lambda: line in self.world.errors())
        self.assertEqual(1, self.world.errors().count(line))
        self.assertEqual(0, self.counted("drop_arp_bad"))
        self.request()


class ConfiguredNeighbours(Neighbours):
    options = ("--neighbour", f"{CLIENT_ADDR}={FIXED}")

    @classmethod
    def prepare(cls):
        make = cls.world.make_namespaces

        def with_mac():
            make()
            ip("-n", cls.world.client_ns, "link", "set", "nj0", "address", FIXED)
        cls.world.make_namespaces = with_mac

    def test_2_failover(self):
        """There is no failover: the server keeps the configured MAC address."""
        self.request()
        self.move(MOVED)
        until("the server counts a claim", lambda: self.counted("neigh_claimed") > 0)
        done = self.world.client("ping", "-c2", "-i0.2", "-W1", SERVER_ADDR)
        self.assertIn("100% packet loss", done.stdout)
        self.move(FIXED)
        self.request()
        self.assertEqual(0, self.counted("neigh_moved"))
