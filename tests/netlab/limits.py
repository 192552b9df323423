# SPDX-License-Identifier: BSD-3-Clause
"""
How long a test waits for an event. There is one limit. It is generous, because only a test that
fails waits for it, and longer on a machine that is slow or busy.
"""
import os
import time

SECONDS = 120
FACTOR_MAX = 8
QUIET_SECONDS = 0.035  # what work() takes on a quiet machine
_factor = 2.0 if os.environ.get("NJ_SANITIZED") == "1" else 1.0
_slowness = 1.0


def work():
    n = 0
    for i in range(500_000):
        n ^= i
    return n


def calibrate():
    """
    Measures how slow this machine is now. Called before each class of tests.
    """
    global _slowness
    began = time.monotonic()
    work()
    _slowness = min(max((time.monotonic() - began) / QUIET_SECONDS, 1.0), FACTOR_MAX)


def time_limit(seconds=SECONDS):
    """The limit of a wait, in seconds of this machine."""
    return seconds * _factor * _slowness
