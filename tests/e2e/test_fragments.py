# SPDX-License-Identifier: BSD-3-Clause
"""
Fragments from the kernel (sentence 119): with an MTU of 576 the kernel sends an echo request in
three fragments, or in more than the server keeps for a packet. The replies are not fragmented.
The test uses a tap: with net_af_packet the kernel reassembles the fragments.
"""
from tests.netlab.case import ServerCase
from tests.netlab.world import SERVER_ADDR, ip, until


class FragmentsOnTap(ServerCase):
    def setUp(self):
        super().setUp()
        ip("-n", self.world.client_ns, "link", "set", "nj0", "mtu", "576")
        self.addCleanup(ip, "-n", self.world.client_ns, "link", "set", "nj0", "mtu", "1500")

    def ping(self, n_bytes):
        return self.world.client("ping", "-c5", "-i0.05", "-W2", "-Mdont", "-s", str(n_bytes),
                                 SERVER_ADDR)

    def test_three_fragments(self):
        done = self.ping(1472)
        self.assertIn(" 0% packet loss", done.stdout)
        self.assertEqual(15, self.counted("rx_fragments"))
        self.assertEqual(5, self.counted("rx_reassembled"))

    def test_more_than_a_packet(self):
        """No reply to a request above the MTU is possible. Its first fragments time out."""
        done = self.ping(3000)
        self.assertIn(" 100% packet loss", done.stdout)
        self.assertGreater(self.counted("drop_ip_fragment"), 0)
        until("the fragments are given up",
              lambda: self.counted("frag_timeout") + self.counted("drop_frag_full") +
              self.counted("drop_frag_overlap") >= self.counted("rx_fragments"))
