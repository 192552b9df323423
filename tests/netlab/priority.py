# SPDX-License-Identifier: BSD-3-Clause
"""For measurements on a machine that has other work, which would otherwise be in every figure."""
import errno
import os

from tests.netlab.reaper import pids_in


def first(pid="self"):
    """
    This process goes before the machine's other work. A nice value alone counts within a session
    only (sched(7), "The autogroup feature"); sessions among each other have one of their own.
    """
    os.setpriority(os.PRIO_PROCESS, 0 if pid == "self" else pid, -20)
    try:
        with open(f"/proc/{pid}/autogroup", "wb", buffering=0) as f:
            f.write(b"-20")
    except FileNotFoundError:  # a kernel without it
        pass
    except OSError as e:
        if e.errno != errno.EINVAL:  # of no session's group, as a thread is while it ends
            raise


def first_of(namespace):
    """first(), for all threads of the processes in there."""
    for pid in pids_in(namespace):
        first_of_threads(pid)


def first_of_threads(pid):
    """first(), for each; threads may end meanwhile."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return
    for thread in threads:
        try:
            first(int(thread))
        except ProcessLookupError:
            pass


# For subprocess.Popen: a session of its own, which goes first.
FIRST = {"start_new_session": True, "preexec_fn": first}
