# SPDX-License-Identifier: BSD-3-Clause
"""TLS 1.3 with foreign clients: files byte for byte, resumption, refusals with their counters."""
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import unittest

from tests.netlab.case import ServerCase
from tests.netlab.certificates import Authority, make_certificate
from tests.netlab.h2client import Client
from tests.netlab.limits import time_limit
from tests.netlab.world import Failed, World, server_path, until

NAME = "nightjar.test"
NAMES = f"DNS:{NAME},IP:198.18.0.2"
RSA = ("-newkey", "rsa:2048")
SUITES = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")


class Tls(ServerCase):
    @classmethod
    def prepare(cls):
        folder = cls.world.scratch
        cls.cert, key = make_certificate(folder, "ec", NAMES)
        rsa, rsa_key = make_certificate(folder, "rsa", NAMES, *RSA)
        cls.world.options += ["--tls-cert", cls.cert, "--tls-key", key,
                              "--tls-cert", rsa, "--tls-key", rsa_key]

    def url(self, path):
        return f"https://{NAME}{path}"

    def get(self, *args):
        return self.curl("--cacert", self.cert, "--resolve", f"{NAME}:443:198.18.0.2", *args)

    def s_client(self, *args, given=""):
        return self.world.client("openssl", "s_client", "-connect", "198.18.0.2:443",
                                 "-servername", NAME, *args, input=given, check=False)

    def test_files_with_each_suite(self):
        for suite in SUITES:
            for name, wanted in self.sums.items():
                with self.subTest(suite=suite, name=name):
                    path = os.path.join(self.world.scratch, "got")
                    self.get("--tls13-ciphers", suite, "-o", path, self.url("/" + name))
                    with open(path, "rb") as f:
                        self.assertEqual(wanted, hashlib.sha256(f.read()).hexdigest())
        self.assertEqual(len(SUITES) * len(self.sums), self.counted("tls_handshakes"))

    def test_upload_is_refused_with_a_response(self):
        status = self.get("-o/dev/null", "-w%{http_code}", "--data-binary",
                          "@" + os.path.join(self.root, "200KiB"), self.url("/one"))
        self.assertEqual("405", status)

    def test_cleartext_beside_it(self):
        self.assertIn("nightjar", self.curl(self.world.url("/")))

    def test_many_requests_of_h2load(self):
        done = self.world.client("h2load", "-n2000", "-c20", "-m16", "https://198.18.0.2/16KiB-1")
        self.assertIn("2000 succeeded, 0 failed", done.stdout)

    def client(self, session=None):
        """A raw HTTP/2 client on Python's ssl."""
        self.context = self.context or ssl.create_default_context(cafile=self.cert)
        self.context.set_alpn_protocols(["h2"])
        sock = self.context.wrap_socket(self.world.connect(port=443), server_hostname=NAME,
                                        session=session)
        self.addCleanup(sock.close)
        return Client(sock)

    def setUp(self):
        super().setUp()
        self.context = None

    def test_a_ticket_resumes(self):
        before = self.server.telemetry("/nightjar/latency")
        client = self.client()
        self.assertEqual(200, client.get("/16KiB-1")[0])  # a ticket came before it
        again = self.client(client.sock.session)
        self.assertTrue(again.sock.session_reused)
        self.assertEqual(200, again.get("/200KiB")[0])
        self.assertEqual((1, 1), (self.counted("tls_handshakes"),
                                  self.counted("tls_handshakes_resumed")))
        after = self.server.telemetry("/nightjar/latency")
        grown = {name: after[name]["count"] - before[name]["count"]
                 for name in ("tls_task", "tls_step")}
        self.assertGreaterEqual(grown["tls_task"], 4)  # two flights each, or more
        self.assertGreater(grown["tls_step"], 0)
        client.sock.close()
        again.sock.close()

    def test_a_record_that_is_not_authentic_ends_the_connection(self):
        client = self.client()
        self.assertEqual(200, client.get("/one")[0])
        raw = client.sock.detach()
        with socket.socket(fileno=raw) as below:
            below.settimeout(time_limit())
            below.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
            while below.recv(65536):
                pass
        until("it is counted", lambda: self.counted("tls_bad_record") == 1)

    def test_bytes_that_are_no_tls_end_the_connection(self):
        for first in (b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", bytes(64)):
            with self.subTest(first=first), self.world.connect(port=443) as sock:
                sock.sendall(first)
                while sock.recv(65536):
                    pass
        until("they are counted", lambda: self.counted("tls_failed_message") == 3)

    def test_a_handshake_in_single_bytes(self):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.create_default_context(cafile=self.cert)
        context.set_alpn_protocols(["h2"])
        tls = context.wrap_bio(incoming, outgoing, server_hostname=NAME)
        with self.world.connect(port=443) as sock:
            while tls.version() is None or outgoing.pending:
                try:
                    tls.do_handshake()
                except ssl.SSLWantReadError:
                    pass
                for byte in outgoing.read():
                    sock.sendall(bytes((byte,)))
                if tls.selected_alpn_protocol() is None:
                    incoming.write(sock.recv(65536))
            self.assertEqual("h2", tls.selected_alpn_protocol())
            until("it is established", lambda: self.counted("tls_handshakes") == 1)

    def test_alpn_chooses_the_protocol(self):
        for offer, said in ((("-alpn", "http/1.1"), "ALPN protocol: http/1.1\n"),
                            (("-alpn", "http/1.0"), "ALPN protocol: http/1.0\n"),
                            (("-alpn", "http/1.1,h2"), "ALPN protocol: h2\n"),
                            ((), "No ALPN negotiated\n")):
            with self.subTest(offer=offer):
                self.assertIn(said, self.s_client(*offer).stdout)
        until("they are counted", lambda: self.counted("tls_handshakes") == 4)

    def test_what_is_refused_is_counted(self):
        done = self.s_client("-alpn", "h3")
        self.assertIn("alert number 120", done.stderr)
        self.assertEqual(1, self.counted("tls_failed_alpn"))
        done = self.s_client("-tls1_2")
        self.assertIn("alert number 70", done.stderr)
        self.assertEqual(1, self.counted("tls_failed_version"))


class NoHttp1(ServerCase):
    options = ("--no-http1",)

    @classmethod
    def prepare(cls):
        cls.world.serve_tls()

    def test_a_client_must_offer_h2(self):
        for failed, offer in enumerate((("-alpn", "http/1.1"), ()), 1):
            with self.subTest(offer=offer):
                done = self.world.client("openssl", "s_client", "-connect", "198.18.0.2:443",
                                         *offer, input="", check=False)
                self.assertIn("alert number 120", done.stderr)
                self.assertEqual(failed, self.counted("tls_failed_alpn"))
        done = self.world.client("openssl", "s_client", "-connect", "198.18.0.2:443", "-alpn",
                                 "http/1.1,h2", input="")
        self.assertIn("ALPN protocol: h2\n", done.stdout)


class ClientCertificates(ServerCase):
    """Clients show certificates; the server staples, logs secrets and reads its files again."""

    @classmethod
    def prepare(cls):
        folder = cls.world.scratch
        cls.authority = Authority(folder, "authority")
        names = f"subjectAltName=DNS:{NAME}"
        cls.server_cert, cls.server_key = cls.authority.sign("server", "/CN=first", 7, names)
        cls.alice = cls.authority.sign("alice", "/O=Example/CN=alice", 8)
        cls.bob = cls.authority.sign("bob", "/O=Example/CN=bob", 9)
        cls.stranger = Authority(folder, "stranger").sign("mallory", "/CN=alice", 8)
        cls.keylog = os.path.join(folder, "secrets")
        with open(cls.keylog, "w"):  # exists already, with a mode that is too wide
            os.chmod(cls.keylog, 0o644)
            os.chown(cls.keylog, 65534, -1)  # the server is user nobody
        cls.log = os.path.join(folder, "access.log")
        cls.policy_path = os.path.join(folder, "policy.conf")
        cls.write_policy("[class bob]\ntls_subject = CN=bob,O=Example\naction = forbid\n")
        cls.world.options += [
            "--tls-cert", cls.server_cert, "--tls-key", cls.server_key,
            "--tls-ocsp", cls.authority.ocsp(cls.server_cert, 7),
            "--tls-client-ca", cls.authority.cert, "--config", cls.policy_path,
            "--access-log", cls.log, "--log-format", "json",
            "--keylog", cls.keylog, "--insecure-keylog"]

    def get(self, cert, *args):
        shown = ["--cert", cert[0], "--key", cert[1]] if cert else []
        return self.world.client(
            "curl", "-sS", "--http2", "--cacert", self.authority.cert, "--resolve",
            f"{NAME}:443:198.18.0.2", *shown, *args, f"https://{NAME}/index.html", check=False)

    def test_a_certificate_of_the_authority_is_accepted(self):
        self.assertEqual(0, self.get(self.alice).returncode)
        self.assertEqual(1, self.counted("tls_client_certs"))
        until("a line", lambda: os.path.getsize(self.log) > 0)
        with open(self.log) as f:
            line = json.loads(f.read().splitlines()[-1])
        self.assertEqual("CN=alice,O=Example", line["client_subject"])
        self.assertEqual("TLS_AES_128_GCM_SHA256", line["tls"])

    def test_the_policy_selects_by_subject(self):
        self.assertEqual("403", self.get(self.bob, "-o/dev/null", "-w%{http_code}").stdout)

    def test_others_are_refused(self):
        for cert in (None, self.stranger):
            with self.subTest(cert=cert):
                self.assertNotEqual(0, self.get(cert).returncode)
        self.assertEqual(2, self.counted("tls_failed_client_cert"))
        self.assertEqual(0, self.counted("tls_handshakes"))

    def test_a_response_is_stapled(self):
        done = self.get(self.alice, "--cert-status")
        self.assertEqual((0, ""), (done.returncode, done.stderr))

    def test_secrets_are_logged(self):
        self.get(self.alice)
        self.assertIn("--keylog: the secrets of all TLS connections", self.world.errors())
        self.assertEqual(0o600, os.stat(self.keylog).st_mode & 0o777)
        with open(self.keylog) as f:
            self.assertRegex(f.read(), r"(?m)^CLIENT_TRAFFIC_SECRET_0 [0-9a-f]{64} [0-9a-f]{64}$")

    def shown_subject(self):
        done = self.world.client("openssl", "s_client", "-connect", "198.18.0.2:443", "-servername",
                                 NAME, "-alpn", "h2", "-cert", self.alice[0], "-key", self.alice[1],
                                 input="", check=False)
        return re.search(r"subject=(.*)", done.stdout).group(1)

    def test_sighup_reads_the_certificates_again(self):
        context = ssl.create_default_context(cafile=self.authority.cert)
        context.load_cert_chain(*self.alice)
        context.set_alpn_protocols(["h2"])
        client = Client(context.wrap_socket(self.world.connect(port=443), server_hostname=NAME))
        self.assertEqual(200, client.get("/one")[0])
        self.assertEqual("CN = first", self.shown_subject())
        names = f"subjectAltName=DNS:{NAME}"
        cert, key = self.authority.sign("renewed", "/CN=second", 7, names)
        os.rename(key, self.server_key)
        self.server.signal(signal.SIGHUP)
        until("an error", lambda: "the former certificates stay in use" in self.world.errors())
        self.assertEqual("CN = first", self.shown_subject())
        os.rename(cert, self.server_cert)
        self.server.signal(signal.SIGHUP)
        until("the new ones", lambda: "certificates were read again" in self.world.errors())
        self.assertEqual("CN = second", self.shown_subject())
        self.assertEqual(200, client.get("/one")[0])  # the connection has not ended
        client.close()


class SubjectInHandlers(ServerCase):
    """Handlers get the subject of a verified certificate, on an lcore and on a worker."""
    program = "nightjar-test-handlers"
    lcores = 1

    @classmethod
    def prepare(cls):
        cls.authority = Authority(cls.world.scratch, "authority")
        cert, key = cls.authority.sign("server", "/CN=server", 7, f"subjectAltName=DNS:{NAME}")
        cls.alice = cls.authority.sign("alice", "/O=Example/CN=alice", 8)
        cls.world.options += ["--tls-cert", cert, "--tls-key", key, "--tls-client-optional",
                              "--tls-client-ca", cls.authority.cert]

    def subjects(self, *shown):
        return self.curl("--cacert", self.authority.cert, "--resolve", f"{NAME}:443:198.18.0.2",
                         *shown, f"https://{NAME}/subject", f"https://{NAME}/os-subject")

    def test_a_client_with_a_certificate(self):
        cert, key = self.alice
        self.assertEqual("[CN=alice,O=Example]" * 2, self.subjects("--cert", cert, "--key", key))

    def test_a_client_without(self):
        self.assertEqual("[][]", self.subjects())


class RemovedAuthority(ServerCase):
    """A reload removes the authority of a client that is in a handshake."""

    @classmethod
    def prepare(cls):
        folder = cls.world.scratch
        cls.authority = Authority(folder, "authority")
        cls.client_authority = Authority(folder, "clients")
        cls.alice = cls.client_authority.sign("alice", "/CN=alice", 8)
        cert, key = cls.authority.sign("server", "/CN=server", 7, f"subjectAltName=DNS:{NAME}")
        cls.world.options += ["--tls-cert", cert, "--tls-key", key,
                              "--tls-client-ca", cls.client_authority.cert]

    def step(self, tls, outgoing, sock):
        """Continues the handshake with what has arrived, and sends its bytes."""
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        if data := outgoing.read():
            sock.sendall(data)

    def test_its_handshake_fails_at_the_end(self):
        context = ssl.create_default_context(cafile=self.authority.cert)
        context.load_cert_chain(*self.alice)
        context.set_alpn_protocols(["h2"])
        pairs = []
        for _ in range(2):
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = context.wrap_bio(incoming, outgoing, server_hostname=NAME)
            sock = self.world.connect(port=443)
            self.addCleanup(sock.close)
            self.step(tls, outgoing, sock)
            pairs.append((tls, incoming, outgoing, sock))
        until("both are begun", lambda: self.server.telemetry("/nightjar/latency")["tls_task"]
              ["count"] == 2)
        self.end(*pairs[0])
        until("the first has ended", lambda: self.counted("tls_handshakes") == 1)
        os.replace(Authority(self.world.scratch, "stranger").cert, self.client_authority.cert)
        self.server.signal(signal.SIGHUP)
        until("a reload", lambda: "certificates were read again" in self.world.errors())
        self.end(*pairs[1])
        self.assertEqual(b"", pairs[1][3].recv(65536))
        self.assertEqual((1, 1), (self.counted("tls_handshakes"),
                                  self.counted("tls_failed_client_cert")))
        for pair in pairs:
            pair[3].close()

    def end(self, tls, incoming, outgoing, sock):
        while tls.version() is None or not tls.selected_alpn_protocol():
            incoming.write(sock.recv(65536))
            self.step(tls, outgoing, sock)


class BadFiles(unittest.TestCase):
    """Options that do not fit and files that cannot be used end the start with a message."""

    def refused(self, *options):
        with self.assertRaises(Failed) as refused:
            with World(lcores=1, options=["--root", "/usr", *options]):
                pass
        if "cannot write to" not in str(refused.exception):
            self.assertIn("exit status 2\n", str(refused.exception))  # it would fail again
        return str(refused.exception)

    def test_messages(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            cert, key = make_certificate(folder, "a", NAMES)
            other = make_certificate(folder, "b", NAMES)[1]
            pair = ("--tls-cert", cert, "--tls-key", key)
            authority = Authority(folder, "authority")
            signed = authority.sign("signed", "/CN=signed", 7)
            os.symlink(key, folder + "/link")
            os.mkfifo(folder + "/fifo")
            with open(folder + "/foreign", "w"):
                os.chown(folder + "/foreign", 1, -1)
                os.chmod(folder + "/foreign", 0o666)
            endless = authority.ocsp(signed[0], 7, validity=())
            for options, message in (
                    (("--tls-cert", cert), "each --tls-cert needs its --tls-key"),
                    (("--tls-cert", cert, "--tls-key", other), "is not the private key of"),
                    (("--tls-cert", key, "--tls-key", cert), "are cert and key swapped?"),
                    (("--tls-cert", "/none", "--tls-key", key), "/none: cannot be used as"),
                    ((*pair, "--tls-ocsp", cert), "cannot be used as OCSP response"),
                    (("--tls-cert", signed[0], "--tls-key", signed[1], "--tls-ocsp", endless),
                     "it has no nextUpdate"),
                    ((*pair, "--keylog", folder + "/log"), "--keylog needs --insecure-keylog"),
                    ((*pair, "--insecure-keylog", "--keylog", folder + "/link"), "a symbolic link"),
                    ((*pair, "--insecure-keylog", "--keylog", folder + "/fifo"), "/fifo: "),
                    ((*pair, "--insecure-keylog", "--keylog", "/dev/null"), "not a regular file"),
                    ((*pair, "--insecure-keylog", "--keylog", folder + "/foreign"),
                     "belongs to another user"),
                    ((*pair, "--tls-port", "80"), "--tls-port and --listen must differ"),
                    ((*pair, "--tls-client-optional"), "--tls-client-optional needs"),
                    (("--tls-client-ca", cert), "--tls-client-ca needs --tls-cert")):
                with self.subTest(options=options):
                    self.assertIn(message, self.refused(*options))


class Dates(unittest.TestCase):
    """--check, the start and a reload warn of certificates that expire soon."""

    def sign(self, days):
        cert, key = self.authority.sign("dated", f"/CN={NAME}", 7, f"subjectAltName={NAMES}", days)
        shutil.copy(cert, self.world.scratch + "/server.crt")
        shutil.copy(key, self.world.scratch + "/server.key")

    def test_warnings(self):
        world = self.world = World(root="/run")
        self.addCleanup(world.close)
        self.authority = Authority(world.scratch, "authority")
        cert, key = world.scratch + "/server.crt", world.scratch + "/server.key"
        world.options += ["--tls-cert", cert, "--tls-key", key]
        soon = rf"{cert}: (warning: )?the certificate expires at 20\S+Z, in (19|20) days: renew it"
        self.sign(20)
        check = (server_path(), "--check", "--tls-cert", cert, "--tls-key", key)
        done = subprocess.run(check, capture_output=True, text=True, timeout=time_limit())
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertRegex(done.stderr, soon)
        world.make_namespaces()
        world.start()
        self.assertRegex(world.errors(), f"warning: TLS: {soon}")
        self.sign(5)
        world.server.signal(signal.SIGHUP)
        until("a reload", lambda: world.errors().count("certificates were read again") == 1)
        self.sign(25)
        world.server.signal(signal.SIGHUP)
        until("a reload", lambda: world.errors().count("certificates were read again") == 2)
        self.assertRegex(world.errors(), r"certificate expires at 20\S+Z, in (24|25) days")
        self.assertEqual(2, world.errors().count("the certificate expires"), world.errors())
        self.sign(90)
        done = subprocess.run(check, capture_output=True, text=True, timeout=time_limit())
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual(0, world.stop())
