# SPDX-License-Identifier: BSD-3-Clause
"""Files of a system in which systemd starts nightjar.service and instances of nightjar@.service."""
import glob
import os
import re
import shutil

from tests.netlab.world import BUILD, REPO, server_path

SYSTEMD = "/lib/systemd/systemd"
SCRIPT = os.path.join(REPO, "tests/e2e/systemd.sh")
UID = 990
FILES = {
    "etc/passwd": f"root:x:0:0::/:/bin/sh\nnightjar:x:{UID}:{UID}::/:/bin/sh\n",
    "etc/group": f"root:x:0:\nnightjar:x:{UID}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\n",
    "etc/machine-id": "",
    "etc/nightjar/nightjar.conf": "",
} | {f"etc/systemd/system/{name}.target": "[Unit]\nDefaultDependencies=no\n"
     for name in ("basic", "exit", "network", "shutdown", "sysinit", "umount")}


def write_files(folder, eal, options, files, settings):
    """
    Writes to `folder` the program in /opt/nightjar, the units, whose [Service] gets `settings`, and
    `files` ({path: text}). Standard error of the units goes to /run/errors.
    """
    units = {}
    settings = settings | {"Environment": "LD_LIBRARY_PATH=/opt/nightjar",
                           "StandardError": "append:/run/errors"}
    for unit in "nightjar.service", "nightjar@.service":
        with open(f"{BUILD}/systemd/{unit}", encoding="utf-8") as f:
            text = f.read()
        program = re.search(r"^ExecStart=(\S+)", text, re.M)[1]
        units[f"etc/systemd/system/{unit}"] = text.replace(program, "/opt/nightjar/nightjar")
        units[f"etc/systemd/system/{unit}.d/more.conf"] = "[Service]\n" + "".join(
            f"{key}={value}\n" for key, value in settings.items())
    defaults = f'NIGHTJAR_EAL="{eal}"\nNIGHTJAR_OPTIONS="{options}"\n'
    for path, text in (FILES | units | files | {"etc/default/nightjar": defaults}).items():
        os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
        with open(f"{folder}/{path}", "w", encoding="utf-8") as f:
            f.write(text)
    os.makedirs(f"{folder}/opt/nightjar")
    for path in server_path(), f"{server_path()}-ctl", *glob.glob(f"{BUILD}/lib/libnightjar.so.?"):
        shutil.copy(path, f"{folder}/opt/nightjar")


def enter(pid):
    """The beginning of a command that runs in the namespaces of systemd, whose first process is
    `pid`."""
    return ("nsenter", "-t", str(pid), "-m", "-p", "-n", "-C", "-i", "-u", "-r", "-w")
