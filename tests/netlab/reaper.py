# SPDX-License-Identifier: BSD-3-Clause
"""
Takes away what a run made outside its own memory: namespaces with every process in them (and so the
tap devices and servers), folders, DPDK's runtime folders,
and hugepages that it reserved.

The owner starts this program with a pipe on its standard input and names each thing on it, one
line each, *before* making it. When the pipe ends, the owner is done or dead, however it died, and
the cleaning begins. There is no other cleaning code: an orderly end only closes the pipe.
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


def drop_namespace(namespace, seconds=10):
    """Ends every process inside (the namespace lives as long as they do), then the name."""
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


def drop_folder(path):
    shutil.rmtree(path, ignore_errors=True)


def drop_prefix(name):
    drop_folder(f"{DPDK_RUNTIME}/{name}")
    drop_folder(f"{DPDK_RUNTIME_OF_USERS}/{name}")


def drop_hugepages(n):
    """So many fewer are reserved: those that somebody else has reserved meanwhile stay. What is
    still in use goes when it is not any more."""
    if int(n) <= 0:
        return
    with open(HUGEPAGES, encoding="ascii") as f:
        left = max(0, int(f.read()) - int(n))
    with open(HUGEPAGES, "w", encoding="ascii") as f:
        f.write(str(left))


DROP = {
    "hugepages": drop_hugepages,
    "namespace": drop_namespace,
    "folder": drop_folder,
    "prefix": drop_prefix,
}


def sweep():
    """Clears what earlier runs left whose reaper was killed, too. Names carry the owner's pid."""
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
    # Signals meant for the owner reach the whole terminal group; this program outlives them.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    todo = [line.rstrip("\n").split(" ", 1) for line in sys.stdin]
    todo.sort(key=lambda item: item[0] != "namespace")  # processes end before their files go
    for kind, name in todo:
        if kind != "hugepages":
            DROP[kind](name)
    drop_hugepages(sum(int(n) for kind, n in todo if kind == "hugepages"))


if __name__ == "__main__":
    main()
