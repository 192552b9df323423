# SPDX-License-Identifier: BSD-3-Clause
"""
Ten thousand random and mutated frames: each is used, answered or counted as dropped, and the server
goes on serving. NJ_SEED repeats a run.
"""
import os
import random
import secrets
import unittest

from tests.netlab.case import ServerCase, counter_kinds
from tests.netlab.frames import Frames
from tests.netlab.world import CLIENT_ADDR, PREFIX_BITS, SANITIZED, SERVER_ADDR, ip, until

N_FRAMES, BATCH = 10_000, 50
PEER = "198.18.0.77"  # nobody: the kernel has no address while the frames fly, so it answers none


class FramesOnTap(ServerCase):
    mostly_waits = True
    # A SYN of nobody's is given up after six SYN-ACKs, in 63 s of a CPU that nobody keeps away.
    idle_seconds = 150

    def setUp(self):
        super().setUp()
        self.kinds = counter_kinds()

    def totals(self):
        stats = self.server.stats()
        return {kind: sum(stats[name] for name, k in self.kinds.items() if k == kind)
                for kind in set(self.kinds.values())}

    def passing(self, frames):
        return frames.next()

    def test_ten_thousand_frames(self):
        seed = int(os.environ.get("NJ_SEED", secrets.randbits(32)))
        print(f"     seed: NJ_SEED={seed}", flush=True)
        frames = Frames(random.Random(seed), self.world.server_mac(), SERVER_ADDR, PEER)
        ns = self.world.client_ns
        ip("-n", ns, "addr", "flush", "dev", "nj0")
        start = self.server.stats()["rx_packets"]
        raw = self.world.raw_socket()
        for sent in range(BATCH, N_FRAMES + 1, BATCH):
            for _ in range(BATCH):
                raw.send(self.passing(frames))
            until(f"all {sent} frames received (NJ_SEED={seed})",
                  lambda: self.server.stats()["rx_packets"] - start == sent)
        raw.close()
        ip("-n", ns, "addr", "add", f"{CLIENT_ADDR}/{PREFIX_BITS}", "dev", "nj0")

        # Nothing vanished: a packet on its way between shards is in no sum for a moment.
        until("the packets add up", lambda: (s := self.totals())["RX_IN"] ==
              s["RX_OUT"] + s["RX_DROP"])
        # It still serves, and the connections that the frames opened go away (tearDown waits).
        self.assertEqual(24, len(self.curl(self.world.url("/index.html"))))


class FramesOnVeth(FramesOnTap):
    link = "veth"

    def passing(self, frames):
        """
        No VLAN tags: the kernel takes them off, or the frame away, before the driver sees it. No
        fragments: the driver has the kernel put them together (PACKET_FANOUT_FLAG_DEFRAG).
        """
        while True:
            frame = frames.next()
            is_fragment = frame[12:14] == b"\x08\0" and int.from_bytes(frame[20:22]) & 0x3fff
            if frame[12:14] not in (b"\x81\0", b"\x88\xa8") and not is_fragment:
                return frame


def load_tests(loader, *_):
    """Half-open connections take a minute to end: one link each, with sanitizers and without."""
    chosen = [FramesOnTap] if SANITIZED else [FramesOnVeth]
    return unittest.TestSuite(map(loader.loadTestsFromTestCase, chosen))
