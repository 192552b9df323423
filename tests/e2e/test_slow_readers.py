# SPDX-License-Identifier: BSD-3-Clause
"""
Very many paced downloads of as many large files: what they hold of file contents is bounded by the
chunks they need, not by the files, and every byte is right.
"""
import collections
import hashlib
import os

import h2.events

from tests.netlab.case import ServerCase
from tests.netlab.flood import resident_kib
from tests.netlab.h2client import Client
from tests.netlab.world import SANITIZED

KIB, MIB = 1 << 10, 1 << 20
FILES = 300
LARGE = 17 * MIB      # read in chunks
PART = 96 * KIB       # that each client wants: three chunks of 32 KiB
STREAMS = 100         # of one connection
FLOW_TABLES = 2 * 4 * KIB  # of two lcores, in KiB
READY = 32 * KIB           # for the next chunks, pages that are there ahead of time, in KiB


def contents(number):
    return hashlib.shake_256(str(number).encode()).digest(PART)


class Parts(Client):
    def __init__(self, *args, **more):
        self.data, self.left = collections.defaultdict(bytearray), 0
        super().__init__(*args, **more)

    def take(self, events):
        for event in events:
            if isinstance(event, h2.events.DataReceived):
                self.data[event.stream_id] += event.data
            elif isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                self.left -= 1


class SlowReaders(ServerCase):
    options = ("--rate-per-request", "32KiB/s", "--cache", "1MiB")

    @classmethod
    def prepare(cls):
        for i in range(FILES):
            with open(os.path.join(cls.root, f"large{i}"), "wb") as f:
                f.write(contents(i))
                f.truncate(LARGE)

    def test_as_many_files(self):
        pid = self.server.process.pid
        before, most, n_read = resident_kib(pid), 0, 0
        clients, wanted = [], {}
        for first in range(0, FILES, STREAMS):
            client = Parts(self.world.connect(seconds=30), window_bytes=STREAMS * PART)
            self.addCleanup(client.close)
            for i in range(first, first + STREAMS):
                stream = client.prepare(f"/large{i}", range=f"bytes=0-{PART - 1}")
                wanted[client, stream] = i
                client.left += 1
            client.flush()
            clients.append(client)
        for client in clients:
            while client.left:
                self.assertTrue(client.read(), "the server closed")
                n_read += 1
                if n_read % 100 == 0:
                    most = max(most, resident_kib(pid))
        for (client, stream), i in wanted.items():
            self.assertEqual(contents(i), bytes(client.data[stream]), f"file {i}")
        self.assertEqual(FILES * PART // (32 * KIB), self.counted("file_reads"),
                         "each chunk is read once, however many turns it takes to send it")
        # Two chunks each, and 16 KiB for everything else: streams, sessions, what is on its way.
        # And the flow tables, on large pages from the first connection on; and the pages for the
        # next chunks.
        if not SANITIZED:  # their shadow is memory, too
            self.assertLess(most - before, FILES * (2 * 32 + 16) + FLOW_TABLES + READY)
        for client in clients:
            client.close()
