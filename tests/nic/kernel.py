# SPDX-License-Identifier: BSD-3-Clause
"""
Debian's kernel for virtual machines, which guests boot. apt downloads and verifies the package. It
is unpacked into a cache folder and not installed, so the host does not change. Guests boot the
newest kernel of the cache: delete the folder to download a newer one.
"""
import glob
import os
import re
import subprocess

from tests.netlab.world import Failed

CACHE = os.environ.get("NJ_GUEST_KERNELS", "/var/cache/nightjar/kernels")
META_PACKAGE = "linux-image-cloud-amd64"  # it depends on the newest kernel
APT_OPTIONS = ("-q", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20",
               "-o", "Acquire::Retries=1")
COMMAND_SECONDS_MAX = 120


class Missing(Failed):
    """The host lacks what a guest needs."""


def run(*command, folder=None):
    """Runs a command of apt or dpkg, which ends with this process. Returns its output."""
    words = " ".join(command)
    try:
        done = subprocess.run(["setpriv", "--pdeathsig", "KILL", *command], cwd=folder,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=COMMAND_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        raise Missing(f"no kernel for the guest: not within {COMMAND_SECONDS_MAX} s: "
                      f"{words}") from None
    if done.returncode:
        raise Missing(f"no kernel for the guest: {words}: {done.stderr.strip()[-1000:]}")
    return done.stdout


def package_name():
    """The name of the kernel's package. Updates the lists of apt if they do not have it."""
    for prepare in (), ("apt-get", "update", *APT_OPTIONS):
        if prepare:
            run(*prepare)
        found = re.search(r"^ *Depends: (linux-image-\S+)$",
                          run("apt-cache", "depends", META_PACKAGE), re.M)
        if found:
            return found[1]
    raise Missing(f"no kernel for the guest: apt knows no package {META_PACKAGE}")


def download(reaper):
    name = package_name()
    folder = f"{CACHE}/.new-{os.getpid()}"
    reaper.will_make("folder", folder)
    os.makedirs(folder)
    os.chmod(folder, 0o777)  # apt downloads as another user
    run("apt-get", "download", *APT_OPTIONS, name, folder=folder)
    [archive] = glob.glob(f"{folder}/*.deb")
    run("dpkg-deb", "--extract", archive, f"{folder}/root")
    if not cached():  # another run may have downloaded it
        os.rename(f"{folder}/root", f"{CACHE}/{name}")


def cached():
    folders = [path for path in glob.glob(f"{CACHE}/*") if glob.glob(f"{path}/boot/vmlinuz-*")]
    return max(folders, key=os.path.getmtime, default=None)


def kernel(reaper):
    """(path of the kernel, folder of its modules)"""
    if not cached():
        download(reaper)
    folder = cached()
    if not folder:
        raise Missing(f"no kernel for the guest: the package unpacked in {CACHE} has none")
    [image] = glob.glob(f"{folder}/boot/vmlinuz-*")
    [modules] = glob.glob(f"{folder}/lib/modules/*") or glob.glob(f"{folder}/usr/lib/modules/*")
    return image, modules
