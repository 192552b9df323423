# SPDX-License-Identifier: BSD-3-Clause
"""
A server and a crowd: very many connections from perf/tools/memory/main.c, over a memif link.

    with Crowd(1_000_000) as crowd:
        crowd.open(1_000_000)

Two DPDK processes share a pair of rings (net_memif) whose memory is their own: it needs no
hugepages, and what the server holds for connections is not mixed with it. The crowd is the server's
gateway, so that its neighbour table holds one entry however many addresses the clients have.
"""
import json
import os
import select
import subprocess
import time

from tests.netlab.generator import NO_HUGEPAGES, Memif
from tests.netlab.world import BUILD, SERVER_ADDR, SLOW, Failed, until

GATEWAY = "198.18.0.1"
BODY_BYTES = 1000


def room_for(n):
    """--max-connections for `n`: the last 1/32 are for handshakes (NJ_TCP_NEARLY_FULL_PART)."""
    return n + n // 31 + 1


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
            os.path.join(BUILD, "perf", "tools", "memory", "nj-memory-client"), "--no-pci",
            "--no-shconf", *NO_HUGEPAGES, self.device("client"), "--lcores", f"0@{cpu}",
            "--file-prefix", self.prefix, "--", str(self.connections), GATEWAY,
            SERVER_ADDR, f"{self.root}/body", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=errors)

    def command(self, text, seconds=600):
        """Has the crowd do something, and returns what it says when it is done."""
        give_up = time.monotonic() + seconds * SLOW
        fd = self.clients.stdout.fileno()
        try:
            self.clients.stdin.write(text.encode() + b"\n")
            self.clients.stdin.flush()
            while b"\n" not in self.unread:
                left = give_up - time.monotonic()
                if left <= 0 or not select.select([fd], [], [], left)[0]:
                    raise Failed(f"the clients did not {text!r} within {seconds * SLOW} s")
                chunk = os.read(fd, 4096)
                if not chunk:
                    raise BrokenPipeError
                self.unread += chunk
        except BrokenPipeError:
            status = self.clients.wait(10)
            raise Failed(f"the clients ended with {status} at {text!r}\n{self.said()}") from None
        line, self.unread = self.unread.split(b"\n", 1)
        return json.loads(line)

    def said(self):
        """The end of what the clients said, and of what the server did."""
        path = f"{self.scratch}/clients"
        text = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as f:
                text = f.read()[-2000:]
        return text + self.errors()

    def open(self, n):
        """Opens more, until `n` are open and the server says so, too: its handshakes end later."""
        answer = self.command(f"open {n}")

        def all_there():
            memory = self.server.telemetry("/nightjar/memory")
            return memory["tcb_used"] == memory["conn_used"] == n
        until(f"{n} connections at the server", all_there)
        return answer

    def abort(self):
        """Resets all, and waits until the server has forgotten them."""
        answer = self.command("abort")

        def gone():
            memory, stats = self.server.telemetry("/nightjar/memory"), self.server.stats()
            return not any(stats[name] for name in ("connections", "h2_connections", "time_wait")) \
                and not any(n for name, n in memory.items() if name.endswith("_used"))
        until("no connection left at the server", gone, 30)
        return answer

    def close(self):
        if self.clients:
            self.clients.stdin.close()
            try:
                self.clients.wait(10 * SLOW)
            except subprocess.TimeoutExpired:
                self.clients.kill()
            self.clients.stdout.close()
            self.clients = None
        super().close()
