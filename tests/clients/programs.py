# SPDX-License-Identifier: BSD-3-Clause
"""Programs of this folder as clients: `PROGRAM CA URL NAME...` prints NAME SHA256 PROTOCOL."""
import os

from tests.netlab.case import ServerCase
from tests.netlab.certificates import Authority
from tests.netlab.world import REPO, SERVER_ADDR

NAME = "nightjar.test"
SERIAL = 0x4c84_1f0b_7a5d_93e6_21b8


class ProgramCase(ServerCase):
    certificate_days = 2
    certificate_more = ()  # extensions

    @classmethod
    def prepare(cls):
        cls.authority = Authority(cls.world.scratch, "authority")
        cls.ca = cls.authority.cert
        names = f"subjectAltName=DNS:{NAME},IP:{SERVER_ADDR}"
        cert, key = cls.authority.sign("server", f"/CN={NAME}", SERIAL, "\n".join(
            (names, *cls.certificate_more)), cls.certificate_days)
        cls.world.options += ["--tls-cert", cert, "--tls-key", key]

    def fetch_all(self, *command):
        """Runs a command whose last word is a file of this folder."""
        script = os.path.join(REPO, "tests", "clients", command[-1])
        environment = os.environ | {"HOME": self.world.scratch}  # Go's cache
        done = self.world.client(*command[:-1], script, self.ca, f"https://{SERVER_ADDR}/",
                                 *self.sums, env=environment)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        got = sorted(line.split() for line in done.stdout.splitlines())
        self.assertEqual(sorted([name, sha256, "h2"] for name, sha256 in self.sums.items()), got)
        self.assertEqual(1, self.counted("tls_handshakes"))
