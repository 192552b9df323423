# SPDX-License-Identifier: BSD-3-Clause
"""How a program that runs tests ends when a signal ends it: SIGTERM, or SIGINT by Ctrl-C."""
import signal
import sys


class Ended(KeyboardInterrupt):
    """By SIGTERM. unittest takes SystemExit for a test that failed, and goes on."""


def ended(*_):
    """The handler of SIGTERM."""
    raise Ended


def exit_with(main):
    """Exits with what main() returns, or, as shells do, with 128 and the number of the signal."""
    try:
        sys.exit(main())
    except KeyboardInterrupt as why:
        sys.exit(128 + (signal.SIGTERM if isinstance(why, Ended) else signal.SIGINT))
