# SPDX-License-Identifier: BSD-3-Clause
"""
testssl.sh has no finding above LOW. It offers ALPN in few of its handshakes. The test adds `h2` to
the others, so that it examines connections of HTTP/2: to those of openssl by a wrapper, to those
that testssl.sh writes itself by a line in a copy of it.
"""
import json
import os
import shutil
import subprocess

from tests.clients.programs import NAME, ProgramCase
from tests.netlab.world import SERVER_ADDR

OPENSSL = """#!/bin/bash
if [ "$1" = s_client ] && [[ " $* " != *" -alpn "* ]]; then
    set -- "$@" -alpn h2
fi
exec /usr/bin/openssl "$@"
"""
# Extensions are hexadecimal bytes with commas; extra_extensions_list has their types.
BEFORE = "          # Make sure that a non-empty extension goes last"
ADD_ALPN = ('          [[ "$extra_extensions_list" =~ " 0010 " ]] || '
            'all_extensions+="${all_extensions:+,}00,10,00,05,00,03,02,68,32"\n')
HARMLESS = ("OK", "INFO", "LOW")
# It has no GOST, and nothing is served by HTTP/1.1.
NOT_TESTED = {"engine_problem", "service"}


class TestSsl(ProgramCase):
    certificate_days = 90
    # A certificate without these and with less than 60 days is a finding.
    certificate_more = ("authorityInfoAccess=OCSP;URI:http://ocsp.nightjar.test/",
                        "extendedKeyUsage=serverAuth")

    def script(self, name, text):
        path = os.path.join(self.world.scratch, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path

    def test_no_finding_above_low(self):
        with open(shutil.which("testssl")) as f:
            text = f.read()
        self.assertEqual(1, text.count(BEFORE), "this testssl.sh is another version")
        findings = os.path.join(self.world.scratch, "findings.json")
        done = self.world.client(
            self.script("testssl", text.replace(BEFORE, ADD_ALPN + BEFORE)), "--quiet", "--openssl",
            self.script("openssl", OPENSSL), "--ip", SERVER_ADDR, "--nodns", "none", "--add-ca",
            self.ca, "--warnings", "batch", "--color", "0", "--jsonfile", findings, f"{NAME}:443",
            stdin=subprocess.DEVNULL, seconds=110)
        with open(findings) as f:
            found = {item["id"]: item for item in json.load(f)}
        for name, text in (("TLS1_2", "not offered"), ("TLS1_3", "offered with final"),
                           ("heartbleed", "not vulnerable"), ("cert_chain_of_trust", "passed."),
                           ("ALPN_HTTP2", "h2"), ("cipher_x1301", "TLS_AES_128_GCM"),
                           ("clientsimulation-firefox_100_win10", "TLSv1.3")):
            self.assertIn(text, found.get(name, {}).get("finding", ""), f"{name}\n{done.stdout}")
        bad = [f"{name}: {item['severity']}: {item['finding']}" for name, item in found.items()
               if item["severity"] not in HARMLESS and name not in NOT_TESTED]
        self.assertEqual([], bad, done.stdout)
