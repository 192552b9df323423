# SPDX-License-Identifier: BSD-3-Clause
"""
300 paced downloads of 300 large files. The server's memory for file contents is bounded by the
chunks in use, not by the sizes of the files. Each received byte is compared.
"""
import collections
import hashlib
import os

import h2.events

from tests.netlab.case import ServerCase
from tests.netlab.flood import resident_kib
from tests.netlab.h2client import Client

PLAIN_BUILD = "memory"
WITHOUT_SANITIZERS = True  # shadow memory is resident, too
KIB, MIB = 1 << 10, 1 << 20
FILES = 300
LARGE = 17 * MIB      # read in chunks
PART = 96 * KIB       # requested of each file: three chunks of 32 KiB
STREAMS = 100         # per connection
FLOW_TABLES = 2 * 4 * KIB  # of two lcores, in KiB
READY = 32 * KIB           # populated pages for the next chunks, in KiB


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

    def test_memory_and_contents(self):
        pid = self.server.process.pid
        before, high, n_read = resident_kib(pid), 0, 0
        clients, wanted = [], {}
        for first in range(0, FILES, STREAMS):
            client = Parts(self.world.connect(), window_bytes=STREAMS * PART)
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
                    high = max(high, resident_kib(pid))
        for (client, stream), i in wanted.items():
            self.assertEqual(contents(i), bytes(client.data[stream]), f"file {i}")
        self.assertEqual(FILES * PART // (32 * KIB), self.counted("file_reads"),
                         "the server reads each chunk once")
        # Two chunks per response, and 16 KiB for its stream, its part of the session and its
        # packets. The flow tables take large pages from the first connection on. Free chunks are
        # populated ahead of their use.
        self.assertLess(high - before, FILES * (2 * 32 + 16) + FLOW_TABLES + READY)
        for client in clients:
            client.close()
