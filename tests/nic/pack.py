# SPDX-License-Identifier: BSD-3-Clause
"""
What a guest boots into: an initramfs with busybox, nightjar, the libraries and poll-mode drivers
that it loads, the kernel modules that give it a device, and a site. All programs and libraries
stand where the host has them.
"""
import glob
import lzma
import os
import re
import shutil
import subprocess

from case import fill_site
from world import Failed, server_path

# In the order in which they are loaded. Which of them there are depends on the kernel's version.
MODULES = ("irqbypass", "iommufd", "vfio", "vfio_virqfd", "vfio_iommu_type1", "vfio-pci-core",
           "vfio-pci", "uio", "uio_pci_generic")
MODULE_PARAMETERS = {"vfio_iommu_type1": "allow_unsafe_interrupts=1"}  # no interrupt remapping
# The EAL loads all that are there; those of other devices want many more libraries.
DRIVERS = ("bus_pci", "bus_vdev", "mempool_ring", "net_e1000", "net_virtio", "net_vmxnet3")
SOCAT, BUSYBOX = "/usr/bin/socat", "/bin/busybox"
SITE = "/site"
POLICY = "/policy.conf"
PACED_HEADER = "X-Paced: yes"
# Requests with this field take some seconds, so that a test can do something meanwhile.
POLICY_TEXT = f"[class paced]\nheader = {PACED_HEADER}\nrequest_rate = 2MiB/s\n"
INIT = """\
#!/bin/busybox sh
/bin/busybox mkdir -p /bin /proc /sys /dev /tmp /var /run
/bin/busybox --install -s /bin
ln -s /run /var/run
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/hugepages
mount -t hugetlbfs hugetlbfs /dev/hugepages
ip link set lo up
exec 3<>/dev/ttyS1 4<>/dev/ttyS2 # what comes while nobody has it open is lost
stty -F /dev/ttyS1 -echo -onlcr
stty -F /dev/ttyS2 raw -echo
while read -r module; do insmod $module; done </modules
printf '\\0010\\001\\n' >&3
exec >&3 2>&1
. /dev/ttyS1
"""


class Root:
    """A folder that becomes the guest's root."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder)
        for name in ("bin", "lib", "lib64", "sbin"):
            if os.path.islink("/" + name):
                os.symlink(os.readlink("/" + name), f"{folder}/{name}")

    def write(self, path, text, mode=0o644):
        with open(self.folder + path, "w") as f:
            f.write(text)
        os.chmod(self.folder + path, mode)

    def add(self, path):
        """A file of the host, or a link and what it leads to."""
        folder = os.path.realpath(os.path.dirname(path))
        path = os.path.join(folder, os.path.basename(path))
        to = self.folder + path
        if os.path.lexists(to):
            return
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if os.path.islink(path):
            os.symlink(os.readlink(path), to)
            self.add(os.path.join(folder, os.readlink(path)))
        else:
            shutil.copy(path, to)

    def add_program(self, path):
        """The same, with the libraries it is linked with, whose paths it returns."""
        if not os.path.exists(path):
            raise Failed(f"there is no {path} to put into the guest (./dev test nic installs and "
                         "builds what it needs)")
        self.add(path)
        listed = subprocess.run(["ldd", path], capture_output=True, text=True, timeout=20).stdout
        libraries = re.findall(r"(?:^\s*|=> )(/.+) \(0x", listed, re.M)
        for library in libraries:
            self.add(library)
        return libraries

    def add_server(self):
        """nightjar, and the poll-mode drivers in the folder where the EAL looks for them."""
        libraries = self.add_program(server_path())
        eal = next(path for path in libraries if "/librte_eal.so." in path)
        abi = eal.rpartition(".so.")[2]
        for name in DRIVERS:
            pattern = f"{os.path.dirname(eal)}/dpdk/pmds-{abi}.*/librte_{name}.so.{abi}"
            found = glob.glob(pattern)
            if not found:
                raise Failed(f"no driver to put into the guest: {pattern}")
            self.add_program(found[0])

    def add_modules(self, folder):
        lines = []
        for name in MODULES:
            for path in glob.glob(f"{folder}/kernel/**/{name}.ko*", recursive=True):
                inside = f"/{name}.ko"
                opened = lzma.open if path.endswith(".xz") else open
                with opened(path, "rb") as f, open(self.folder + inside, "wb") as to:
                    shutil.copyfileobj(f, to)
                lines.append(f"{inside} {MODULE_PARAMETERS.get(name, '')}\n")
        self.write("/modules", "".join(lines))


def pack(folder, modules):
    """Makes an initramfs in `folder`. Returns (its path, {file of the site: sha256}). It is not
    compressed: that would take the host and the guest longer than reading it."""
    root = Root(f"{folder}/root")
    root.add_program(BUSYBOX)
    root.add_program(SOCAT)
    root.add_server()
    root.add_modules(modules)
    root.write("/init", INIT, 0o755)
    root.write(POLICY, POLICY_TEXT)
    os.mkdir(root.folder + SITE)
    sums = fill_site(root.folder + SITE)
    archive = f"{folder}/initramfs"
    with open(archive, "wb") as out:
        done = subprocess.run("find . -print0 | cpio --null --create --format=newc --quiet",
                              shell=True, cwd=root.folder, stdout=out, stderr=subprocess.PIPE,
                              timeout=60)
    if done.returncode:
        raise Failed(f"cpio: {done.stderr.decode().strip()}")
    shutil.rmtree(root.folder)
    return archive, sums
