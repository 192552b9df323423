# SPDX-License-Identifier: BSD-3-Clause
"""
A server and nj-memory-client (perf/tools/memory/main.c), which opens up to a million connections,
over a memif link.

    with Crowd(1_000_000) as crowd:
        crowd.open(1_000_000)

The two DPDK processes share a pair of rings (net_memif). The memory of the rings needs no hugepages
and is separate from the server's memory for connections. nj-memory-client is the server's gateway,
so that the neighbour table has one entry for all addresses of clients.
"""
import json
import os
import select
import subprocess
import time

from tests.netlab.generator import NO_HUGEPAGES, Memif
from tests.netlab.limits import time_limit
from tests.netlab.programs import program
from tests.netlab.world import SERVER_ADDR, Failed, until

PROGRAM = program("perf/tools/memory/nj-memory-client")
GATEWAY = "198.18.0.1"
BODY_BYTES = 1000


def room_for(n):
    """--max-connections for `n`: above 7/8 idle connections are closed for newcomers (TIGHT_FROM of
    lib/conn/conn_fair_eviction.c)."""
    return n + n // 7 + 8


class Crowd(Memif):
    def __init__(self, connections, options=(), progress=None):
        super().__init__(options=[
            "--gateway", GATEWAY, "--max-connections", str(room_for(connections)),
            "--preface-timeout", "60m", "--idle-timeout", "60m", *options])
        self.connections, self.progress = connections, progress
        self.root = f"{self.scratch}/site"
        os.mkdir(self.root)
        with open(f"{self.root}/body", "wb") as f:
            f.write(os.urandom(BODY_BYTES))
        self.clients = None
        self.unread = b""

    def start(self):
        super().start()
        cpu = max(os.sched_getaffinity(0))
        errors = self.progress or open(f"{self.scratch}/clients", "wb")
        self.clients = self.client_popen(
            PROGRAM, "--no-pci", "--no-shconf", *NO_HUGEPAGES, self.device("client"), "--lcores",
            f"0@{cpu}", "--file-prefix", self.prefix, "--", str(self.connections), GATEWAY,
            SERVER_ADDR, f"{self.root}/body", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=errors)

    def command(self, text, seconds=600):
        """Sends a command to nj-memory-client. Returns its answer, which is JSON."""
        give_up = time.monotonic() + time_limit(seconds)
        fd = self.clients.stdout.fileno()
        try:
            self.clients.stdin.write(text.encode() + b"\n")
            self.clients.stdin.flush()
            while b"\n" not in self.unread:
                left = give_up - time.monotonic()
                if left <= 0 or not select.select([fd], [], [], left)[0]:
                    raise Failed(f"the clients did not complete {text!r} within "
                                 f"{time_limit(seconds):.0f} s")
                chunk = os.read(fd, 4096)
                if not chunk:
                    raise BrokenPipeError
                self.unread += chunk
        except BrokenPipeError:
            status = self.clients.wait(time_limit())
            raise Failed(f"the clients ended with {status} at {text!r}\n"
                         f"{self.messages()}") from None
        line, self.unread = self.unread.split(b"\n", 1)
        return json.loads(line)

    def messages(self):
        """The last messages of nj-memory-client and of the server."""
        path = f"{self.scratch}/clients"
        text = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as f:
                text = f.read()[-2000:]
        return text + self.errors()

    def open(self, n):
        """Opens connections until `n` are open, on the server as well: its handshakes end later."""
        answer = self.command(f"open {n}")

        def all_open():
            memory = self.server.telemetry("/nightjar/memory")
            return memory["tcb_used"] == memory["conn_used"] == n
        until(f"{n} connections at the server", all_open)
        return answer

    def abort(self):
        """Resets all connections, and waits until the server has freed them."""
        answer = self.command("abort")

        def all_free():
            memory, stats = self.server.telemetry("/nightjar/memory"), self.server.stats()
            return not any(stats[name] for name in ("connections", "h2_connections", "time_wait")) \
                and not any(n for name, n in memory.items() if name.endswith("_used"))
        until("no connection at the server", all_free)
        return answer

    def close(self):
        if self.clients:
            self.clients.stdin.close()
            try:
                self.clients.wait(time_limit())
            except subprocess.TimeoutExpired:
                self.clients.kill()
            self.clients.stdout.close()
            self.clients = None
        super().close()
