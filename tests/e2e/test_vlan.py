# SPDX-License-Identifier: BSD-3-Clause
"""
In a VLAN (sentence 120): the clients sit on a VLAN interface. On tap the tag is in the frame, on
af_packet the kernel has taken it off and tells it beside the packet; both are answered in kind.
Frames without a tag, or with another's, are dropped and counted.
"""
import hashlib
import socket
import struct

from tests.netlab.case import ServerCase
from tests.netlab.frames import Frames
from tests.netlab.world import SERVER_ADDR, until

VLAN = 7
OTHERS = "198.18.0.9"


class VlanOnTap(ServerCase):
    vlan = VLAN

    def test_page_and_download(self):
        self.assertIn("nightjar", self.curl(self.world.url("/")))
        self.assertEqual(self.sums["200KiB"], hashlib.sha256(self.download("200KiB")).hexdigest())
        self.assertEqual(0, self.counted("drop_vlan"))

    def download(self, name):
        done = self.world.client("curl", "-sS", "--http2-prior-knowledge",
                                 self.world.url("/" + name), text=False)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def test_ping_as_large_as_a_packet(self):
        """1472 bytes of data, 8 of ICMP and 20 of IP fill the MTU; the tag comes on top."""
        done = self.world.client("ping", "-c3", "-i0.2", "-W5", "-Mdo", "-s1472", SERVER_ADDR)
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertIn(" 0% packet loss", done.stdout)

    def test_other_frames_are_dropped(self):
        rig = Frames(None, self.world.server_mac(), SERVER_ADDR, OTHERS)
        arp = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, bytes.fromhex("02c0ffee0001"),
                          socket.inet_aton(OTHERS), bytes(6), socket.inet_aton(SERVER_ADDR))

        def tagged(vlan):
            return rig.eth(0x8100, struct.pack("!HH", vlan, 0x0806) + arp)
        known = self.server.stats()["arp_learned"]
        with self.world.raw_socket() as raw:
            for frame in (rig.eth(0x0806, arp), tagged(8), tagged(0), tagged(4095)):
                raw.send(frame)
            until("four frames dropped", lambda: self.counted("drop_vlan") == 4)
            self.assertEqual(known, self.server.stats()["arp_learned"])
            raw.send(tagged(0xa000 | VLAN))  # of priority 5
            until("its sender learned", lambda: self.server.stats()["arp_learned"] > known)


class VlanOnAfPacket(VlanOnTap):
    link = "veth"
