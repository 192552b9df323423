# SPDX-License-Identifier: BSD-3-Clause
"""
Memory of DPDK processes that are measured. On pages of 4 KiB a poller's buffers are more than its
TLB holds, and every figure has those misses in it; so hugepages are used where the machine has some
free, and reserved for the time of a run where that is asked for. reaper.py gives them back.
"""
import re

from tests.netlab.generator import NO_HUGEPAGES
from tests.netlab.reaper import HUGEPAGES, Reaper

PROCESSES, MIB_EACH, SPARE_PAGES = 2, 384, 8


def state():
    """(free ones, MiB of one)"""
    with open("/proc/meminfo", encoding="ascii") as f:
        found = dict(re.findall(r"^(\w+): +(\d+)", f.read(), re.M))
    free = int(found.get("HugePages_Free", 0)) - int(found.get("HugePages_Rsvd", 0))
    return free, int(found.get("Hugepagesize", 2048)) >> 10


def add(n):
    """Asks the kernel for more of them; it may have fewer."""
    with open(HUGEPAGES, encoding="ascii") as f:
        wanted = int(f.read()) + n
    with open(HUGEPAGES, "w", encoding="ascii") as f:
        f.write(str(wanted))


class Memory:
    """
    Decides on it, for as long as it is not closed.

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
            self.reaper.will_make("hugepages", got - n)  # there is less to be given back

    def facts(self):
        return {"hugepages": self.huge, "text": self.text}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.reaper.finish()
