# SPDX-License-Identifier: BSD-3-Clause
"""Priority of measured processes over other processes of the machine."""
import errno
import os

from tests.netlab.reaper import pids_in


def first(pid="self"):
    """
    Gives a process or thread the lowest nice value. A nice value is relative to other threads of
    the autogroup only (sched(7), "The autogroup feature"), so the autogroup gets the lowest value,
    too. Does nothing if NJ_NO_PRIORITY is set: other tests run at the same time.
    """
    if "NJ_NO_PRIORITY" in os.environ:
        return
    os.setpriority(os.PRIO_PROCESS, 0 if pid == "self" else pid, -20)
    try:
        with open(f"/proc/{pid}/autogroup", "wb", buffering=0) as f:
            f.write(b"-20")
    except FileNotFoundError:  # a kernel without autogroups
        pass
    except OSError as e:
        if e.errno != errno.EINVAL:  # no autogroup: the thread is ending
            raise


def first_of(namespace):
    """first() for all threads of the processes in a namespace."""
    for pid in pids_in(namespace):
        first_of_threads(pid)


def first_of_threads(pid):
    """first() for all threads of a process. Threads may end at any time."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return
    for thread in threads:
        try:
            first(int(thread))
        except ProcessLookupError:
            pass


# For subprocess.Popen: a new session with this priority.
FIRST = {"start_new_session": True, "preexec_fn": first}
