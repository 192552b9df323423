# SPDX-License-Identifier: BSD-3-Clause
"""The builds that tests run on (../dev configures them), and the environment for each."""
import os

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLAIN, SANITIZED, THREADS, RELEASE = "build", "build-asan", "build-tsan", "build-release"

# Options of sanitizers, unless the environment has them. The quarantine for freed blocks is part of
# a server's memory: 64 MiB are enough to detect uses after free.
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=1:quarantine_size_mb=64",
           "UBSAN_OPTIONS": "halt_on_error=1",
           "LSAN_OPTIONS": f"suppressions={REPO}/tests/lsan.supp:print_suppressions=0"}


def environment(build):
    """The environment of a program that tests `build`."""
    env = OPTIONS | dict(os.environ) | {"NJ_BUILD": build}
    env.pop("NJ_SANITIZED", None)
    if build in (SANITIZED, THREADS):
        env["NJ_SANITIZED"] = "1"
    return env
