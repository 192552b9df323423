# SPDX-License-Identifier: BSD-3-Clause
"""
Ten thousand random and mutated frames: each is used, answered or counted as dropped, and the server
goes on serving. NJ_SEED repeats a run.
"""
import os
import random
import secrets
import socket

from case import ServerCase, counter_kinds
from frames import Frames
from world import CLIENT_ADDR, PREFIX_BITS, SERVER_ADDR, inside, ip, until

N_FRAMES, BATCH = 10_000, 50
PEER = "198.18.0.77"  # nobody: the kernel has no address while the frames fly, so it answers none


class FramesOnTap(ServerCase):
    def setUp(self):
        super().setUp()
        self.kinds = counter_kinds()

    def server_mac(self):
        line = ip("-n", self.world.client_ns, "neigh", "show", SERVER_ADDR, "dev", "nj0")
        return bytes.fromhex(line.split("lladdr ")[1].split()[0].replace(":", ""))

    def sums(self):
        stats = self.server.stats()
        return {kind: sum(stats[name] for name, k in self.kinds.items() if k == kind)
                for kind in set(self.kinds.values())}

    def passing(self, frames):
        return frames.next()

    def test_ten_thousand_frames(self):
        seed = int(os.environ.get("NJ_SEED", secrets.randbits(32)))
        print(f"     seed: NJ_SEED={seed}", flush=True)
        frames = Frames(random.Random(seed), self.server_mac(), SERVER_ADDR, PEER)
        ns = self.world.client_ns
        ip("-n", ns, "addr", "flush", "dev", "nj0")
        start = self.server.stats()["rx_packets"]
        with inside(ns):
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        raw.bind(("nj0", 0))
        for sent in range(BATCH, N_FRAMES + 1, BATCH):
            for _ in range(BATCH):
                raw.send(self.passing(frames))
            until(f"all {sent} frames received (NJ_SEED={seed})",
                  lambda: self.server.stats()["rx_packets"] - start == sent)
        raw.close()
        ip("-n", ns, "addr", "add", f"{CLIENT_ADDR}/{PREFIX_BITS}", "dev", "nj0")

        # Nothing vanished: a packet on its way between shards is in no sum for a moment.
        until("the packets add up", lambda: (s := self.sums())["RX_IN"] ==
              s["RX_OUT"] + s["RX_DROP"])
        # It still serves, and the connections that the frames opened go away (tearDown waits).
        self.assertEqual(24, len(self.curl(self.world.url("/index.html"))))


class FramesOnVeth(FramesOnTap):
    link = "veth"

    def passing(self, frames):
        """No VLAN tags: the kernel takes them off, or the frame away, before the driver sees it."""
        while (frame := frames.next())[12:14] in (b"\x81\0", b"\x88\xa8"):
            pass
        return frame
