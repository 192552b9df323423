# SPDX-License-Identifier: BSD-3-Clause
"""Downloads of files of several sizes, one at a time and 100 at a time, have the right hashes."""
import collections
import hashlib
import os
import subprocess

import h2.events

from tests.netlab.case import FILES, GIB, ServerCase
from tests.netlab.h2client import Client
from tests.netlab.limits import time_limit

N = 100


class Hashing(Client):
    """A client with many concurrent downloads. It keeps the hash of each, not the body."""

    def __init__(self, *args, **more):
        self.sums, self.ended = collections.defaultdict(hashlib.sha256), set()
        super().__init__(*args, **more)

    def take(self, events):
        for event in events:
            if isinstance(event, h2.events.DataReceived):
                self.sums[event.stream_id].update(event.data)
            elif isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                self.ended.add(event.stream_id)


class Downloads(ServerCase):
    def fetch_hash(self, name, seconds=60):
        url = self.world.url("/" + name)
        done = self.world.client(
            "sh", "-c", f"curl -sS --http2-prior-knowledge {url} | sha256sum", seconds=seconds)
        self.assertEqual("", done.stderr)
        return done.stdout.split()[0]

    def test_files_of_all_sizes(self):
        for name in FILES:
            with self.subTest(file=name):
                self.assertEqual(self.sums[name], self.fetch_hash(name))
        self.assertEqual(len(FILES), self.counted("status_2xx"))

    def test_hundred_on_one_connection(self):
        client = Hashing(self.world.connect(), window_bytes=GIB)
        self.addCleanup(client.close)
        streams = [client.request("/10MiB") for _ in range(N)]
        while len(client.ended) < N:
            self.assertTrue(client.read(), "the server closed")
        client.close()
        self.assertEqual({self.sums["10MiB"]},
                         {client.sums[stream].hexdigest() for stream in streams})
        self.assertEqual(1, self.counted("tcp_accepted"))
        self.assertEqual(N, self.counted("status_2xx"))

    def test_hundred_connections(self):
        before = self.server.shards()
        url = self.world.url("/10MiB")
        script = f"curl -sS --http2-prior-knowledge {url} | sha256sum"
        clients = [self.world.client_popen("sh", "-c", script, stdout=subprocess.PIPE, text=True)
                   for _ in range(N)]
        for client in clients:
            out, _ = client.communicate(timeout=time_limit())
            self.assertEqual(self.sums["10MiB"], out.split()[0])
        self.assertEqual(N, self.counted("tcp_accepted"))
        self.both_shards_worked(before, "requests", N // 10)

    def both_shards_worked(self, before, counter, at_least):
        after = self.server.shards()
        self.assertEqual(2, len(after))
        for old, new in zip(before, after):
            self.assertGreaterEqual(new[counter] - old[counter], at_least,
                                    f"{counter} of one shard of two")
            self.assertGreater(new["cycles_busy"], old["cycles_busy"])


class OneGiB(ServerCase):
    plain_build = "speed"  # a long file runs the same code as many short ones

    def test_one_gib(self):
        path = os.path.join(self.root, "1GiB")
        block = bytearray(os.urandom(4096)) * 1024
        whole = hashlib.sha256()
        with open(path, "wb") as f:
            for number in range(GIB // len(block)):
                block[:8] = number.to_bytes(8, "big")  # all blocks differ
                whole.update(block)
                f.write(block)
        done = self.world.client("sh", "-c", "curl -sS --http2-prior-knowledge "
                                 f"{self.world.url('/1GiB')} | sha256sum")
        self.assertEqual("", done.stderr)
        self.assertEqual(whole.hexdigest(), done.stdout.split()[0])
