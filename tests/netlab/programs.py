# SPDX-License-Identifier: BSD-3-Clause
"""
The programs of a build that tests and benchmarks start. A module names each with program() when it
is imported, so that ./dev bench knows what to build before it runs one (perf/bench/programs.py).
"""
import os
import sys

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(REPO, os.environ.get("NJ_BUILD", "build"))
_named = {}  # {path below the build folder: path}
_options = {}  # {path below the build folder: the option without which it is not started}


def program(path, build=BUILD, option=None):
    """The path of a program in the build folder. `path` is the name of its target in ninja. It is
    started only with the `option` of the command, if one is given."""
    _named[path] = os.path.join(build, path)
    _options[path] = option
    return _named[path]


def named():
    """The targets of all programs that the imported modules start."""
    return sorted(_named)


def missing():
    """The paths of those that are not built, and that this command starts."""
    return [path for name, path in sorted(_named.items())
            if not os.path.exists(path) and _options.get(name) in (None, *sys.argv)]
