# SPDX-License-Identifier: BSD-3-Clause
"""
The partner in LACP (IEEE 802.1AX-2020 6.4.2), for links that the kernel bridges. It answers each
LACPDU with an LACPDU whose state agrees with any actor.
"""
import os
import select
import socket
import struct
import threading

from tests.netlab.world import inside

SLOW_PROTOCOLS = 0x8809
GROUP = bytes.fromhex("0180c2000002")
SYSTEM = bytes.fromhex("02c0ffee0000")
STATE = 0x3f  # active, short time-out, may aggregate, in sync, collecting, distributing
DISTRIBUTING = 0x20
ACTOR = slice(18, 33)  # the actor information of a frame; its last byte is the state
PACKET_ADD_MEMBERSHIP, PACKET_MR_MULTICAST = 1, 0
SOL_PACKET = 263


class Partner:
    """The partner of devices of a namespace, which are the links of one aggregation group."""

    def __init__(self, namespace, devices):
        self.links, self.distributing = {}, set()
        self.stop_read, self.stop_write = os.pipe()
        with inside(namespace):
            for number, device in enumerate(devices, 1):
                s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(SLOW_PROTOCOLS))
                s.bind((device, 0))
                s.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, struct.pack(
                    "iHH8s", socket.if_nametoindex(device), PACKET_MR_MULTICAST, len(GROUP), GROUP))
                self.links[s] = device, number
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            ready, _, _ = select.select([self.stop_read, *self.links], [], [])
            if self.stop_read in ready:
                return
            for s in ready:
                try:
                    self.answer(s)
                except OSError:  # the link is down
                    pass

    def answer(self, s):
        frame = s.recv(2000)
        device, number = self.links[s]
        if len(frame) < ACTOR.stop or frame[12:16] != struct.pack("!HBB", SLOW_PROTOCOLS, 1, 1):
            return
        (self.distributing.add if frame[ACTOR][-1] & DISTRIBUTING
         else self.distributing.discard)(device)
        own = struct.pack("!H6sHHHB", 0x8000, SYSTEM, 1, 0xff, number, STATE)
        s.send(GROUP + SYSTEM[:5] + bytes([number]) + frame[12:16] + b"\x01\x14" + own + bytes(3) +
               b"\x02\x14" + frame[ACTOR] + bytes(3) + b"\x03\x10" + bytes(14 + 2 + 50))

    def close(self):
        os.close(self.stop_write)
        self.thread.join(10)
        os.close(self.stop_read)
        for s in self.links:
            s.close()
