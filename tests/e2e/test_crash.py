# SPDX-License-Identifier: BSD-3-Clause
"""A crashed server prints a report for its developers. Its core dump has no data of its peers."""
import contextlib
import ctypes
import os
import re
import signal
import ssl
import subprocess
import tempfile

from tests.netlab.certificates import make_certificate
from tests.netlab.handlers_case import OwnServerCase
from tests.netlab.reaper import name_of
from tests.netlab.world import SERVER_ADDR, until, version

# Sanitizers report crashes themselves and place memory elsewhere.
WITHOUT_SANITIZERS = True
ADDRESS = re.compile(r"0x[0-9a-f]{9,}")  # any address of x86-64 or arm64
FRAME = re.compile(r"^  #(\d+) (?:\(in no module\)|\S.*?\+0x[0-9a-f]+"
                   r"(?: (\w+)(?:\.\w+)*\+0x[0-9a-f]+)?)$", re.M)
MARK = b"body-of-a-peer/" * 64
RANDOM = bytes((i * 37 + 91) % 256 for i in range(16))  # getrandom() of nightjar-test-handlers
# The secret parts of keys of session tickets, which take 80 bytes of getrandom().
TICKET_KEY = bytes((i % 16 * 37 + 91 + i // 16 * 5) % 256 for i in range(16, 80))
RSS_KEY = bytes((i * 59 + 17) % 256 for i in range(40))
NAMES = f"DNS:nightjar.test,IP:{SERVER_ADDR}"


class CrashCase(OwnServerCase):
    """Each test starts its own server."""
    options = ("--workers", "1")

    def start(self, **variables):
        super().start(**variables)
        return self.client()

    def crash(self, path, number, **variables):
        """Crashes the server, which signal `number` ends. Returns the report on standard error."""
        self.start(**variables).request(path)
        self.assertEqual(self.world.server.wait(), -number)
        return self.world.errors()


class WithoutHandlers(CrashCase):
    """An lcore that may make only the calls of the list (seccomp)."""
    program = "nightjar"

    def test_on_an_lcore(self):
        self.start()
        pid = self.world.server.process.pid
        names = {name_of(task): int(task) for task in os.listdir(f"/proc/{pid}/task")}
        ctypes.CDLL(None).tgkill(pid, names["nj-lcore-main"], signal.SIGSEGV)
        self.assertEqual(-signal.SIGSEGV, self.world.server.wait())
        report = self.world.errors()
        self.assertIn(f"\nnightjar: {version()} crashed: SIGSEGV in thread nj-lcore-main\n", report)
        self.assertIn("main_lcore_thread", [name for _, name in FRAME.findall(report)], report)
        self.assertRegex(report, r"(?m)^nightjar: please report this as SECURITY\.md says")


class Report(CrashCase):
    def functions(self, report):
        """Names of the functions of the backtrace; "" for a frame without a name."""
        frames = FRAME.findall(report)
        self.assertEqual([int(number) for number, _ in frames], list(range(len(frames))), report)
        return [function for _, function in frames]

    def check(self, path, cause, function, number=signal.SIGSEGV, overflows=False):
        report = self.crash(path, number)
        self.assertRegex(report, rf"(?m)^nightjar: \S+ crashed: {cause} in thread \S+$")
        handler = f"handler of route GET {path.partition('?')[0]}"
        line = f"the {handler} overflowed its stack" if overflows else f"in the {handler}"
        self.assertIn(f"\nnightjar: {line}\n", report)
        functions = self.functions(report)
        self.assertIn(function, functions[:8], report)
        self.assertRegex(report, r"(?m)^nightjar: please report this as SECURITY\.md says")
        self.assertNotRegex(report, ADDRESS)
        return functions, report

    def test_inline(self):
        functions, report = self.check("/crash", "SIGSEGV at address 0x8", "crash")
        self.assertEqual(functions[0], "crash", report)
        self.assertIn("nj_shard_step", functions, report)  # it is not exported
        self.assertIn("main_lcore_thread", functions, report)
        self.assertIn("libnightjar.so", report)

    def test_on_a_stack_of_its_own(self):
        functions, report = self.check("/crash-on-stack", "SIGSEGV at address 0x8", "crash")
        self.assertEqual(functions[0], "crash", report)

    def test_on_a_worker(self):
        functions, report = self.check("/crash-on-worker", "SIGSEGV at address 0x8", "crash")
        self.assertEqual(functions[0], "crash", report)

    def test_at_the_end_of_a_stack(self):
        functions, report = self.check("/crash-on-stack?how=1", "SIGSEGV", "descend",
                                       overflows=True)
        self.assertLessEqual(len(functions), 64, report)

    def test_at_the_end_of_a_threads_stack(self):
        self.check("/crash-on-worker?how=1", "SIGSEGV", "descend")

    def test_abort(self):
        self.check("/crash-on-stack?how=2", "SIGABRT", "crash", signal.SIGABRT)

    def test_abort_on_a_worker(self):
        self.check("/crash-on-worker?how=2", "SIGABRT", "crash", signal.SIGABRT)

    def test_a_jump_to_an_address_without_code(self):
        report = self.crash("/crash?how=3", signal.SIGSEGV)
        self.assertRegex(report, r"(?m)^nightjar: \S+ crashed: SIGSEGV at address 0x8 in thread")
        self.assertIn("#0 (in no module)", report)
        self.assertEqual(self.functions(report)[:2], ["", "crash"], report)
        self.assertRegex(report, r"(?m)^nightjar: please report this as SECURITY\.md says")
        self.assertNotRegex(report, ADDRESS)

    def test_an_embedding_programs_handler_is_kept(self):
        self.start(NJ_TEST_OWN_HANDLER="1").request("/crash")
        self.assertEqual(self.world.server.wait(), 77)
        self.assertNotIn("crashed", self.world.errors())


class DumpCase(CrashCase):
    """
    Memory that a core dump would have. The tests write no core dump: the machine's settings decide
    where the kernel writes it.
    """

    def mappings(self, pid):
        """(start, end, "is in a core dump") of each readable mapping."""
        found, at = [], None
        with open(f"/proc/{pid}/smaps", encoding="ascii", errors="replace") as smaps:
            for line in smaps:
                if head := re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line):
                    at = int(head[1], 16), int(head[2], 16)
                elif re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                    at = None
                elif line.startswith("VmFlags:") and at:
                    found.append((*at, " dd " not in line and " io " not in line))
        return found

    def holders(self, pid, unwanted=None, **wanted):
        """{name: [number of mappings in a core dump, number of other mappings]} that contain the
        bytes of this name. Those of `unwanted` are looked for in a core dump only."""
        everything = (unwanted or {}) | wanted
        counts = {name: [0, 0] for name in everything}
        with open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for start, end, dumped in self.mappings(pid):
                for name in self.held(memory, start, end, everything if dumped else wanted):
                    counts[name][not dumped] += 1
        return counts

    def held(self, memory, start, end, wanted, step=1 << 22):
        """Names of the bytes that the mapping has. Skips pages that are not present: the server
        reserves much memory that it never uses."""
        found, longest = set(), max(map(len, wanted.values()))
        with open(f"/proc/{self.world.server.process.pid}/pagemap", "rb", 0) as pages:
            for at in range(start, end, step):
                n = min(step, end - at)
                pages.seek(at // 4096 * 8)
                if not any(pages.read(n // 4096 * 8)[7::8]):
                    continue
                try:
                    memory.seek(at)
                    data = memory.read(min(n + longest, end - at))
                except (OSError, ValueError, OverflowError):
                    continue  # [vvar] and the like
                found.update(name for name, what in wanted.items() if what in data)
        return found


class CoreDump(DumpCase):
    options = CrashCase.options + ("--rss-key", RSS_KEY.hex())

    def test_it_has_no_keys(self):
        client = self.start(NJ_TEST_RANDOM="1")
        client.request("/hello")
        client.ping()
        # The keys of hashes, and both ends of the RSS key.
        for key in RANDOM, RSS_KEY[:16], RSS_KEY[-16:]:
            dumped, left_out = self.holders(self.world.server.process.pid, key=key)["key"]
            self.assertGreater(left_out, 0, key.hex())
            self.assertEqual(dumped, 0, key.hex())

    def test_it_has_no_request_body(self):
        client = self.start()
        stream = client.request("/os-digest", "POST", ends=False)
        self.assertTrue(client.send(stream, MARK * 20, ends=False))
        client.ping()  # the server has read the whole body
        found = self.holders(self.world.server.process.pid, body=MARK[:300],
                             root=self.world.root.encode())
        self.assertGreater(found["body"][1], 0)
        self.assertEqual(found["body"][0], 0)
        # Data of the server itself is in it: so holders() would find a body.
        self.assertGreater(found["root"][0], 0)


class CoreDumpOfTls(DumpCase):
    """Private keys, ticket keys, and the secrets of handshakes that are over or in progress."""

    def setUp(self):
        super().setUp()
        folder = self.enterContext(tempfile.TemporaryDirectory())
        os.chmod(folder, 0o777)  # the server is user nobody, and writes there
        self.cert, ec = make_certificate(folder, "ec", NAMES)
        rsa_cert, rsa = make_certificate(folder, "rsa", NAMES, "-newkey", "rsa:2048")
        self.keys = {"ec": ec, "rsa": rsa}
        self.keylog = os.path.join(folder, "secrets")
        self.options = CrashCase.options + (
            "--rss-key", RSS_KEY.hex(), "--tls-cert", self.cert, "--tls-key", ec,
            "--tls-cert", rsa_cert, "--tls-key", rsa, "--keylog", self.keylog, "--insecure-keylog")
        self.context = ssl.create_default_context(cafile=self.cert)
        self.context.set_alpn_protocols(["h2"])

    def private_numbers(self):
        """Parts of the private keys: in PEM, and each number in both orders of bytes."""
        wanted = {}
        for kind, path in self.keys.items():
            with open(path, encoding="ascii") as pem:
                wanted[f"{kind}_pem"] = pem.read().splitlines()[2 if kind == "rsa" else 1].encode()
            text = subprocess.run(["openssl", "pkey", "-in", path, "-noout", "-text"], check=True,
                                  capture_output=True, text=True).stdout
            numbers = re.findall(r"(?m)^(priv|privateExponent|prime[12]):\n((?: +[0-9a-f:]+\n)+)",
                                 text)
            self.assertEqual(len(numbers), 1 if kind == "ec" else 3)
            for name, digits in numbers:
                number = bytes.fromhex(re.sub(r"[\s:]", "", digits)).lstrip(b"\0")
                wanted[f"{kind}_{name}"] = number[-32:]
                wanted[f"{kind}_{name}_reversed"] = number[:-33:-1]
        return wanted

    def secrets(self):
        """{LABEL_RANDOM: secret} of the log of secrets."""
        with contextlib.suppress(FileNotFoundError), open(self.keylog, encoding="ascii") as log:
            return {f"{label}_{rand[:8]}": secret for label, rand, secret in
                    (line.split() for line in log)}
        return {}

    def established(self):
        sock = self.context.wrap_socket(self.world.connect(port=443), server_hostname=SERVER_ADDR)
        self.addCleanup(sock.close)

    def in_progress(self):
        """A handshake in which the server has sent its flight, and the client sends no more.
        Returns its client random."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self.context.wrap_bio(incoming, outgoing, server_hostname=SERVER_ADDR)
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.do_handshake()
        hello = outgoing.read()
        sock = self.world.connect(port=443)
        self.addCleanup(sock.close)
        sock.sendall(hello)
        self.assertEqual(sock.recv(3), b"\x16\x03\x03")
        return hello[11:15].hex()

    def test_it_has_no_private_keys_and_no_secrets(self):
        self.start(NJ_TEST_RANDOM="1")
        pid = self.world.server.process.pid
        done = self.world.client("openssl", "s_client", "-connect", f"{SERVER_ADDR}:443", "-alpn",
                                 "h2", "-sigalgs", "rsa_pss_rsae_sha256", input="", check=False)
        self.assertIn("Peer signature type: RSA-PSS", done.stdout)
        self.established()
        unfinished = self.in_progress()
        until("the secrets are logged", lambda: f"SERVER_TRAFFIC_SECRET_0_{unfinished}" in
              self.secrets())
        self.assertEqual(3, sum(label.startswith("SERVER_TRAFFIC") for label in self.secrets()))
        wanted = self.private_numbers() | {"ticket_aes": TICKET_KEY[:16],
                                           "ticket_hmac": TICKET_KEY[32:48]}
        for label, secret in self.secrets().items():
            wanted |= {label: bytes.fromhex(secret)[:32], label + "_hex": secret.encode()[:32]}
        in_use = {name: wanted[name] for name in (
            "ec_priv_reversed", "rsa_prime1_reversed", "ticket_aes", "ticket_hmac",
            f"SERVER_TRAFFIC_SECRET_0_{unfinished}")}
        found = self.holders(pid, wanted, **in_use, root=self.world.root.encode())
        self.assertGreater(found.pop("root")[0], 0)  # data that is in it: holders() finds it
        self.assertEqual({}, {name: n for name, n in found.items() if n[0]})
        self.assertEqual([], [name for name in in_use if not found[name][1]])  # elsewhere they are
