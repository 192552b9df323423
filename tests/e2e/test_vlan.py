# SPDX-License-Identifier: BSD-3-Clause
"""
Clients on a VLAN interface (sentence 120). On tap the tag is in the frame. On af_packet the kernel
removes the tag and passes it as metadata of the packet. The server sends frames with the tag in
both cases. It drops and counts frames without a tag and frames of other VLANs.
"""
import hashlib
import socket
import struct

from tests.netlab.case import ServerCase
from tests.netlab.frames import Frames
from tests.netlab.world import SERVER_ADDR, until

VLAN = 7
OTHER_ADDR = "198.18.0.9"


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

    def test_ping_of_the_size_of_the_mtu(self):
        """1,472 bytes of data, 8 of ICMP and 20 of IP are the MTU. It does not include the tag."""
        done = self.world.client("ping", "-c3", "-i0.2", "-W5", "-Mdo", "-s1472", SERVER_ADDR)
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertIn(" 0% packet loss", done.stdout)

    def test_other_frames_are_dropped(self):
        rig = Frames(None, self.world.server_mac(), SERVER_ADDR, OTHER_ADDR)
        arp = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, bytes.fromhex("02c0ffee0001"),
                          socket.inet_aton(OTHER_ADDR), bytes(6), socket.inet_aton(SERVER_ADDR))

        def tagged(vlan):
            return rig.eth(0x8100, struct.pack("!HH", vlan, 0x0806) + arp)
        known = self.server.stats()["arp_learned"]
        with self.world.raw_socket() as raw:
            for frame in (rig.eth(0x0806, arp), tagged(8), tagged(0), tagged(4095)):
                raw.send(frame)
            until("four frames dropped", lambda: self.counted("drop_vlan") == 4)
            self.assertEqual(known, self.server.stats()["arp_learned"])
            raw.send(tagged(0xa000 | VLAN))  # with priority 5
            until("the server learns the sender",
                  lambda: self.server.stats()["arp_learned"] > known)


class VlanOnAfPacket(VlanOnTap):
    link = "veth"
