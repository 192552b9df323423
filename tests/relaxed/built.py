# SPDX-License-Identifier: BSD-3-Clause
"""What ninja and meson say about a program that they built."""
import json
import os
import shlex
import subprocess


def inputs(build, target):
    """Everything that goes into a target, directly or not, as paths from the build folder."""
    done = subprocess.run(["ninja", "-C", build, "-t", "inputs", os.path.relpath(target, build)],
                          capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n"))


def commands(build, target):
    """{object: (source, command)} of what is compiled for a target, in the build folder."""
    wanted = inputs(build, target)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        entries = json.load(f)
    return {e["output"]: (os.path.realpath(os.path.join(build, e["file"])),
                          shlex.split(e["command"]))
            for e in entries if e["output"] in wanted}
