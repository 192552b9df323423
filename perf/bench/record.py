# SPDX-License-Identifier: BSD-3-Clause
"""
The results of a run as JSON, with the machine and the command. page.py makes the page of it.

    run = record.begin("serve")             # at the start: machine, commit, versions, command
    run.row("16x32", values, link="memif")  # values: one {name: number} per round
    run.write(args.json, rounds=5)

    {"bench": "serve", "machine": {...}, "commit": {...}, "versions": {...}, "command": [...],
     "date": ..., "rounds": 5, "rows": [{"shape": "16x32", "peer": "nightjar", "link": "memif",
      "values": {"ns": {"median": ..., "min": ..., "max": ..., "runs": [...]}, ...}}]}

A row may have further keys for facts about all its rounds, like "client_limited".
"""
import datetime
import fnmatch
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys

from tests.netlab import programs

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KEYS = ("bench", "machine", "commit", "versions", "command", "date", "rounds", "rows")
# Files that a run writes itself do not count as changes of the sources.
NOT_SOURCES = (":!perf/results", ":!docs/performance", ":!docs/performance.md")
INTERRUPTED = 128 + signal.SIGINT


def program(path, option=None):
    """The path of a program in the build folder NJ_BUILD; by default that of the release. To be
    called when a module is imported: ./dev bench builds the program, and run_main() looks for it
    before the first measurement. `option`: of the command, without which it is not started."""
    return programs.program(path, os.path.join(REPO, os.environ.get("NJ_BUILD", "build-release")),
                            option)


def said_by(*command):
    """The first line that a command prints, or an empty string if it cannot run."""
    try:
        done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, timeout=20)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().split("\n")[0] if done.returncode == 0 else ""


def caller_path(path):
    """`path` relative to the caller's folder; ./dev itself changes to the repository."""
    return os.path.join(os.environ.get("NJ_CALLER", "."), path)


def dump(path, found):
    """Write the results of a benchmark without rounds to the file of --json."""
    with open(caller_path(path), "w", encoding="utf-8") as f:
        json.dump(found, f, indent=1)
        f.write("\n")


def chosen(every, patterns):
    """The cells of `every` that a pattern matches. Exits if there is none."""
    found = [c for c in every if any(fnmatch.fnmatch(c, p) for p in patterns)]
    if not found:
        sys.exit(f"bench: no cell is {' or '.join(patterns)}; there are {', '.join(every)}")
    return found


def check_names(parser, names, known, what="shape"):
    for name in names:
        if name not in known:
            parser.error(f"{name}: no such {what}; there are {', '.join(known)}")


def read_text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def machine():
    cpu = read_text("/proc/cpuinfo")
    memory = dict(re.findall(r"^(\w+): +(\d+)", read_text("/proc/meminfo"), re.M))
    model = re.search(r"^model name\s*: (.*)", cpu, re.M)
    system = re.search(r'^PRETTY_NAME="?([^"\n]*)', read_text("/etc/os-release"), re.M)
    return {"cpu": model[1] if model else platform.machine(),
            "cores": len(os.sched_getaffinity(0)), "virtual": " hypervisor" in cpu,
            "memory_bytes": int(memory.get("MemTotal", 0)) << 10,
            "kernel": platform.release(), "system": system[1] if system else "",
            "hugepages": {"reserved": int(memory.get("HugePages_Total", 0)),
                          "free": int(memory.get("HugePages_Free", 0)),
                          "bytes_each": int(memory.get("Hugepagesize", 0)) << 10},
            "load": os.getloadavg()[0]}


def commit():
    """For root, git refuses another user's clone unless safe.directory permits it."""
    git = ("git", "-c", "safe.directory=*")
    return {"id": said_by(*git, "rev-parse", "HEAD"),
            "name": said_by(*git, "describe", "--always", "--abbrev=12"),
            "dirty": bool(said_by(*git, "status", "--porcelain", "-uno", "--", ".",
                                  *NOT_SOURCES))}


def versions():
    found = {"dpdk": said_by("pkg-config", "--modversion", "libdpdk"),
             "gcc": said_by("cc", "-dumpfullversion"),
             "nghttp2": said_by("pkg-config", "--modversion", "libnghttp2")}
    return {name: version or "unknown" for name, version in found.items()}


def facts(bench):
    """The first keys of a run's JSON. `bench` is the word after ./dev bench."""
    return {"bench": bench, "machine": machine(), "commit": commit(), "versions": versions(),
            "command": ["./dev", "bench", bench, *sys.argv[1:]],
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}


def headline(f):
    """Machine and commit, in one line for a terminal."""
    m, c = f["machine"], f["commit"]
    return (f"{m['cpu']}, {m['cores']} CPUs{' (virtual)' if m['virtual'] else ''}, Linux "
            f"{m['kernel']}; commit {c['name'] or 'unknown'}"
            f"{' with changes' if c['dirty'] else ''}; load {m['load']:.1f} at the start")


def summary(runs):
    """{name: {"median", "min", "max", "runs"}} of one {name: number} per round. Rounds in which a
    value is missing or None do not count for that value."""
    names = dict.fromkeys(name for run in runs for name in run)
    found = {}
    for name in names:
        values = [run[name] for run in runs if run.get(name) is not None]
        if values:
            values = [float(f"{v:.6g}") for v in values]
            found[name] = {"median": statistics.median(values), "min": min(values),
                           "max": max(values), "runs": values}
    return found


def compact(value):
    """JSON with each innermost list and object on one line, for readable diffs."""
    text = json.dumps(value, indent=1)
    one_line = lambda m: re.sub(r"\s*\n\s*", " ", m[0])
    text = re.sub(r"\[[^\[\]{}\"]*\]", one_line, text)
    return re.sub(r"\{[^{}]*\}", one_line, text) + "\n"


class Run:
    """Collects the rows of a run's JSON."""

    def __init__(self, bench):
        self.facts, self.rows = facts(bench), []

    def row(self, shape, runs, peer="nightjar", link="memif", **more):
        self.rows.append({"shape": shape, "peer": peer, "link": link, "values": summary(runs),
                          **more})
        return self.rows[-1]

    def write(self, path, rounds, **more):
        with open(caller_path(path), "w", encoding="utf-8") as f:
            f.write(compact({**self.facts, "rounds": rounds, **more, "rows": self.rows}))


def begin(bench):
    return Run(bench)


class Rounds:
    """`for i in rounds:` within `with Rounds(n) as rounds:`. Ctrl-C ends the loop. After a complete
    round the program goes on and reports `n_done` rounds and the completed part of the interrupted
    round; it then exits with `status`."""

    def __init__(self, n):
        self.n, self.n_done, self.status = n, 0, 0

    def __iter__(self):
        for i in range(self.n):
            yield i
            self.n_done = i + 1

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None or not issubclass(kind, KeyboardInterrupt) or self.n_done == 0:
            return False
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the rest of the program is short
        print(f"\r\033[Kinterrupted: this is of {self.n_done} of {self.n} rounds",
              file=sys.stderr)
        self.status = INTERRUPTED
        return True

    def facts(self):
        """The facts about the rounds in a run's JSON."""
        return {"rounds": self.n_done, "interrupted": self.status != 0}


def check_programs(bench):
    """Exits if a program that the benchmark may start is not built."""
    absent = [os.path.relpath(path, REPO) for path in programs.missing()]
    if absent:
        sys.exit(f"{bench}: not built: {', '.join(absent)}. ./dev {bench} builds "
                 f"{'it' if len(absent) == 1 else 'them'}")


def run_main(bench, main, *failures):
    """Run main() of a benchmark and exit with its status. A failure or Ctrl-C is one line."""
    if not {"-h", "--help"} & set(sys.argv[1:]):
        check_programs(bench)
    try:
        sys.exit(main())
    except (*failures, FileNotFoundError) as failure:  # the latter: of a package
        sys.exit(f"{bench}: {failure}")
    except KeyboardInterrupt:
        print(f"\n{bench}: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


class Unreadable(Exception):
    """The file is not the JSON of a run; the text describes the reason."""


def read_json(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError) as why:
        raise Unreadable(f"{path}: {why}") from None


def checked(path, run):
    """Returns `run` if it has the keys of a run; raises Unreadable otherwise."""
    missing = [key for key in KEYS if not isinstance(run, dict) or key not in run]
    if missing:
        raise Unreadable(f"{path}: not the --json output of a ./dev bench command: it has no "
                         f"{', '.join(missing)}")
    return run


def read(path):
    return checked(path, read_json(path))
