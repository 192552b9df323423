# SPDX-License-Identifier: BSD-3-Clause
"""
An authority that speaks as much of ACME (RFC 8555) as dehydrated needs for one certificate. It
checks no signatures. It fetches the challenge of HTTP-01 (8.3) from the server that is under test,
and accepts it only if it is byte for byte the key authorization.
"""
import base64
import hashlib
import http.client
import http.server
import json
import os
import subprocess
import threading

from tests.netlab.limits import time_limit
from tests.netlab.world import SERVER_ADDR, inside

TOKEN = "evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr-oA"


def unpadded(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def padded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def reply(self, status, body, kind="application/json", **fields):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)),
                            "Replay-Nonce": unpadded(os.urandom(8)), **fields}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_HEAD(self):
        self.reply(200, b"")

    def do_GET(self):
        url = self.server.url
        self.reply(200, {name: url + name for name in
                         ("newNonce", "newAccount", "newOrder", "revokeCert", "keyChange")})

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.protected = json.loads(padded(message["protected"]))
        self.payload = json.loads(padded(message["payload"]) or b"{}")
        getattr(self, "take_" + self.path.strip("/"))()

    def take_newAccount(self):
        key = self.protected["jwk"]
        needed = json.dumps({name: key[name] for name in sorted(key) if name in (
            "e", "kty", "n", "crv", "x", "y")}, separators=(",", ":"))
        self.server.thumbprint = unpadded(hashlib.sha256(needed.encode()).digest())
        self.reply(201, {"status": "valid"}, Location=self.server.url + "account")

    def take_account(self):
        self.reply(200, {"status": "valid"})

    def order(self, status):
        url = self.server.url
        return {"status": status, "authorizations": [url + "authorization"],
                "identifiers": [{"type": "dns", "value": self.server.name}],
                "finalize": url + "finalize", "certificate": url + "certificate"}

    def take_newOrder(self):
        self.reply(201, self.order("pending"), Location=self.server.url + "order")

    def take_order(self):
        self.reply(200, self.order("valid"))

    def challenge(self):
        return {"type": "http-01", "url": self.server.url + "challenge", "token": TOKEN,
                "status": self.server.state}

    def take_authorization(self):
        self.reply(200, {"status": self.server.state, "challenges": [self.challenge()],
                         "identifier": {"type": "dns", "value": self.server.name}})

    def take_challenge(self):
        """The client asks to be validated."""
        connection = http.client.HTTPConnection(SERVER_ADDR, timeout=time_limit())
        with inside(self.server.namespace):
            connection.connect()
        connection.request("GET", f"/.well-known/acme-challenge/{TOKEN}",
                           headers={"Host": self.server.name})
        response = connection.getresponse()
        got = response.read()
        connection.close()
        expected = f"{TOKEN}.{self.server.thumbprint}".encode()
        self.server.fetched.append((response.status, response.version, got == expected))
        self.server.state = "valid" if got == expected else "invalid"
        self.reply(200, self.challenge())

    def take_finalize(self):
        request = padded(self.payload["csr"])
        done = subprocess.run(
            ["openssl", "x509", "-req", "-inform", "DER", "-days", "2", "-CA",
             self.server.authority.cert, "-CAkey", self.server.authority.key, "-set_serial", "9",
             "-copy_extensions", "copyall"], input=request, capture_output=True, check=True)
        self.server.certificate = done.stdout
        self.reply(200, self.order("valid"))

    def take_certificate(self):
        with open(self.server.authority.cert, "rb") as f:
            self.reply(200, self.server.certificate + f.read(),
                       "application/pem-certificate-chain")


class Acme(http.server.ThreadingHTTPServer):
    """Runs until close(), in a namespace, at `url`. `name`: the one that is certified."""

    def __init__(self, namespace, authority, name):
        with inside(namespace):
            super().__init__(("127.0.0.1", 0), Handler)
        self.namespace, self.authority, self.name = namespace, authority, name
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"
        self.state, self.fetched, self.certificate, self.thumbprint = "pending", [], b"", ""
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.shutdown()
        self.server_close()
        self.thread.join(time_limit())
