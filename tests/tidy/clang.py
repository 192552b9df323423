# SPDX-License-Identifier: BSD-3-Clause
"""
Compiles with clang what `./dev fuzz` compiles, with the options that gcc has in the build folder.
gcc accepts an empty format, some incomplete initializers, and C11 atomics on any object, so without
this the fuzz targets can only be built by chance. Where ccache is installed, it has the result of
files that have not changed.
"""
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile

FOLDERS = ("lib/", "perf/tools/load/", "tests/fuzz/", "tests/support/")
WITH_VALUE = ("-o", "-MF", "-MQ")  # of the object and its list of dependencies


def options_of(command):
    """The options of gcc's command line without those that name its files."""
    words = shlex.split(command)
    words = words[next(i for i, word in enumerate(words) if word.startswith("-")):-1]
    return [word for before, word in zip(["", *words], words)
            if before not in WITH_VALUE and word not in (*WITH_VALUE, "-MD", "-c")]


def compile_file(path, folder, options):
    """The (path, line, text) of each error. `path` is relative to `folder`."""
    with tempfile.TemporaryDirectory() as out:
        command = ["clang", *options, "-O0", "-g0", path]
        if shutil.which("ccache"):
            command = ["ccache", *command, "-c", "-o", os.path.join(out, "a.o")]
        else:
            command.append("-fsyntax-only")
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    errors = re.findall(r"^(\S+?):(\d+):\d+: (?:fatal )?error: (.*)$", done.stderr, re.M)
    if done.returncode and not errors:
        errors = [(path, 1, done.stderr.strip()[:200])]
    return [(os.path.normpath(os.path.join(folder, file)), line, text)
            for file, line, text in errors]


def errors_of(repo, build):
    """The same for all files of the folder `build`, with paths relative to `repo`."""
    folder = os.path.join(repo, build)
    with open(os.path.join(folder, "compile_commands.json")) as f:
        commands = json.load(f)
    options = {}
    for command in commands:
        path = os.path.relpath(os.path.join(folder, command["file"]), repo)
        if path.startswith(FOLDERS) and path.endswith(".c"):
            options.setdefault(command["file"], options_of(command["command"]))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda item: compile_file(item[0], folder, item[1]), options.items())
        return sorted({(os.path.relpath(file, repo), line, text)
                       for errors in found for file, line, text in errors})
