# SPDX-License-Identifier: BSD-3-Clause
"""
A load that competes with tests for the machine: a process per CPU that computes, one that takes
and frees memory, and one that stops the threads of a CPU for 50 ms at random times. For the last
one a thread with real-time priority takes the CPU: to the server it looks as if its lcore stood
still, as on a host whose hypervisor gives the CPU to somebody else.
"""
import contextlib
import mmap
import os
import random
import signal
import subprocess
import sys
import time

from tests.netlab.ended import ended_by_parent
from tests.netlab.world import Failed

HOGS_PER_CPU = 1
STOP_SECONDS = 0.05
PAUSE_SECONDS_MAX = 1.0  # between two stops
FREE_BYTES = 4 << 30     # that memory pressure leaves
PIECE = 64 << 20


def hog(cpu):
    os.sched_setaffinity(0, {cpu})
    n = 0
    while True:
        n += 1


def stop(seed):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    rng, cpus = random.Random(seed), sorted(os.sched_getaffinity(0))
    while True:
        os.sched_setaffinity(0, {rng.choice(cpus)})
        end = time.monotonic() + STOP_SECONDS
        while time.monotonic() < end:
            pass
        time.sleep(rng.uniform(0, PAUSE_SECONDS_MAX))


def available():
    with open("/proc/meminfo", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("MemAvailable")) << 10


def press():
    """Takes memory up to FREE_BYTES, touches each page, frees it, and begins again."""
    while True:
        pieces = []
        while available() > FREE_BYTES + PIECE:
            piece = mmap.mmap(-1, PIECE)
            for at in range(0, PIECE, 4096):
                piece[at] = 1
            pieces.append(piece)
        time.sleep(1)
        for piece in pieces:
            piece.close()
        time.sleep(1)


@contextlib.contextmanager
def competing(seed):
    """The load runs within the block. Its processes end with this process, however that ends."""
    cpus = sorted(os.sched_getaffinity(0))
    todo = [*(("hog", cpu) for cpu in cpus for _ in range(HOGS_PER_CPU)), ("stop", seed),
            ("press",)]
    processes = [subprocess.Popen([sys.executable, "-m", "tests.e2e.load", str(os.getpid()),
                                   *map(str, words)], stdin=subprocess.DEVNULL,
                                  start_new_session=True) for words in todo]  # as the servers
    try:
        yield
        for process, (what, *_) in zip(processes, todo):
            if process.poll() is not None:
                raise Failed(f"the load was not complete: its process {what} ended with "
                             f"{process.returncode}; remove the rows of this run")
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main():
    parent, what, *arguments = sys.argv[1:]
    ended_by_parent(signal.SIGKILL)
    if os.getppid() != int(parent):
        return
    {"hog": hog, "stop": stop, "press": press}[what](*map(int, arguments))


if __name__ == "__main__":
    main()
