# SPDX-License-Identifier: BSD-3-Clause
"""./dev bench exchange: runs nj-exchange; --json writes its figures in the form of record.py."""
import json
import os
import statistics
import subprocess
import sys
import tempfile

from perf.bench import record
from perf.bench.guard import PROGRAM


def per_request(cost):
    return cost["cycles"] / cost["requests"]


def figures(cost, hz):
    """The figures of one round of one thread alone."""
    cycles, n, measured = per_request(cost), cost["requests"], sum(cost["stages"].values())
    found = {"cycles": cycles, "ns": cycles / hz * 1e9, "full": hz / cycles,
             "rx_packets": cost["rx_packets"] / n, "tx_packets": cost["tx_packets"] / n}
    return found | {stage: found["ns"] * part / measured if measured else 0
                    for stage, part in cost["stages"].items()}


def against_one(threads):
    """[cycles per request with the other lcore busy / alone], of each thread and round. A round has
    one run alone per thread, and as many runs of all threads together as there are threads."""
    n = len(threads)
    return [statistics.median(map(per_request, t["together"][i * n:(i + 1) * n]))
            / per_request(alone)
            for t in threads if n > 1 for i, alone in enumerate(t["alone"])]


def least_against_one(threads):
    """The same ratio of the minima of all rounds, of each thread. The minimum excludes rounds in
    which other processes had the CPU. Both minima are of the same number of runs, because a minimum
    of more runs is lower: of the runs together, those directly after the thread's own count."""
    n = len(threads)
    return [min(map(per_request, t["together"][i::n])) / min(map(per_request, t["alone"]))
            for i, t in enumerate(threads) if n > 1]


def rows(found):
    """(shape, values of each round) from the output of nj-exchange --json."""
    for shape, of in found["shapes"].items():
        threads, hz = of["threads"], found["tsc_hz"]
        runs = [figures(cost, hz) for cost in threads[0]["alone"]]
        ratios = [{"against_one": ratio} for ratio in against_one(threads)]
        for ratio, least in zip(ratios, least_against_one(threads)):
            ratio["least_against_one"] = least
        yield shape, [(runs[i] if i < len(runs) else {}) | (ratios[i] if i < len(ratios) else {})
                      for i in range(max(len(runs), len(ratios)))]


def main(arguments):
    if "--json" not in arguments[:-1]:
        return subprocess.run([PROGRAM, *arguments]).returncode
    run = record.begin("exchange")
    at = arguments.index("--json")
    with tempfile.TemporaryDirectory(prefix="nj-exchange-") as scratch:
        path = os.path.join(scratch, "json")
        status = subprocess.run([PROGRAM, *arguments[:at], "--json", path,
                                 *arguments[at + 2:]]).returncode
        if status:
            return status
        with open(path) as f:
            found = json.load(f)
    n_rounds = 0
    for shape, values in rows(found):
        run.row(shape, values, link="none")
        n_rounds = len(found["shapes"][shape]["threads"][0]["alone"])
    run.write(arguments[at + 1], rounds=n_rounds)
    return 0


if __name__ == "__main__":
    record.run_main("bench exchange", lambda: main(sys.argv[1:]))
