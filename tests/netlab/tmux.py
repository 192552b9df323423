# SPDX-License-Identifier: BSD-3-Clause
"""A server of tmux that ends with the test."""
import os
import signal
import subprocess

from tests.netlab.ended import ended_by_parent
from tests.netlab.world import until


def tmux_server(path):
    """Starts one at that socket. It is a child, not a daemon, and ends with its parent, and the
    programs in its terminals with it. Returns the function that ends it."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("TMUX")} | {"LC_ALL": "C.UTF-8"}
    server = subprocess.Popen(["tmux", "-S", path, "-f", "/dev/null", "-D"], env=environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL,
                              preexec_fn=lambda: ended_by_parent(signal.SIGKILL))

    def end():
        server.kill()
        server.wait()
    until("tmux listens", lambda: os.path.exists(path))
    return end
