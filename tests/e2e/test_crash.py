# SPDX-License-Identifier: BSD-3-Clause
"""A crashed server prints a report for its developers. Its core dump has no data of its peers."""
import re
import signal

from tests.netlab.handlers_case import OwnServerCase

# Sanitizers report crashes themselves and place memory elsewhere.
WITHOUT_SANITIZERS = True
ADDRESS = re.compile(r"0x[0-9a-f]{9,}")  # any address of x86-64 or arm64
FRAME = re.compile(r"^  #(\d+) (?:\(in no module\)|\S.*?\+0x[0-9a-f]+"
                   r"(?: (\w+)(?:\.\w+)*\+0x[0-9a-f]+)?)$", re.M)
MARK = b"body-of-a-peer/" * 64
RANDOM = bytes((i * 37 + 91) % 256 for i in range(16))  # getrandom() of nightjar-test-handlers
RSS_KEY = bytes((i * 59 + 17) % 256 for i in range(40))


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


class Report(CrashCase):
    def functions(self, report):
        """Names of the functions of the backtrace; "" for a frame without a name."""
        frames = FRAME.findall(report)
        self.assertEqual([int(number) for number, _ in frames], list(range(len(frames))), report)
        return [function for _, function in frames]

    def check(self, path, cause, function, number=signal.SIGSEGV):
        report = self.crash(path, number)
        self.assertRegex(report, rf"(?m)^nightjar: \S+ crashed: {cause} in thread \S+$")
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
        functions, report = self.check("/crash-on-stack?how=1", "SIGSEGV", "descend")
        self.assertLessEqual(len(functions), 64, report)

    def test_at_the_end_of_a_threads_stack(self):
        self.check("/crash-on-worker?how=1", "SIGSEGV", "descend")

    def test_abort(self):
        self.check("/crash-on-stack?how=2", "SIGABRT", "crash", signal.SIGABRT)

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


class CoreDump(CrashCase):
    """
    Memory that a core dump would have. The tests write no core dump: the machine's settings decide
    where the kernel writes it.
    """

    options = CrashCase.options + ("--rss-key", RSS_KEY.hex())

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

    def holders(self, pid, what):
        """(number of mappings in a core dump, number of other mappings) that contain `what`."""
        counts = [0, 0]
        with open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for start, end, dumped in self.mappings(pid):
                counts[not dumped] += self.has(memory, start, end, what)
        return counts

    def has(self, memory, start, end, what, step=1 << 22):
        """Skips pages that are not present: the server reserves much memory that it never uses."""
        with open(f"/proc/{self.world.server.process.pid}/pagemap", "rb", 0) as pages:
            for at in range(start, end, step):
                n = min(step, end - at)
                pages.seek(at // 4096 * 8)
                if not any(pages.read(n // 4096 * 8)[7::8]):
                    continue
                try:
                    memory.seek(at)
                    if what in memory.read(min(n + len(what), end - at)):
                        return True
                except (OSError, ValueError, OverflowError):
                    pass  # [vvar] and the like
        return False

    def test_it_has_no_keys(self):
        client = self.start(NJ_TEST_RANDOM="1")
        client.request("/hello")
        client.ping()
        # The keys of hashes, and both ends of the RSS key.
        for key in RANDOM, RSS_KEY[:16], RSS_KEY[-16:]:
            dumped, left_out = self.holders(self.world.server.process.pid, key)
            self.assertGreater(left_out, 0, key.hex())
            self.assertEqual(dumped, 0, key.hex())

    def test_it_has_no_request_body(self):
        client = self.start()
        stream = client.request("/os-digest", "POST", ends=False)
        self.assertTrue(client.send(stream, MARK * 20, ends=False))
        client.ping()  # the server has read the whole body
        dumped, left_out = self.holders(self.world.server.process.pid, MARK[:300])
        self.assertGreater(left_out, 0)
        self.assertEqual(dumped, 0)
        # Data of the server itself is in it: so holders() would find a body.
        self.assertGreater(self.holders(self.world.server.process.pid,
                                        self.world.root.encode())[0], 0)
