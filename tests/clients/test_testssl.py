# SPDX-License-Identifier: BSD-3-Clause
"""
testssl.sh has no finding above LOW. Most of its handshakes have no ALPN: it examines HTTP/1.1.
"""
import json
import os
import subprocess

from tests.clients.programs import NAME, ProgramCase
from tests.netlab.world import SERVER_ADDR

HARMLESS = ("OK", "INFO", "LOW")
NOT_TESTED = {"engine_problem"}  # it has no GOST


class TestSsl(ProgramCase):
    certificate_days = 90
    # A certificate without these and with less than 60 days is a finding.
    certificate_more = ("authorityInfoAccess=OCSP;URI:http://ocsp.nightjar.test/",
                        "extendedKeyUsage=serverAuth")

    def test_no_finding_above_low(self):
        findings = os.path.join(self.world.scratch, "findings.json")
        done = self.world.client(
            "testssl", "--quiet", "--ip", SERVER_ADDR, "--nodns", "none", "--add-ca",
            self.ca, "--warnings", "batch", "--color", "0", "--jsonfile", findings, f"{NAME}:443",
            stdin=subprocess.DEVNULL, seconds=200)
        with open(findings) as f:
            found = {item["id"]: item for item in json.load(f)}
        for name, text in (("TLS1_2", "not offered"), ("TLS1_3", "offered with final"),
                           ("heartbleed", "not vulnerable"), ("cert_chain_of_trust", "passed."),
                           ("ALPN_HTTP2", "h2"), ("service", "HTTP"),
                           ("HTTP_status_code", "200"), ("cipher_x1301", "TLS_AES_128_GCM"),
                           ("clientsimulation-firefox_100_win10", "TLSv1.3")):
            self.assertIn(text, found.get(name, {}).get("finding", ""), f"{name}\n{done.stdout}")
        bad = [f"{name}: {item['severity']}: {item['finding']}" for name, item in found.items()
               if item["severity"] not in HARMLESS and name not in NOT_TESTED]
        self.assertEqual([], bad, done.stdout)
