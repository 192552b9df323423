# SPDX-License-Identifier: BSD-3-Clause
"""nightjar ctl capture and trace: packets and requests of a running server."""
import json
import os
import pty
import re
import signal
import subprocess
import time

from tests.e2e.pcapng import File
from tests.e2e.test_ctl import OK, REFUSED, USAGE, CtlCase
from tests.netlab.world import server_path, until

SUM = re.compile(r"captured (\d+) packets, dropped (\d+)\n$")


class Case(CtlCase):
    policy = "[class default]\n[class slow]\npath = /10MiB\nrequest_rate = 8MiB/s\n"

    def begin(self, *arguments):
        """A capture or trace, which records from here on, with its output in a file."""
        self.path = os.path.join(self.world.scratch, "out")
        with open(self.path, "wb") as out:
            process = subprocess.Popen([server_path(), "ctl", "--socket", self.socket, *arguments],
                                       stdout=out, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertIn("Ctrl-C ends it", process.stderr.readline())
        return process

    def end(self, process, expected=OK):
        process.send_signal(signal.SIGINT)
        return self.wait_for(process, expected)

    def wait_for(self, process, expected=OK):
        said = process.stderr.read()
        self.assertEqual(expected, process.wait(timeout=20), said)
        return said

    def output(self):
        with open(self.path, "rb") as f:
            return f.read()

    def n_packets(self):
        return sum(one["rx_packets"] + one["tx_packets"] for one in self.json("shards")["shards"])

    def capture_all(self, *arguments):
        """A capture that has begun with no packet since the counters were read."""
        while True:
            before = self.n_packets()
            process = self.begin("capture", *arguments)
            if self.n_packets() == before:
                return process, before
            self.end(process)

    def quiet(self):
        n, then = self.n_packets(), 0
        while n != then:
            time.sleep(0.05)
            then, n = n, self.n_packets()
        return n

    def check_counts(self, *arguments):
        """Captures a download. Returns the file, whose packets are as many as the counters say."""
        for _ in range(10):
            process, before = self.capture_all(*arguments)
            self.curl("-o", os.devnull, self.world.url("/200KiB"))
            after = self.quiet()
            said = self.end(process)
            if self.n_packets() == after:
                break
        found = File(self.output())
        self.assertEqual((str(after - before), "0"), SUM.search(said).groups())
        self.assertEqual(after - before, len(found.packets))
        self.assertEqual([{"received": after - before, "dropped": 0, "captured": after - before}],
                         list(found.statistics.values()))
        return found


class CapturesAndTraces(Case):
    def test_as_many_packets_as_the_counters_say(self):
        begun = time.time()
        found = self.check_counts()
        self.assertEqual(1, len(found.interfaces))
        self.assertEqual({False, True}, {p.is_sent for p in found.packets})
        times = [p.utc_ns / 1e9 for p in found.packets]
        self.assertTrue(begun - 1 <= min(times) and max(times) <= time.time() + 1)
        # Headers only: no packet has more than its header of TCP, and no byte of the file is there.
        for p in found.packets:
            ip = 14
            if p.data[12:14] == b"\x08\x00" and p.data[ip + 9] == 6:
                tcp = ip + 4 * (p.data[ip] & 15)
                self.assertEqual(tcp + 4 * (p.data[tcp + 12] >> 4), len(p.data))
        self.assertGreater(sum(p.n_bytes for p in found.packets), 200 << 10)
        self.assertIn("a capture begins: packets of all addresses at all ports, headers",
                      self.server.stderr_text)

    def test_whole_packets_have_the_bytes(self):
        found = self.check_counts("--snaplen", "65535")
        with open(os.path.join(self.root, "200KiB"), "rb") as f:
            part = f.read()[1000:1400]
        self.assertTrue(all(len(p.data) == p.n_bytes for p in found.packets))
        self.assertTrue(any(part[i:i + 64] in p.data for p in found.packets for i in (0, 336)))

    def test_filters_and_bounds(self):
        process = self.begin("capture", "--client", "198.18.0.1", "--packets", "5")
        self.curl("-o", os.devnull, self.world.url("/200KiB"))
        self.assertEqual("captured 5 packets, dropped 0\n", self.wait_for(process))
        self.assertEqual(5, len(File(self.output()).packets))
        process = self.begin("capture", "--client", "198.18.99.0/24", "--seconds", "1")
        self.curl("-o", os.devnull, self.world.url("/one"))
        self.assertEqual("captured 0 packets, dropped 0\n", self.wait_for(process))
        self.assertIn("no port with this number",
                      self.ctl("capture", "--port", "9", expected=REFUSED))

    def test_one_at_a_time(self):
        process = self.begin("capture")
        self.assertIn("one at a time", self.ctl("capture", expected=REFUSED))
        self.end(process)
        process = self.begin("capture")  # one whose client vanishes
        process.kill()
        process.wait()
        until("the server has noticed it", lambda: subprocess.run(
            [server_path(), "ctl", "--socket", self.socket, "capture", "--seconds", "1"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == OK)

    def test_no_terminal(self):
        terminal, inside = pty.openpty()
        self.addCleanup(os.close, terminal)
        done = subprocess.run([server_path(), "ctl", "--socket", self.socket, "capture"],
                              stdout=inside, stderr=subprocess.PIPE, text=True, timeout=20)
        os.close(inside)
        self.assertEqual(USAGE, done.returncode)
        self.assertIn("binary", done.stderr)

    def test_bad_arguments(self):
        for arguments in (("--seconds", "0"), ("--seconds", "601"), ("--packets", "x"),
                          ("--snaplen", "3"), ("--client", "198.18.0.1/24"), ("--port", "-1")):
            with self.subTest(arguments):
                said = self.run_ctl("capture", *arguments)
                self.assertIn(said.returncode, (REFUSED, USAGE))
                self.assertTrue(said.stderr)
        self.ctl("trace", "--packets", "3", expected=USAGE)
        self.ctl("status", "--client", "198.18.0.1", expected=USAGE)

    def test_requests_and_their_waits(self):
        process = self.begin("--json", "trace")
        self.curl("-o", os.devnull, self.world.url("/10MiB?secret"))
        self.curl("-o", os.devnull, self.world.url("/one"))
        until("both are seen", lambda: self.output().count(b"\n") == 2)
        self.assertEqual("traced 2 requests, dropped 0\n", self.end(process))
        slow, quick = (json.loads(line) for line in self.output().splitlines())
        self.assertEqual(("GET", "/10MiB", "slow", 200, 10 << 20, True),
                         tuple(slow[key] for key in
                               ("method", "path", "class", "status", "bytes", "complete")))
        self.assertGreater(slow["waits_ms"]["class"], slow["last_byte_ms"] / 2)
        self.assertGreater(slow["last_byte_ms"], slow["first_byte_ms"])
        self.assertEqual(("/one", "default", False), tuple(quick[key] for key in
                                                           ("path", "class", "running")))

    def test_lines_of_text(self):
        process = self.begin("trace", "--requests", "1")
        self.curl("-o", os.devnull, self.world.url("/one"))
        self.assertEqual("traced 1 requests, dropped 0\n", self.wait_for(process))
        self.assertRegex(self.output().decode(),
                         r"^\d\d:\d\d:\d\d\.\d{6}Z \S+ GET /one 200 1 bytes class=default "
                         r"first=\S+ms last=\S+ms.*\n$")
