# SPDX-License-Identifier: BSD-3-Clause
"""
Ten thousand random and mutated frames: the server uses, answers or drops each frame and counts it.
Afterwards it still serves requests. NJ_SEED repeats a run.
"""
import os
import random
import secrets

from tests.netlab.case import ServerCase, counter_kinds
from tests.netlab.frames import Frames
from tests.netlab.world import CLIENT_ADDR, PREFIX_BITS, SERVER_ADDR, ip, until

N_FRAMES, BATCH = 10_000, 50
PEER = "198.18.0.77"  # no host: the kernel has no address during the test and sends no answer


class FramesOnTap(ServerCase):
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
        start, n_sent, resets = self.server.stats()["rx_packets"], 0, []
        raw = self.world.raw_socket()

        def send(batch):
            nonlocal n_sent
            for frame in batch:
                raw.send(frame)
            n_sent += len(batch)
            until(f"all {n_sent} frames received (NJ_SEED={seed})",
                  lambda: self.server.stats()["rx_packets"] - start == n_sent)
        for _ in range(N_FRAMES // BATCH):
            batch = [self.passing(frames) for _ in range(BATCH)]
            resets += [reset for frame in batch for reset in frames.resets(frame)]
            send(batch)
        # Half-open connections would last a minute.
        for at in range(0, len(resets), BATCH):
            send(resets[at:at + BATCH])
        raw.close()
        ip("-n", ns, "addr", "add", f"{CLIENT_ADDR}/{PREFIX_BITS}", "dev", "nj0")

        # The sums agree once no packet is between two shards: such a packet is in neither sum.
        until("the packets add up", lambda: (s := self.totals())["RX_IN"] ==
              s["RX_OUT"] + s["RX_DROP"])
        # The server still serves. tearDown() waits for the end of connections that frames opened.
        self.assertEqual(24, len(self.curl(self.world.url("/index.html"))))


class FramesOnVeth(FramesOnTap):
    link = "veth"

    def passing(self, frames):
        """
        Returns the next frame without a VLAN tag that is not a fragment. The kernel removes VLAN
        tags or drops the frame before the driver receives it. The kernel reassembles fragments for
        the driver (PACKET_FANOUT_FLAG_DEFRAG).
        """
        while True:
            frame = frames.next()
            is_fragment = frame[12:14] == b"\x08\0" and int.from_bytes(frame[20:22]) & 0x3fff
            if frame[12:14] not in (b"\x81\0", b"\x88\xa8") and not is_fragment:
                return frame
