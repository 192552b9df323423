# SPDX-License-Identifier: BSD-3-Clause
"""
Checksum offload in both directions over vhost-user. nightjar uses net_virtio_user. dpdk-testpmd has
the other end of the socket, and forwards packets between it and a kernel tap for the clients.

testpmd prints the RX_L4_CKSUM flag of each packet. NONE: the checksum in the packet is incomplete.
The csum engine of testpmd completes it for the tap. It leaves checksums of packets for nightjar
incomplete. With TSO testpmd also segments the large packets of nightjar.
"""
import hashlib
import os
import re
import shutil
import subprocess
import unittest

from tests.netlab.case import fill_site
from tests.netlab.limits import time_limit
from tests.netlab.world import SERVER_ADDR, World, lcore_args, until

TESTPMD = shutil.which("dpdk-testpmd")
TCP_CKSUM = "0x8"  # RTE_ETH_RX_OFFLOAD_TCP_CKSUM, RTE_ETH_TX_OFFLOAD_TCP_CKSUM
SETUP = ["port stop all", "csum set tcp hw 0", "csum mac-swap off 0", "csum mac-swap off 1"]
VHOST, TAP = 0, 1  # testpmd's ports
MULTI_SEGS = "0x8008"  # RTE_ETH_TX_OFFLOAD_MULTI_SEGS, besides TCP_CKSUM
MSS = 1448


class VirtioWorld(World):
    def __init__(self, options, tso):
        # testpmd segments large packets of the socket (GSO). The driver of the tap adds checksums.
        gso = [f"csum set ip hw {TAP}", f"csum set tcp hw {TAP}", f"set port {TAP} gso on",
               "set gso segsz 1514"] if tso else []
        self.setup = [*SETUP, *gso, "port start all", "set verbose 3"]
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
        """Starts testpmd, which creates the socket, then the server, and then the forwarding."""
        self.reaper.will_make("prefix", self.name + "t")
        self.log_path = f"{self.scratch}/testpmd"
        with open(self.log_path, "w") as log:
            self.testpmd = self.client_popen(
                "stdbuf", "-oL", TESTPMD, *self.testpmd_args, stdin=subprocess.PIPE, stdout=log,
                stderr=log, text=True)
        self.send_commands(*self.setup)
        until("testpmd is set up", lambda: "Change verbose level" in self.log())
        super().start()
        self.address_client()
        self.send_commands("start")
        until("a reply to a ping", lambda: self.client(
            "ping", "-c1", "-W1", SERVER_ADDR).returncode == 0, 30)

    def send_commands(self, *commands):
        self.testpmd.stdin.write("".join(c + "\n" for c in commands))
        self.testpmd.stdin.flush()

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def close(self):
        super().close()  # the reaper ends the processes in the namespace
        if self.testpmd:
            self.testpmd.stdin.close()
            self.testpmd.wait(time_limit())

    def received(self, port):
        """{RX_L4_CKSUM flag: number of TCP packets} of packets that testpmd received on `port`."""
        counts = {}
        for port_of, flags in re.findall(
                r"^port=(\d+), mbuf=.*\nrx: .* l4_proto=6 .*flags=(.*)$", self.log(), re.M):
            if int(port_of) == port:
                flag = re.search(r"RX_L4_CKSUM_(\w+)", flags)[1]
                counts[flag] = counts.get(flag, 0) + 1
        return counts

    def longest(self, port):
        """Bytes of the longest packet that testpmd received on `port`."""
        return max(int(n) for of, n in re.findall(
            r"^port=(\d+), mbuf=.*pkt_len=(\d+)", self.log(), re.M) if int(of) == port)

    def sent_incomplete(self):
        """The number of packets that testpmd sent with an incomplete checksum."""
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

    def test_checksum_offload(self):
        world = self.start()
        self.assertIn("TCP checksums by the device", world.errors())
        self.assertNotIn(" expected ", world.errors())
        self.download(world)
        self.assertEqual(0, world.stop(), world.errors())
        world.send_commands("stop", "show port stats all")
        until("testpmd stopped", lambda: "Throughput" in world.log())
        flags_of_server = world.received(VHOST)
        self.assertEqual({"NONE"}, set(flags_of_server), flags_of_server)
        self.assertGreater(flags_of_server["NONE"], 140)  # 200 KiB in segments of 1448 bytes
        self.assertGreater(world.sent_incomplete(), 10)

    def test_tso(self):
        world = self.start(tso=True)
        self.assertIn("TSO too", world.errors())
        self.assertIn("warning: preset virtio_user: virtio_user0: expected no TSO, "
                      "the port has it\n", world.errors())
        self.download(world, "10MiB")
        stats = world.server.stats()
        self.assertEqual(0, world.stop(), world.errors())
        world.send_commands("stop", "show port stats all")
        until("testpmd stopped", lambda: "Throughput" in world.log())
        self.assertGreater(stats["tcp_tso"], 10)
        self.assertLess(stats["tx_packets"], 10 * 1024 * 1024 // MSS // 2)
        self.assertGreater(world.longest(VHOST), 2 * MSS)

    def test_without_offload(self):
        """All packets on the socket have complete checksums, by software of nightjar and vhost."""
        world = self.start("--no-offload")
        self.assertIn("TCP checksums by software", world.errors())
        self.download(world)
        self.assertEqual(0, world.stop(), world.errors())
        world.send_commands("stop", "show port stats all")
        until("testpmd stopped", lambda: "Throughput" in world.log())
        flags_of_server = world.received(VHOST)
        self.assertNotIn("NONE", flags_of_server)
        self.assertGreater(sum(flags_of_server.values()), 140)
