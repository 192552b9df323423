# SPDX-License-Identifier: BSD-3-Clause
"""Telemetry and messages about the device: link, rings, MTU and lost packets."""
from tests.netlab.case import ServerCase
from tests.netlab.world import ip, until


class Port(ServerCase):
    lcores = 2
    options = ("--mtu", "1400", "--rx-ring", "512", "--tx-ring", "256")

    def test_telemetry(self):
        port = self.server.telemetry("/nightjar/port")
        self.assertEqual(("net_tap0", "net_tap", "up"),
                         (port["device"], port["driver"], port["link"]))
        self.assertEqual((1400, 512, 256, 2, 2), tuple(
            port[key] for key in ("mtu", "rx_ring", "tx_ring", "rx_queues", "tx_queues")))
        shards = self.server.telemetry("/nightjar/shards")
        for key in ("link", "rx_missed", "rx_nombuf", "spread", "offloads"):
            self.assertEqual(port[key], shards[key])

    def test_sent_bytes_are_counted(self):
        self.curl("-o", "/dev/null", self.world.url("/10MiB"))
        sent = self.counted("tx_packets")
        until("the device has sent it", lambda: self.server.telemetry(
            "/nightjar/port")["tx_packets"] >= sent)
        self.assertNotIn("not sent", self.world.errors())

    def test_packets_are_no_longer_than_the_mtu(self):
        tap = ip("-n", self.world.client_ns, "link", "show", "nj0")
        self.assertIn(" mtu 1400 ", tap, "the driver sets that of the tap, too")

    def test_the_link_goes_down_and_comes_back(self):
        ip("-n", self.world.client_ns, "link", "set", "nj0", "down")
        until("a message", lambda: "net_tap0: the link is down" in self.world.errors())
        until("telemetry shows it",
              lambda: self.server.telemetry("/nightjar/port")["link"] == "down")
        ip("-n", self.world.client_ns, "link", "set", "nj0", "up")
        until("a message", lambda: "net_tap0: the link is up" in self.world.errors())
        self.curl("-o", "/dev/null", self.world.url("/one"))
