# SPDX-License-Identifier: BSD-3-Clause
"""
An interface in a VLAN, for kernels without 802.1Q: a tap. A thread moves frames between the tap and
the parent: it adds the tag to frames of the tap, and removes it from frames of the VLAN.
"""
import fcntl
import os
import select
import socket
import struct
import threading

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454ca, 0x2, 0x1000
ETH_P_ALL, ETH_P_8021Q = 0x3, 0x8100
SOL_PACKET, PACKET_AUXDATA = 263, 8
AUXDATA = struct.Struct("=IIIHHHH")  # struct tpacket_auxdata: status first, vlan_tci sixth
TP_STATUS_VLAN_VALID = 0x10
FRAME_MAX = 2048


class Tagger:
    """The interface `name` in VLAN `vlan` over `parent`, created in the caller's namespace."""

    def __init__(self, parent, name, vlan):
        self.vlan = vlan
        self.tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
        self.raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.raw.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.raw.bind((parent, ETH_P_ALL))
        self.wake, self.stop = os.pipe()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def close(self):
        os.write(self.stop, b"x")
        self.thread.join()
        for fd in (self.wake, self.stop, self.tap):
            os.close(fd)
        self.raw.close()

    def run(self):
        while True:
            ready, _, _ = select.select([self.tap, self.raw, self.wake], [], [])
            if self.wake in ready:
                return
            try:
                if self.tap in ready:
                    self.tag_one()
                if self.raw in ready:
                    self.strip_one()
            except OSError:
                pass  # an interface is down: the frame is lost, as on any link

    def tag_one(self):
        frame = os.read(self.tap, FRAME_MAX)
        self.raw.send(frame[:12] + struct.pack("!HH", ETH_P_8021Q, self.vlan) + frame[12:])

    def strip_one(self):
        """The kernel has moved the tag of a received frame to the ancillary data."""
        frame, control, _, sender = self.raw.recvmsg(FRAME_MAX, 64)
        if sender[2] == socket.PACKET_OUTGOING:
            return
        for level, kind, data in control:
            if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                status, *_, tci, _ = AUXDATA.unpack(data[:AUXDATA.size])
                if status & TP_STATUS_VLAN_VALID and tci & 0xfff == self.vlan:
                    os.write(self.tap, frame)
