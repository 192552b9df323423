# SPDX-License-Identifier: BSD-3-Clause
"""
Memory of the DPDK processes in a benchmark. With pages of 4 KiB the buffers of a polling lcore
exceed its TLB, and every figure includes the TLB misses. So a benchmark uses hugepages if the
machine has enough free ones, and reserves them for the run with --hugepages. reaper.py releases
them.
"""
import re

from tests.netlab.generator import NO_HUGEPAGES
from tests.netlab.reaper import HUGEPAGES, Reaper

PROCESSES, MIB_EACH, SPARE_PAGES = 2, 384, 8


def state():
    """(free hugepages, MiB of one)"""
    with open("/proc/meminfo", encoding="ascii") as f:
        found = dict(re.findall(r"^(\w+): +(\d+)", f.read(), re.M))
    free = int(found.get("HugePages_Free", 0)) - int(found.get("HugePages_Rsvd", 0))
    return free, int(found.get("Hugepagesize", 2048)) >> 10


def add(n):
    """Requests more hugepages from the kernel, which may provide fewer."""
    with open(HUGEPAGES, encoding="ascii") as f:
        wanted = int(f.read()) + n
    with open(HUGEPAGES, "w", encoding="ascii") as f:
        f.write(str(wanted))


class Memory:
    """
    Selects the kind of pages until it is closed.

        with Memory(reserve=True) as memory:
            memory.eal   # arguments of each process
            memory.huge, memory.text
    """

    def __init__(self, reserve=False):
        self.reaper = Reaper()
        free, mib = state()
        n = PROCESSES * MIB_EACH // mib + SPARE_PAGES
        missing = n - free
        if reserve and missing > 0:
            self.reserve(missing)
            free = state()[0]
        self.huge = free >= n
        if self.huge:
            self.eal = ("--in-memory", "--single-file-segments", "-m", str(MIB_EACH))
            self.text = f"hugepages of {mib} MiB"
        else:
            self.eal = NO_HUGEPAGES
            self.text = (f"pages of 4 KiB, whose TLB misses are in every figure: {n} hugepages are "
                         f"needed and {free} are free" +
                         ("" if reserve else "; --hugepages reserves them for the run"))

    def reserve(self, n):
        self.reaper.will_make("hugepages", n)
        before = state()[0]
        add(n)
        got = state()[0] - before
        if got < n:
            self.reaper.will_make("hugepages", got - n)  # fewer hugepages to release

    def facts(self):
        return {"hugepages": self.huge, "text": self.text}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.reaper.finish()
