# SPDX-License-Identifier: BSD-3-Clause
"""An installation prefix for tests: the result of `meson install` of the build in NJ_BUILD."""
import glob
import json
import os
import re
import shutil
import subprocess

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(REPO, os.environ.get("NJ_BUILD", "build"))
EXAMPLES = os.path.join(REPO, "examples")


def run(*command, **more):
    """Runs a command. Returns its standard output."""
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def release():
    """The version in meson.build."""
    with open(os.path.join(BUILD, "meson-info/intro-projectinfo.json"), encoding="utf-8") as f:
        return json.load(f)["version"]


def libdir():
    """The folder of libraries below the prefix: lib/x86_64-linux-gnu."""
    with open(os.path.join(BUILD, "meson-private/nightjar.pc"), encoding="utf-8") as f:
        return re.search(r"(?m)^libdir=\$\{prefix\}/(.*)$", f.read())[1]


def installed_headers():
    """[(header, installed path below the include folder)] of the build's plan."""
    with open(os.path.join(BUILD, "meson-info/intro-install_plan.json"), encoding="utf-8") as f:
        plan = json.load(f)["headers"]
    return [(source, entry["destination"].removeprefix("{includedir}/"))
            for source, entry in plan.items()]


class Prefix:
    """An installation in `folder`. `env` makes pkg-config and the loader find it."""

    def __init__(self, folder):
        self.folder = folder
        self.include = os.path.join(folder, "include")
        self.lib = os.path.join(folder, libdir())
        pkgconfig = os.path.join(self.lib, "pkgconfig")
        os.makedirs(pkgconfig)
        for source, place in installed_headers():
            os.makedirs(os.path.dirname(os.path.join(self.include, place)), exist_ok=True)
            shutil.copy(source, os.path.join(self.include, place))
        for library in glob.glob(os.path.join(BUILD, "lib", "libnightjar.s*[o0-9]")):
            shutil.copy(library, self.lib, follow_symlinks=False)
        for archive in glob.glob(os.path.join(BUILD, "lib/static/libnightjar.a")):
            shutil.copy(archive, self.lib)
        cmake = os.path.join(self.lib, "cmake/nightjar")
        os.makedirs(cmake)
        for path in glob.glob(os.path.join(BUILD, "lib/static/nightjarConfig*.cmake")):
            shutil.copy(path, cmake)
        places = {"prefix": folder, "includedir": self.include, "libdir": self.lib}
        for source in "meson-private/nightjar.pc", "lib/static/nightjar-static.pc":
            if not os.path.exists(os.path.join(BUILD, source)):
                continue
            with open(os.path.join(BUILD, source), encoding="utf-8") as f:
                lines = f.read().splitlines()
            with open(os.path.join(pkgconfig, os.path.basename(source)), "w",
                      encoding="utf-8") as f:
                for line in lines:
                    name = line.partition("=")[0]
                    print(f"{name}={places[name]}" if name in places else line, file=f)
        self.env = os.environ | {"PKG_CONFIG_PATH": pkgconfig, "LD_LIBRARY_PATH": self.lib}

    def flags(self, which, name="nightjar"):
        return run("pkg-config", which, name, env=self.env).split()

    def make_examples(self, folder, **variables):
        """Creates `folder` and builds the examples in it, with these variables of make. Returns the
        output of make."""
        os.makedirs(os.path.join(folder, "tests"))
        for pattern in ("*.[ch]", "*.conf", "Makefile", "tests/*.c"):
            for path in glob.glob(os.path.join(EXAMPLES, pattern)):
                shutil.copy(path, os.path.join(folder, os.path.relpath(path, EXAMPLES)))
        return run("make", "-C", folder, *(f"{name}={value}" for name, value in variables.items()),
                   env=self.env)
