# SPDX-License-Identifier: BSD-3-Clause
"""h2load: two hundred thousand requests, none failed, on both kinds of device."""
import re

from case import ServerCase
from world import SANITIZED

REQUESTS = 50_000 if SANITIZED else 200_000


class LoadOnTap(ServerCase):
    def test_h2load(self):
        done = self.world.client("h2load", "-c", "100", "-m", "32", "-n", str(REQUESTS),
                                 self.world.url("/one"), seconds=110)
        self.assertEqual(0, done.returncode, done.stderr)
        counts = dict((name, int(n)) for n, name in re.findall(
            r"(\d+) (\w+)", re.search(r"^requests: .*", done.stdout, re.M).group()))
        self.assertEqual(REQUESTS, counts["succeeded"], done.stdout)
        self.assertEqual((0, 0, 0), (counts["failed"], counts["errored"], counts["timeout"]))
        self.assertEqual(REQUESTS, self.counted("requests"))


class LoadOnAfPacket(LoadOnTap):
    link = "veth"

    def test_download(self):
        done = self.world.client("sh", "-c", "curl -sS --http2-prior-knowledge "
                                 f"{self.world.url('/10MiB')} | sha256sum")
        self.assertEqual(self.sums["10MiB"], done.stdout.split()[0])
