# SPDX-License-Identifier: BSD-3-Clause
"""
IPv6 and IPv4 at the same time: neighbour discovery between the kernel and the server, requests and
downloads over both families and to each address, prefixes from Router Advertisements, and duplicate
address detection.
"""
import hashlib
import socket
import struct
import unittest

from tests.netlab.case import ServerCase
from tests.netlab.frames import PEER_MAC, icmp6
from tests.netlab.world import SERVER_ADDR6, World, ip, until

ROUTER, PREFIX, ROUTED = "fe80::1:1", "2001:db8:5::", "2001:db8:5::77"
ALL_NODES, ALL_NODES_MAC = "ff02::1", bytes.fromhex("333300000001")


def url6(path, addr=SERVER_ADDR6):
    return f"http://[{addr}]{path}"


class Ipv6OnTap(ServerCase):
    options = ("--addr", f"{SERVER_ADDR6}/64", "--addr", "198.18.0.3/24")
    ipv6 = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        until("duplicate address detection is over",
              lambda: set(cls.server.addresses().values()) == {"ready"})
        cls.world.client("ping", "-6", "-c1", "-W5", SERVER_ADDR6)
        cls.idle = cls.held_at_rest()

    def ping(self, *args):
        done = self.world.client("ping", "-6", "-W5", *args)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)

    def test_ping(self):
        self.ping("-c3", "-i0.2", SERVER_ADDR6)
        self.ping("-c1", "-s1400", SERVER_ADDR6)
        link_local = next(a for a in self.server.addresses() if a.startswith("fe80")).split("/")[0]
        self.ping("-c1", f"{link_local}%nj0")
        self.assertGreaterEqual(self.counted("rx_icmp"), 5)

    def test_requests_on_each_address(self):
        for url in (url6("/index.html"), "http://198.18.0.3/index.html",
                    self.world.url("/index.html")):
            self.assertEqual("<title>nightjar</title>\n", self.curl("-g", url))

    def test_download(self):
        body = self.curl("-g", url6("/10MiB"), text=False)
        self.assertEqual(self.sums["10MiB"], hashlib.sha256(body).hexdigest())

    def test_many_at_once(self):
        done = self.world.client("nghttp", "-n", "-v", "-m", "20", url6("/200KiB"))
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(20, done.stdout.count(":status: 200"))

    def test_server_resolves_the_client(self):
        """The client solicits the server's MAC address again. The server accepts its messages."""
        self.world.client("ip", "-6", "neigh", "flush", "dev", "nj0")
        self.assertEqual("<title>nightjar</title>\n", self.curl("-g", url6("/index.html")))
        self.assertGreater(self.counted("rx_nd"), 0)
        self.assertEqual(0, self.counted("drop_nd_bad"))

    def test_unknown_next_header(self):
        """The answer to an unknown Next Header is a Parameter Problem message (RFC 4443 3.4)."""
        probe = ("import socket, sys\n"
                 "s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, 253)\n"
                 f"s.sendto(b'12345678', ('{SERVER_ADDR6}', 0))\n")
        done = self.world.client("/usr/bin/python3", "-c", probe)
        self.assertEqual(0, done.returncode, done.stderr)
        until("a Parameter Problem message", lambda: self.counted("icmp_problem_out") == 1)
        self.assertEqual(1, self.counted("drop_ip_protocol"))


class Ipv6OnVeth(Ipv6OnTap):
    link = "veth"


class RouterAdvertisements(ServerCase):
    options = ("--addr", "auto6")
    ipv6 = True

    def router_advert(self, valid_s, lifetime_s=1800):
        prefix = struct.pack("!BBBBIII", 3, 4, 64, 0xc0, valid_s, valid_s, 0)
        prefix += socket.inet_pton(socket.AF_INET6, PREFIX)
        message = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, lifetime_s, 0, 0)
        message += prefix + b"\1\1" + PEER_MAC
        return icmp6(PEER_MAC, ROUTER, ALL_NODES, message, ALL_NODES_MAC)

    def test_prefix(self):
        with self.world.raw_socket() as raw:
            raw.send(self.router_advert(3600))
        name = until("an address from the prefix", lambda: next(
            (a for a, state in self.server.addresses().items()
             if a.startswith("2001:db8:5:") and state == "ready"), None))
        addr = name.split("/")[0]
        ip("-n", self.world.client_ns, "addr", "add", f"{ROUTED}/64", "dev", "nj0", "nodad")
        self.assertEqual("<title>nightjar</title>\n", self.curl("-g", url6("/index.html", addr)))
        # The server accepted the Router Advertisement and its option with the MAC address.
        self.assertEqual(0, self.counted("drop_nd_bad"))


class ClientWithServerAddress(World):
    """A world whose client has the server's address before the server starts."""

    def address_client(self):
        super().address_client()
        ip("-n", self.client_ns, "addr", "add", f"{SERVER_ADDR6}/64", "dev", "nj0", "nodad")


class Duplicate(unittest.TestCase):
    def test_it_is_not_used(self):
        name = f"{SERVER_ADDR6}/64"
        with ClientWithServerAddress("veth", root="/etc", options=["--addr", name],
                                     ipv6=True) as world:
            until("the address is a duplicate",
                  lambda: world.server.addresses()[name] == "duplicate")
            until("a message", lambda: f"address {name} is not used" in world.errors())
            self.assertEqual(2, world.server.stats()["nd_duplicate"])  # one per shard
            done = world.client("curl", "-sS", "--http2-prior-knowledge", world.url("/hostname"))
            self.assertEqual(0, done.returncode, done.stderr)
