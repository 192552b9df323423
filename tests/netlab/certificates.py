# SPDX-License-Identifier: BSD-3-Clause
"""Certificates for tests and for `./dev run --tls`, made by the program openssl."""
import os
import subprocess

ECDSA = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True)


def make_certificate(folder, stem, names, *key):
    """A self-signed certificate for `names` (DNS:...,IP:...) in folder/stem.crt and .key. All users
    can read the key."""
    cert, private = (os.path.join(folder, stem + end) for end in (".crt", ".key"))
    openssl("req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=nightjar", "-addext",
            f"subjectAltName={names}", *(key or ECDSA), "-keyout", private, "-out", cert)
    os.chmod(private, 0o644)  # the server is user nobody when it reads it
    return cert, private


class Authority:
    """An authority with a key, which signs certificates and OCSP responses."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.cert, self.key = (os.path.join(folder, name + end) for end in (".crt", ".key"))
        openssl("req", "-x509", "-nodes", "-days", "2", "-subj", f"/CN={name}", *ECDSA,
                "-keyout", self.key, "-out", self.cert)

    def sign(self, stem, subject, serial, extensions="", days=2):
        cert, key, request, ext = (os.path.join(self.folder, stem + end)
                                   for end in (".crt", ".key", ".csr", ".ext"))
        openssl("req", "-nodes", "-subj", subject, *ECDSA, "-keyout", key, "-out", request)
        with open(ext, "w") as f:
            f.write(extensions)
        openssl("x509", "-req", "-days", str(days), "-in", request, "-CA", self.cert,
                "-CAkey", self.key, "-set_serial", str(serial), "-extfile", ext, "-out", cert)
        os.chmod(key, 0o644)
        return cert, key

    def ocsp(self, cert, serial, validity=("-ndays", "2")):
        """A response that the certificate is valid. Without `validity` it has no nextUpdate."""
        index, response = (os.path.join(self.folder, self.name + end) for end in (".idx", ".ocsp"))
        with open(index, "w") as f:
            f.write(f"V\t300101000000Z\t\t{serial:04X}\tunknown\t/CN=x\n")
        openssl("ocsp", "-index", index, "-CA", self.cert, "-rsigner", self.cert, "-rkey", self.key,
                "-issuer", self.cert, "-cert", cert, *validity, "-respout", response)
        return response
