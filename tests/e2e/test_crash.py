# SPDX-License-Identifier: BSD-3-Clause
"""What is left of a server that crashed: a report for its developers, and nothing of its peers."""
import re
import signal

from tests.netlab.handlers_case import OwnServerCase

# Sanitizers report crashes themselves, and move memory to where they watch it.
WITHOUT_SANITIZERS = True
ADDRESS = re.compile(r"0x[0-9a-f]{9,}")  # of x86-64 and arm64, whatever is mapped there
FRAME = re.compile(r"^  #(\d+) (?:\(in no module\)|\S.*?\+0x[0-9a-f]+"
                   r"(?: (\w+)(?:\.\w+)*\+0x[0-9a-f]+)?)$", re.M)
MARK = b"body-of-a-peer/" * 64
RANDOM = bytes((i * 37 + 91) % 256 for i in range(16))  # getrandom() of nightjar-test-handlers
RSS_KEY = bytes((i * 59 + 17) % 256 for i in range(40))


class CrashCase(OwnServerCase):
    options = ("--workers", "1")

    def start(self, **variables):
        super().start(**variables)
        return self.client()

    def crash(self, path, number, **variables):
        """What the server said at its end, which was by signal `number`."""
        self.start(**variables).request(path)
        self.assertEqual(self.world.server.wait(), -number)
        return self.world.errors()


class Report(CrashCase):
    def functions(self, report):
        """Names of the functions of the backtrace, "" for what has none."""
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
        self.assertIn("nj_shard_step", functions, report)  # not exported, and named
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

    def test_a_jump_to_where_no_code_is(self):
        report = self.crash("/crash?how=3", signal.SIGSEGV)
        self.assertRegex(report, r"(?m)^nightjar: \S+ crashed: SIGSEGV at address 0x8 in thread")
        self.assertIn("#0 (in no module)", report)
        self.assertEqual(self.functions(report)[:2], ["", "crash"], report)
        self.assertRegex(report, r"(?m)^nightjar: please report this as SECURITY\.md says")
        self.assertNotRegex(report, ADDRESS)

    def test_the_handler_of_an_embedding_program_stays(self):
        self.start(NJ_TEST_OWN_HANDLER="1").request("/crash")
        self.assertEqual(self.world.server.wait(), 77)
        self.assertNotIn("crashed", self.world.errors())


class CoreDump(CrashCase):
    """Of what the kernel would write. Not a core dump: where those go is the machine's to say."""

    options = CrashCase.options + ("--rss-key", RSS_KEY.hex())

    def mappings(self, pid):
        """(from, to, "is in a core dump") of each that can be read."""
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
        """(how many mappings of a core dump, how many others) have these bytes."""
        counts = [0, 0]
        with open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for start, end, dumped in self.mappings(pid):
                counts[not dumped] += self.has(memory, start, end, what)
        return counts

    def has(self, memory, start, end, what, step=1 << 22):
        """Reserved and never touched memory is large: what is not there is not read."""
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

    def test_keys_are_not_in_it(self):
        client = self.start(NJ_TEST_RANDOM="1")
        client.request("/hello")
        client.ping()
        # The keys of hashes, and both ends of that of RSS.
        for key in RANDOM, RSS_KEY[:16], RSS_KEY[-16:]:
            dumped, left_out = self.holders(self.world.server.process.pid, key)
            self.assertGreater(left_out, 0, key.hex())
            self.assertEqual(dumped, 0, key.hex())

    def test_a_request_body_is_not_in_it(self):
        client = self.start()
        stream = client.request("/os-digest", "POST", ends=False)
        self.assertTrue(client.send(stream, MARK * 20, ends=False))
        client.ping()  # it has all been read
        dumped, left_out = self.holders(self.world.server.process.pid, MARK[:300])
        self.assertGreater(left_out, 0)
        self.assertEqual(dumped, 0)
        # What is no peer's is in it: there are mappings that would show a body.
        self.assertGreater(self.holders(self.world.server.process.pid,
                                        self.world.root.encode())[0], 0)
