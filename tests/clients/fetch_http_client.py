# SPDX-License-Identifier: BSD-3-Clause
"""CA URL NAME...: fetches all names on one connection of http.client; NAME SHA256 PROTOCOL each."""
import hashlib
import http.client
import ssl
import sys
import urllib.parse

ca, url, *names = sys.argv[1:]
parts = urllib.parse.urlsplit(url)
if parts.scheme == "https":
    connection = http.client.HTTPSConnection(parts.hostname, timeout=60,
                                             context=ssl.create_default_context(cafile=ca))
else:
    connection = http.client.HTTPConnection(parts.hostname, timeout=60)
for name in names:
    connection.request("GET", parts.path + name)
    response = connection.getresponse()
    body = response.read()
    if response.status != 200:
        sys.exit(f"{name}: {response.status}")
    version = {10: "HTTP/1.0", 11: "HTTP/1.1"}[response.version]
    print(name, hashlib.sha256(body).hexdigest(), version)
