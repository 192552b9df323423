# SPDX-License-Identifier: BSD-3-Clause
"""Queries ninja and meson about a built program."""
import json
import os
import shlex
import subprocess


def inputs(build, target):
    """All direct and indirect inputs of a target, as paths from the build folder."""
    done = subprocess.run(["ninja", "-C", build, "-t", "inputs", os.path.relpath(target, build)],
                          capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n"))


def commands(build, target):
    """{object: (source, command)} of a target, in the build folder."""
    wanted = inputs(build, target)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        entries = json.load(f)
    return {e["output"]: (os.path.realpath(os.path.join(build, e["file"])),
                          shlex.split(e["command"]))
            for e in entries if e["output"] in wanted}
