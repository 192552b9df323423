# SPDX-License-Identifier: BSD-3-Clause
"""tshark reads captures."""
import subprocess

from tests.e2e.test_capture import Case


class Tshark(Case):
    def test_tshark_reads_it(self):
        found = self.check_counts("--snaplen", "128")
        done = subprocess.run(["tshark", "-n", "-r", self.path, "-T", "fields", "-e",
                               "frame.time_epoch", "-e", "frame.len", "-e", "frame.interface_name",
                               "-e", "frame.packet_flags_direction"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual([(f"{p.utc_ns / 1e9:.3f}", str(p.n_bytes), found.interfaces[0],
                           2 if p.is_sent else 1) for p in found.packets],
                         [(f"{float(at):.3f}", n, name, int(flags, 16))
                          for at, n, name, flags in
                          (line.split("\t") for line in done.stdout.splitlines())])
