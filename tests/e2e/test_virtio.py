# SPDX-License-Identifier: BSD-3-Clause
"""
Checksum offload both ways over vhost-user: nightjar on net_virtio_user, at the other end of the
socket dpdk-testpmd, which forwards between it and a kernel tap, where the clients are. testpmd
tells of each packet what the socket said of its checksum: NONE is one that is left to whoever needs
it. Its own engine completes those for the tap, and leaves those that it sends us incomplete. With
TSO it also cuts what comes uncut.
"""
import hashlib
import os
import re
import shutil
import subprocess
import unittest

from tests.netlab.case import fill_site
from tests.netlab.world import SERVER_ADDR, World, lcore_args, until

TESTPMD = shutil.which("dpdk-testpmd")
TCP_CKSUM = "0x8"  # RTE_ETH_RX_OFFLOAD_TCP_CKSUM and its like for transmission
SETUP = ["port stop all", "csum set tcp hw 0", "csum mac-swap off 0", "csum mac-swap off 1"]
VHOST, TAP = 0, 1  # testpmd's ports
MULTI_SEGS = "0x8008"  # RTE_ETH_TX_OFFLOAD_MULTI_SEGS, besides TCP_CKSUM
MSS = 1448


class VirtioWorld(World):
    def __init__(self, options, tso):
        # What comes from the socket uncut is cut by testpmd; the tap's driver sums up the pieces.
        cut = [f"csum set ip hw {TAP}", f"csum set tcp hw {TAP}", f"set port {TAP} gso on",
               "set gso segsz 1514"] if tso else []
        self.setup = [*SETUP, *cut, "port start all", "set verbose 3"]
        super().__init__("virtio_user", lcores=1, options=options)
        socket_path = f"{self.scratch}/vhost.sock"
        self.eal = ["--preset", f"virtio_user,path={socket_path}", *lcore_args(1)]
        self.testpmd_args = [
            *lcore_args(2), "--no-huge", "-m", "512", "--no-pci", "--no-shconf",
            "--file-prefix", self.name + "t",
            f"--vdev=net_vhost0,iface={socket_path},tso={int(tso)}",
            "--vdev=net_tap0,iface=nj0", "--", "-i", "--forward-mode=csum", "--nb-cores=1",
            "--total-num-mbufs=16384", "--no-flush-rx", f"--rx-offloads={TCP_CKSUM}",
            f"--tx-offloads={MULTI_SEGS if tso else TCP_CKSUM}"]
        self.testpmd = None

    def start(self):
        """The socket has to be there when the server starts, and forwarding only afterwards."""
        self.reaper.will_make("prefix", self.name + "t")
        self.log_path = f"{self.scratch}/testpmd"
        with open(self.log_path, "w") as log:
            self.testpmd = self.client_popen(
                "stdbuf", "-oL", TESTPMD, *self.testpmd_args, stdin=subprocess.PIPE, stdout=log,
                stderr=log, text=True)
        self.tell(*self.setup)
        until("testpmd is set up", lambda: "Change verbose level" in self.log(), 30)
        super().start()
        self.address_client()
        self.tell("start")
        until("packets flow", lambda: self.client(
            "ping", "-c1", "-W1", SERVER_ADDR).returncode == 0, 30)

    def tell(self, *commands):
        self.testpmd.stdin.write("".join(c + "\n" for c in commands))
        self.testpmd.stdin.flush()

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def close(self):
        super().close()  # the reaper ends what runs in the namespace
        if self.testpmd:
            self.testpmd.stdin.close()
            self.testpmd.wait(20)

    def received(self, port):
        """{what was said of the TCP checksum: how many} of the packets that came from `port`."""
        counts = {}
        for port_of, flags in re.findall(
                r"^port=(\d+), mbuf=.*\nrx: .* l4_proto=6 .*flags=(.*)$", self.log(), re.M):
            if int(port_of) == port:
                said = re.search(r"RX_L4_CKSUM_(\w+)", flags)[1]
                counts[said] = counts.get(said, 0) + 1
        return counts

    def longest(self, port):
        """Bytes of the longest packet that came from `port`."""
        return max(int(n) for of, n in re.findall(
            r"^port=(\d+), mbuf=.*pkt_len=(\d+)", self.log(), re.M) if int(of) == port)

    def sent_incomplete(self):
        """How many packets testpmd sent whose checksum it left to the other end."""
        return len(re.findall(r"^tx: flags=.*TX_TCP_CKSUM", self.log(), re.M))


@unittest.skipUnless(TESTPMD, "no dpdk-testpmd: it is in Debian's package dpdk-dev")
class Virtio(unittest.TestCase):
    def start(self, *options, tso=False):
        world = VirtioWorld(options, tso)
        self.addCleanup(world.close)
        world.root = os.path.join(world.scratch, "site")
        os.mkdir(world.root)
        self.sums = fill_site(world.root)
        world.make_namespaces()
        world.start()
        return world

    def download(self, world, name="200KiB"):
        done = world.client("curl", "-sS", "--http2-prior-knowledge", world.url("/" + name),
                            text=False)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(self.sums[name], hashlib.sha256(done.stdout).hexdigest())
        self.assertEqual(0, world.server.stats()["drop_tcp_checksum"])

    def test_checksums_are_left_to_the_device(self):
        world = self.start()
        self.assertIn("TCP checksums by the device", world.errors())
        self.assertNotIn(" expected ", world.errors())
        self.download(world)
        self.assertEqual(0, world.stop(), world.errors())
        world.tell("stop", "show port stats all")
        until("testpmd stopped", lambda: "Throughput" in world.log())
        came = world.received(VHOST)
        self.assertEqual({"NONE"}, set(came), came)
        self.assertGreater(came["NONE"], 140)  # 200 KiB in segments of 1448 bytes
        self.assertGreater(world.sent_incomplete(), 10)

    def test_segments_are_cut_by_the_other_end(self):
        world = self.start(tso=True)
        self.assertIn("TSO too", world.errors())
        self.assertIn("warning: preset virtio_user: virtio_user0: expected no TSO, "
                      "the port has it\n", world.errors())
        self.download(world, "10MiB")
        stats = world.server.stats()
        self.assertEqual(0, world.stop(), world.errors())
        world.tell("stop", "show port stats all")
        until("testpmd stopped", lambda: "Throughput" in world.log())
        self.assertGreater(stats["tcp_tso"], 10)
        self.assertLess(stats["tx_packets"], 10 * 1024 * 1024 // MSS // 2)
        self.assertGreater(world.longest(VHOST), 2 * MSS)

    def test_or_not(self):
        """The socket carries no incomplete checksum either way; vhost's own software sees to it."""
        world = self.start("--no-offload")
        self.assertIn("TCP checksums by software", world.errors())
        self.download(world)
        self.assertEqual(0, world.stop(), world.errors())
        world.tell("stop", "show port stats all")
        until("testpmd stopped", lambda: "Throughput" in world.log())
        came = world.received(VHOST)
        self.assertNotIn("NONE", came)
        self.assertGreater(sum(came.values()), 140)
