# SPDX-License-Identifier: BSD-3-Clause
"""
Measures the communication delay between the server's CPU and the generator's
(perf/tools/link/apart.c). It determines the cost of packets between them: 200 KiB took 40 us or 150
us on one machine. The host moves the CPUs of a virtual machine, so the delay differs between runs.
near() repeats a run until the CPUs are near each other, if possible:

    values = near(lambda: pair.measure(...))
    values["apart_ns"], values["apart_before"]      # at the end of the run; runs discarded
"""
import os
import subprocess
import time

from tests.netlab.priority import FIRST
from tests.netlab.programs import program
from tests.netlab.world import Failed

APART, STALLS = program("perf/tools/link/nj-apart"), program("perf/tools/link/nj-stalls")
NEAR_NS = 150  # a round trip of a cache line: 50 to 100 within a shared cache, beyond it 200 to 600
TRIES = 4
WAIT_SECONDS, LOOKS = 0.2, 10  # limit of the wait for near CPUs before a run


def ask(path, *arguments):
    """Output of a program for this process's first and last CPU, at a server's priority."""
    mine = sorted(os.sched_getaffinity(0))
    done = subprocess.run([path, str(mine[0]), str(mine[-1]),
                           *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          **FIRST)
    if done.returncode:
        raise Failed(f"{os.path.basename(path)}: {done.stderr.strip()}")
    return done.stdout


def apart():
    """Nanoseconds of a round trip between the two CPUs."""
    return int(ask(APART))


def floor(seconds):
    """p99.9 of the delay that the stalls of a polling CPU cause, of the worse of the two CPUs, in
    ns (perf/tools/link/stalls.c). Both CPUs must be idle otherwise."""
    return max(int(line.split()[0]) for line in ask(STALLS, seconds).splitlines())


def come_near():
    for _ in range(LOOKS):
        if apart() < NEAR_NS:
            return True
        time.sleep(WAIT_SECONDS)
    return False


def near(run):
    """The values of run() and the two keys above. Repeats run() if the CPUs were near at its begin
    and distant at its end. The last attempt counts in any case."""
    for i in range(TRIES):
        hope = come_near()  # otherwise they are always distant, such as on two sockets
        values = run()
        values["apart_ns"], values["apart_before"] = apart(), i
        if values["apart_ns"] < NEAR_NS or not hope:
            break
    return values


def summary(all_runs):
    """A line about the runs of a table, which has a list of them for each row."""
    runs = [run for some in all_runs for run in some]
    if not runs:
        return ""
    far = sum(run["apart_ns"] >= NEAR_NS for run in runs)
    return (f"between the two CPUs and back: {min(run['apart_ns'] for run in runs)} to "
            f"{max(run['apart_ns'] for run in runs)} ns; "
            f"{sum(run['apart_before'] for run in runs)} runs with a round trip of more than "
            f"{NEAR_NS} ns were discarded" +
            (f", {far} such runs are included after the last attempt" if far else ""))
