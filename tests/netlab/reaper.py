# SPDX-License-Identifier: BSD-3-Clause
"""
Removes the system resources of a run: network namespaces with all their processes (including taps
and servers), cgroups with theirs, folders, DPDK's runtime folders, and reserved hugepages.

The owner starts this program with a pipe as standard input, and writes a line for each resource
*before* it creates the resource. When the owner closes the pipe or dies, this program removes the
resources. There is no other code for cleanup: an orderly shutdown only closes the pipe.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

NETNS = "/run/netns"
DPDK_RUNTIME = "/var/run/dpdk"
HUGEPAGES = "/proc/sys/vm/nr_hugepages"
DPDK_RUNTIME_OF_USERS = "/tmp/dpdk"
RUN = "/run"
OURS = re.compile(r"^(?:njrun|njt)-(\d+)")


def pids_in(namespace):
    out = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True)
    return [int(pid) for pid in out.stdout.split()]


def name_of(pid):
    """The name of a process or thread. It is empty if that has ended."""
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def drop_namespace(namespace, seconds=10):
    """Kills all processes in the namespace, which keep it alive, and deletes its name."""
    if not os.path.exists(f"{NETNS}/{namespace}"):
        return
    give_up = time.monotonic() + seconds
    while (pids := pids_in(namespace)) and time.monotonic() < give_up:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
    subprocess.run(["ip", "netns", "del", namespace], stderr=subprocess.DEVNULL)


def drop_cgroup(path, seconds=10):
    """Kills all processes of the cgroup and those below it, and removes them."""
    if not os.path.isdir(path):
        return
    with open(f"{path}/cgroup.kill", "w", encoding="ascii") as f:
        f.write("1")
    give_up = time.monotonic() + seconds
    while os.path.isdir(path) and time.monotonic() < give_up:
        for folder, _, _ in os.walk(path, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:  # a process has not ended yet
                time.sleep(0.02)


def drop_folder(path):
    shutil.rmtree(path, ignore_errors=True)


def drop_prefix(name):
    drop_folder(f"{DPDK_RUNTIME}/{name}")
    drop_folder(f"{DPDK_RUNTIME_OF_USERS}/{name}")


def drop_hugepages(n):
    """Reduces the number of reserved hugepages by `n`, which keeps reservations of other programs.
    The kernel frees a page in use after its last use."""
    if int(n) <= 0:
        return
    with open(HUGEPAGES, encoding="ascii") as f:
        left = max(0, int(f.read()) - int(n))
    with open(HUGEPAGES, "w", encoding="ascii") as f:
        f.write(str(left))


DROP = {
    "hugepages": drop_hugepages,
    "cgroup": drop_cgroup,
    "namespace": drop_namespace,
    "folder": drop_folder,
    "prefix": drop_prefix,
}


def sweep():
    """Removes resources of earlier runs whose reaper was killed. Names have the owner's PID."""
    for folder, kind in ((NETNS, "namespace"), (DPDK_RUNTIME, "prefix"), (RUN, "folder")):
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            owner = OURS.match(name)
            if owner and not os.path.exists(f"/proc/{owner.group(1)}"):
                DROP[kind](f"{RUN}/{name}" if kind == "folder" else name)


class Reaper:
    """The owner's end of the pipe."""

    def __init__(self):
        sweep()
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__)], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, start_new_session=True, text=True)

    def will_make(self, kind, name):
        assert kind in DROP
        print(kind, name, file=self.process.stdin, flush=True)

    def finish(self, seconds=20):
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.process.wait(seconds)


def main():
    # This program outlives the owner, so it ignores signals that end the owner.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    todo = [line.rstrip("\n").split(" ", 1) for line in sys.stdin]
    # Processes first, then their files.
    todo.sort(key=lambda item: item[0] not in ("cgroup", "namespace"))
    for kind, name in todo:
        if kind != "hugepages":
            DROP[kind](name)
    drop_hugepages(sum(int(n) for kind, n in todo if kind == "hugepages"))


if __name__ == "__main__":
    main()
