# SPDX-License-Identifier: BSD-3-Clause
"""The end of a program that runs tests by SIGTERM, by SIGINT (Ctrl-C), or with its parent."""
import ctypes
import signal
import sys


class Ended(KeyboardInterrupt):
    """SIGTERM ended the run. With SystemExit unittest would count a failure and continue."""


def ended(*_):
    """The handler of SIGTERM."""
    raise Ended


PR_SET_PDEATHSIG = 1


def ended_by_parent(number):
    """From here on this process gets the signal when its parent ends, even by SIGKILL."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(number))


def exit_with(main):
    """Exits with the status of main() or, as shells do, with 128 + the number of the signal."""
    try:
        sys.exit(main())
    except KeyboardInterrupt as why:
        sys.exit(128 + (signal.SIGTERM if isinstance(why, Ended) else signal.SIGINT))
