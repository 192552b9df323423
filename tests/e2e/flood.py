# SPDX-License-Identifier: BSD-3-Clause
"""A flood of SYNs against a world's server, and a real client in the midst of it."""
import json
import os
import re
import subprocess

from priority import FIRST
from world import BUILD, CLIENT_ADDR, SERVER_ADDR

CLIENT_SECONDS_MAX = 1
# What answers to strangers goes to the client's MAC, as to a router; its kernel throws it away.
OPTIONS = ("--gateway", CLIENT_ADDR)


class Flood:
    """
    nj-synflood, from where the clients live. `rate` per second; 0: what the device takes. It comes
    from elsewhere, as it were, and does not wait for what this machine does besides.
    """

    def __init__(self, world, seconds, rate=0, seed=1):
        mac = world.server_mac().hex(":")
        self.process = world.client_popen(
            os.path.join(BUILD, "perf", "link", "nj-synflood"), "--to", SERVER_ADDR, "--mac", mac,
            "--seconds", str(seconds), "--rate", str(rate), "--seed", str(seed), "nj0",
            stdout=subprocess.PIPE, text=True, **FIRST)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(10)

    def running(self):
        return self.process.poll() is None

    def end(self):
        """{sent, failed, seconds, per_second}"""
        self.process.terminate()
        return json.loads(self.process.communicate(timeout=10)[0])


def visit(world, path="/"):
    """A new connection and one request: (whether it was answered within a second, how long)."""
    done = world.client("curl", "-s", "-o", "/dev/null", "--http2-prior-knowledge", "--max-time",
                        str(CLIENT_SECONDS_MAX), "-w", "%{http_code} %{time_total}",
                        world.url(path), **FIRST)
    status, seconds = done.stdout.split()
    return done.returncode == 0 and status == "200", float(seconds)


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"^VmRSS:\s+(\d+) kB", f.read(), re.M)[1])
