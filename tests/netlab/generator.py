# SPDX-License-Identifier: BSD-3-Clause
"""
A server and nightjar-load (perf/tools/load) on a memif link, without a kernel between them. The
rings of the link have their own memory, so neither process needs hugepages.

    with Pair(options=["--root", folder]) as pair:
        found = pair.load("-c", 16, "-m", 32, "-d", "2s", urls=["/index.html"])
        found["requests_per_second"], found["latency_ns"]["p99"]
"""
import json
import re
import subprocess

from tests.netlab.limits import SECONDS, time_limit
from tests.netlab.programs import program
from tests.netlab.world import CLIENT_ADDR, PREFIX_BITS, SERVER_ADDR, Failed, World, lcore_args

PROGRAM = program("perf/tools/load/nightjar-load")
NO_HUGEPAGES = ("--no-huge", "-m", "512")
# {field of /proc/PID/smaps_rollup, in KiB: our name}
SMAPS = {"Rss": "rss", "Pss": "pss", "Pss_Anon": "anonymous", "Pss_Shmem": "shared_memory",
         "Private_Hugetlb": "hugepages", "AnonHugePages": "transparent_hugepages"}


def command(device, prefix, options, urls, lcores=1, addresses=(CLIENT_ADDR,),
            memory=NO_HUGEPAGES, scheme="http"):
    """
    The command of nightjar-load, on other CPUs than the server if there are enough. `device`: the
    EAL argument for its port.
    """
    own = [word for a in addresses for word in ("--addr", f"{a}/{PREFIX_BITS}")]
    return [PROGRAM, "--no-pci", "--no-shconf", *memory, device,
            *lcore_args(lcores, from_last=True), "--file-prefix", prefix, "--", *own,
            "--json", "-", *map(str, options), f"{scheme}://{SERVER_ADDR}{urls[0]}", *urls[1:]]


def finish(process, seconds=SECONDS):
    """Waits for the end of nightjar-load. Returns its result, which is JSON."""
    try:
        out, err = process.communicate(timeout=time_limit(seconds))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Failed(f"nightjar-load did not end within {time_limit(seconds):.0f} s") from None
    if process.returncode:
        raise Failed(f"nightjar-load ended with {process.returncode}: {err.strip()[-800:]}")
    return json.loads(out)


class Memif(World):
    """A server whose port is one end of a memif link. `prefix`: the other end's EAL file prefix."""

    def __init__(self, lcores=1, options=(), program="nightjar", memory=NO_HUGEPAGES):
        super().__init__("null", lcores=lcores, options=options, program=program)
        self.eal_memory = memory
        self.eal = ["--no-pci", "--no-shconf", *memory, self.device("server"), *lcore_args(lcores)]
        self.prefix = self.name + "c"

    def device(self, role):
        return f"--vdev=net_memif0,role={role},socket={self.scratch}/memif,socket-abstract=no"

    def start(self):
        super().start()
        self.reaper.will_make("prefix", self.prefix)

    def memory(self):
        """{kind of memory: bytes} of the server's process."""
        with open(f"/proc/{self.server.process.pid}/smaps_rollup", encoding="ascii") as f:
            found = dict(re.findall(r"^(\w+): +(\d+) kB", f.read(), re.M))
        return {name: int(found[field]) << 10 for field, name in SMAPS.items()}


class Pair(Memif):
    priority = {}  # of nightjar-load: arguments of Popen

    def load_popen(self, *options, urls, lcores=1, addresses=(CLIENT_ADDR,)):
        return self.client_popen(
            *command(self.device("client"), self.prefix, options, urls, lcores, addresses,
                     self.eal_memory, self.scheme),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            **self.priority)

    def load(self, *options, urls, seconds=SECONDS, **more):
        return finish(self.load_popen(*options, urls=urls, **more), seconds)
