# SPDX-License-Identifier: BSD-3-Clause
"""
nj-downloads (perf/tools/downloads): many downloads at a time, and the bytes received per interval.
`nj-downloads --help` lists its options.

    got = Downloads(world, "--downloads", 100, "--hold", 5, paths=["/file"]).end()
    got["payload_bytes"], got.rates(), got.rows
"""
import collections
import csv
import itertools
import json
import os
import select
import subprocess
import time

from tests.netlab.limits import SECONDS, time_limit
from tests.netlab.programs import program
from tests.netlab.world import SERVER_ADDR, Failed

PROGRAM = program("perf/tools/downloads/nj-downloads")
Row = collections.namedtuple("Row", "slot group active asked ttfb total n_bytes status how")
_numbers = itertools.count(1)


class Result(dict):
    """The result of nj-downloads. `rows`: its requests, with times in seconds since `began`; `ttfb`
    is None if no byte was received."""

    def __init__(self, found, rows):
        super().__init__(found)
        self.rows = rows
        self.began = found["began"] / 1e9
        self.window = [at / 1e9 for at in found["window"]]
        self.seconds = self.window[1] - self.window[0]

    def rates(self, group=None, n_groups=1):
        """Bytes per second of each download within the window."""
        return [n / self.seconds for i, n in enumerate(self["window_bytes"])
                if group is None or i % n_groups == group]

    def rate(self, group=None, n_groups=1):
        return sum(self.rates(group, n_groups))

    def bins(self, start, end):
        """The bytes received in each whole bin from `start` to `end` (time.monotonic())."""
        first, last = (max(0, round((at - self.began) * 1e9 / self["bin_ns"]))
                       for at in (start, end))
        return [sum(groups) for groups in zip(*self["bins"])][first:last]

    def between(self, start, end):
        return sum(self.bins(start, end))

    def most_in(self, seconds, start, end):
        """The largest number of bytes received within `seconds`."""
        bins, span = self.bins(start, end), round(seconds * 1e9 / self["bin_ns"])
        return max(sum(bins[i:i + span]) for i in range(max(1, len(bins) - span + 1)))


def read_rows(path):
    rows = []
    with open(path, newline="") as f:
        for slot, group, active, asked, ttfb, total, n_bytes, status, how in csv.reader(f):
            rows.append(Row(int(slot), int(group), int(active), int(asked) / 1e6,
                            None if ttfb == "-1" else int(ttfb) / 1e6, int(total) / 1e6,
                            int(n_bytes), int(status), how))
    return rows


class Downloads:
    """A running nj-downloads in the clients' namespace of `world`."""

    def __init__(self, world, *options, paths, to=SERVER_ADDR, cpu=None, **more):
        self.rows = os.path.join(world.scratch, f"rows{next(_numbers)}")
        self.world, self.unread, self.process = world, b"", None
        paths = [word for path in paths for word in ("--path", path)]
        pinned = ["taskset", "-c", str(cpu)] if cpu is not None else []
        self.process = world.client_popen(*pinned, PROGRAM, *map(str, options), *paths, "--rows",
                                          self.rows, to, stdin=subprocess.DEVNULL,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(time_limit())
        self.process.stdout.close()
        self.process.stderr.close()

    def line(self, seconds):
        give_up = time.monotonic() + time_limit(seconds)
        fd = self.process.stdout.fileno()
        while b"\n" not in self.unread:
            left = give_up - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                self.kill()
                raise Failed(f"no line from nj-downloads within {time_limit(seconds):.0f} s")
            chunk = os.read(fd, 1 << 20)
            if not chunk:
                self.process.wait(time_limit())
                raise Failed(f"nj-downloads ended with {self.process.returncode}: "
                             f"{self.process.stderr.read().decode(errors='replace')[:800]}")
            self.unread += chunk
        line, self.unread = self.unread.split(b"\n", 1)
        return line

    def steady(self, seconds=SECONDS):
        """Waits until the window begins. Returns that time (time.monotonic()), or None if all
        downloads ended before."""
        line = self.line(seconds)
        if line.startswith(b"steady "):
            return int(line.split()[1]) / 1e9
        self.unread = line + b"\n" + self.unread
        return None

    def end(self, seconds=120):
        line = self.line(seconds)
        while not line.startswith(b"{"):
            line = self.line(seconds)
        self.process.wait(time_limit())
        self.kill()
        found = Result(json.loads(line), read_rows(self.rows))
        os.unlink(self.rows)
        return found
