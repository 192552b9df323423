# SPDX-License-Identifier: BSD-3-Clause
"""For measurements on a machine that has other work, which would otherwise be in every figure."""
import os

from reaper import pids_in


def first(pid="self"):
    """
    This process goes before the machine's other work. A nice value alone counts within a session
    only (sched(7), "The autogroup feature"); sessions among each other have one of their own.
    """
    os.setpriority(os.PRIO_PROCESS, 0 if pid == "self" else pid, -20)
    try:
        with open(f"/proc/{pid}/autogroup", "w") as f:
            f.write("-20")
    except FileNotFoundError:  # a kernel without it
        pass


def first_of(namespace):
    """first(), for all threads of the processes in there."""
    for pid in pids_in(namespace):
        for thread in os.listdir(f"/proc/{pid}/task"):
            first(int(thread))


# For subprocess.Popen: a session of its own, which goes first.
FIRST = {"start_new_session": True, "preexec_fn": first}
