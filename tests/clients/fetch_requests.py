# SPDX-License-Identifier: BSD-3-Clause
"""CA URL NAME...: fetches all names on one connection of requests. Prints NAME SHA256 PROTOCOL."""
import hashlib
import sys

import requests

ca, url, *names = sys.argv[1:]
with requests.Session() as session:
    session.trust_env = False
    for name in names:
        response = session.get(url + name, verify=ca, timeout=60)
        response.raise_for_status()
        version = {10: "HTTP/1.0", 11: "HTTP/1.1"}[response.raw.version]
        print(name, hashlib.sha256(response.content).hexdigest(), version)
