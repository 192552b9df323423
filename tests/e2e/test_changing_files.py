# SPDX-License-Identifier: BSD-3-Clause
"""
Files that change during a download: the client receives all bytes of the file that existed at the
time of the request, or an error.

The client stops a download by not opening its window. The test changes the file, and then the
client opens the window again.
"""
import hashlib
import os
import subprocess

import h2.events

from tests.netlab.case import ServerCase
from tests.netlab.h2client import Client
from tests.netlab.limits import time_limit
from tests.netlab.world import until

MIB = 1 << 20
LARGE = 20 * MIB + 12345  # read in chunks: the cache holds files up to 16 MiB
SMALL = 3 * MIB + 1
BEFORE = MIB              # received by the client before the change
OLD_NS = 10 ** 18         # mtime


def contents(n_bytes, salt):
    block = hashlib.shake_256(salt.encode()).digest(65537)  # no repeat is aligned
    return (block * (n_bytes // len(block) + 1))[:n_bytes]


def overwrite(path):
    with open(path, "r+b") as f:
        f.write(contents(os.path.getsize(path), "new"))


def overwrite_the_end(path):
    with open(path, "r+b") as f:
        f.seek(-1, os.SEEK_END)
        f.write(b"!")


def overwrite_and_set_back(path):
    was = os.stat(path)
    overwrite(path)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def shrink(path):
    os.truncate(path, BEFORE // 2)


def shrink_and_grow(path):
    size = os.path.getsize(path)
    os.truncate(path, 0)
    os.truncate(path, size)


def grow(path):
    with open(path, "ab") as f:
        f.write(b"more")


def replace(path):
    with open(path + ".new", "wb") as f:
        f.write(contents(os.path.getsize(path), "new"))
    os.rename(path + ".new", path)


def delete(path):
    os.unlink(path)


def chmod(path):
    os.chmod(path, 0o600)


IN_PLACE = (overwrite, overwrite_the_end, overwrite_and_set_back, shrink, shrink_and_grow, grow)
BY_NAME = (replace, delete, chmod)


class Held(Client):
    """A client whose download stops at the end of its window until go_on()."""

    def __init__(self, sock, path):
        self.data, self.reset, self.done = bytearray(), False, False
        self.unacknowledged = 0
        self.holds = True
        super().__init__(sock, window_bytes=BEFORE)
        self.stream = self.request(path)

    def acknowledge(self, event):
        if self.holds:
            self.unacknowledged += event.flow_controlled_length
        else:
            super().acknowledge(event)

    def take(self, events):
        for event in events:
            if isinstance(event, h2.events.DataReceived):
                self.data += event.data
            elif isinstance(event, h2.events.StreamEnded):
                self.done = True
            elif isinstance(event, h2.events.StreamReset):
                self.reset = True

    def read_until(self, condition):
        while not condition():
            if not self.read():
                raise ConnectionError("the server closed")

    def go_on(self):
        self.holds = False
        self.h2.acknowledge_received_data(self.unacknowledged, self.stream)
        self.flush()
        self.read_until(lambda: self.done or self.reset)


class ChangingCase(ServerCase):
    def make(self, name, n_bytes):
        path = os.path.join(self.root, name)
        with open(path, "wb") as f:
            f.write(contents(n_bytes, "old"))
        os.utime(path, ns=(OLD_NS, OLD_NS))
        return path

    def download(self, change, n_bytes):
        """Changes the file after BEFORE bytes. Returns the body and whether it is complete."""
        # A name of its own: for a second, the server may answer from a deleted file of that name.
        name = f"{self._testMethodName}-{change.__name__}-{n_bytes}"
        path = self.make(name, n_bytes)
        client = Held(self.world.connect(), "/" + name)
        self.addCleanup(client.close)
        client.read_until(lambda: len(client.data) == BEFORE)
        change(path)
        client.go_on()
        client.close()
        return bytes(client.data), client.done


class LargeFiles(ChangingCase):
    """The server's message names how it reads large files, and its counters confirm it."""
    reads = "by io_uring, bypassing the page cache"
    is_direct = True

    def test_message_and_counters(self):
        self.assertIn(f"large files are read {self.reads}", self.world.errors())
        before = self.server.telemetry("/nightjar/files")
        got, whole = self.download(delete, LARGE)
        self.assertTrue(whole and got == contents(LARGE, "old"))
        now = self.server.telemetry("/nightjar/files")
        self.assertGreaterEqual(now["read_bytes"] - before["read_bytes"], LARGE)
        if self.is_direct:
            self.assertGreaterEqual(now["direct_bytes"] - before["direct_bytes"], LARGE)
        else:
            self.assertEqual(0, now.get("direct_bytes", 0))

    def test_large_files_changed_in_place(self):
        old = contents(LARGE, "old")
        for change in IN_PLACE:
            with self.subTest(change=change.__name__):
                got, whole = self.download(change, LARGE)
                self.assertFalse(whole, "the whole old file no longer exists")
                self.assertEqual(old[:len(got)], got, "a byte that the file never had")

    def test_large_files_changed_by_name(self):
        old = contents(LARGE, "old")
        for change in BY_NAME:
            with self.subTest(change=change.__name__):
                got, whole = self.download(change, LARGE)
                self.assertTrue(whole)
                self.assertEqual(old, got)


class ThroughThePageCache(LargeFiles):
    options = ("--file-reads", "buffered")
    reads = "by io_uring, through the page cache"
    is_direct = False


class ByThreads(LargeFiles):
    options = ("--file-reads", "threads")
    reads = "by threads"
    is_direct = False


class ChangingFiles(ChangingCase):
    def test_small_files(self):
        old = contents(SMALL, "old")
        for change in IN_PLACE + BY_NAME:
            with self.subTest(change=change.__name__):
                got, whole = self.download(change, SMALL)
                self.assertTrue(whole)
                self.assertEqual(old, got)

    def test_the_next_request_gets_the_new_file(self):
        for change in (overwrite, replace):
            self.download(change, LARGE)
            name = f"{self._testMethodName}-{change.__name__}-{LARGE}"
            new = contents(LARGE, "new")
            url = self.world.url("/" + name)

            def gets_it():
                done = self.world.client("curl", "-sS", "--http2-prior-knowledge", url, text=False)
                return done.returncode == 0 and done.stdout == new
            until(f"the new file after {change.__name__}", gets_it)

    def test_slow_curl(self):
        old = contents(LARGE, "old")
        # The client's receive buffer has to be smaller than the file.
        less = f"echo 4096 131072 {2 * MIB} > /proc/sys/net/ipv4/tcp_rmem"
        self.assertEqual(0, self.world.client("sh", "-c", less).returncode)
        for change in (overwrite, replace):
            with self.subTest(change=change.__name__):
                path = self.make("curl-" + change.__name__, LARGE)
                out = os.path.join(self.world.scratch, "out")
                curl = self.world.client_popen(
                    "curl", "-sS", "--http2-prior-knowledge", "--limit-rate", "4M", "-o", out,
                    self.world.url("/" + os.path.basename(path)), stderr=subprocess.DEVNULL)
                until("some bytes",
                      lambda: os.path.exists(out) and os.path.getsize(out) > BEFORE)
                change(path)
                status = curl.wait(time_limit())
                with open(out, "rb") as f:
                    got = f.read()
                os.unlink(out)
                self.assertEqual(old[:len(got)], got)
                self.assertEqual(change is replace, status == 0)
                self.assertEqual(status == 0, len(got) == len(old))
