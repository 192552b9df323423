# SPDX-License-Identifier: BSD-3-Clause
"""
Makes the guest's initramfs: busybox, nightjar, its libraries and poll-mode drivers, the kernel
modules for its devices, and a site. Programs and libraries have the paths of the host. The advice
of `nightjar doctor` runs with Debian's shell, modprobe, prlimit and su, whose sessions have the
limits of /etc/security.
"""
import glob
import os
import re
import shlex
import shutil
import subprocess

from tests.netlab.case import fill_site
from tests.netlab.world import Failed, server_path

# Kernel modules and their dependencies. Not all of them exist in each version of the kernel.
MODULES = ("irqbypass", "iommufd", "vfio", "vfio_virqfd", "vfio_iommu_type1", "vfio-pci-core",
           "vfio-pci", "uio", "uio_pci_generic", "tun", "failover", "net_failover", "virtio",
           "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci",
           "virtio_net")
# The EAL loads all drivers that exist. Drivers of other devices need many more libraries.
DRIVERS = ("bus_pci", "bus_vdev", "mempool_ring", "net_bond", "net_e1000",
           "net_virtio", "net_vmxnet3")
SOCAT, BUSYBOX, SHELL = "/usr/bin/socat", "/bin/busybox", "/bin/dash"
PROGRAMS = (BUSYBOX, SOCAT, SHELL, "/bin/kmod", "/sbin/modprobe", "/usr/bin/prlimit", "/usr/bin/su")
PAM_MODULES = ("pam_rootok", "pam_permit", "pam_limits")
USER = "web"  # the user without privileges
USER_ID = 1000
NOBODY = 65534  # whom a server becomes that root starts
ETC = {
    "passwd": f"root:x:0:0::/:{SHELL}\n{USER}:x:{USER_ID}:{USER_ID}::/:{SHELL}\n"
              f"nobody:x:{NOBODY}:{NOBODY}::/:/bin/false\n",
    "group": f"root:x:0:\n{USER}:x:{USER_ID}:\nnogroup:x:{NOBODY}:\n",
    "pam.d/su": "auth sufficient pam_rootok.so\nauth required pam_permit.so\n"
                "account required pam_permit.so\nsession required pam_limits.so\n",
    "security/limits.conf": "",
}
FOLDERS = ("modprobe.d", "modules-load.d", "security/limits.d", "sysctl.d", "udev/rules.d")
# The part of sudo that the advice uses: sudo COMMAND. The guest's su needs no password.
SUDO = f"""#!{SHELL}
exec /usr/bin/su -s {SHELL} -c '"$@"' -- root sudo "$@"
"""
SITE = "/site"
POLICY = "/policy.conf"
PACED_HEADER = "X-Paced: yes"
# Requests with this field take some seconds, so that a check can act during a download.
POLICY_TEXT = f"[class paced]\nheader = {PACED_HEADER}\nrequest_rate = 2MiB/s\n"
# With `bare=yes` on the kernel's command line init makes no setup for nightjar.
INIT = """\
#!/bin/busybox sh
/bin/busybox mkdir -p /bin /proc /sys /dev /tmp /var /run
/bin/busybox --install -s /bin 2>/dev/null # keeps the host's programs
export PATH=/sbin:/bin
chmod 1777 /tmp
ln -s /run /var/run
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
ip link set lo up
exec 3<>/dev/ttyS1 4<>/dev/ttyS2 # input is lost while a device is not open
stty -F /dev/ttyS1 -echo -onlcr
stty -F /dev/ttyS2 raw -echo
if [ "$bare" ]; then
    /sbin/modprobe -a virtio_pci virtio_net
else
    mkdir -p /dev/hugepages
    mount -t hugetlbfs hugetlbfs /dev/hugepages
    # the emulated IOMMU has no interrupt remapping
    /sbin/modprobe vfio_iommu_type1 allow_unsafe_interrupts=1
    /sbin/modprobe -a vfio-pci uio_pci_generic
fi
printf '\\0010\\001\\n' >&3
exec >&3 2>&1
. /dev/ttyS1
"""


def as_user(user, script):
    """A command that runs a shell script in a session of `user`. It has the path of su, because
    busybox would use its own su, which has no PAM."""
    return shlex.join(["/usr/bin/su", "-s", SHELL, "-c", script, user])


class Root:
    """The folder with the contents of the initramfs."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder)
        for name in ("bin", "lib", "lib64", "sbin"):
            if os.path.islink("/" + name):
                os.symlink(os.readlink("/" + name), f"{folder}/{name}")

    def write(self, path, text, mode=0o644):
        os.makedirs(os.path.dirname(self.folder + path), exist_ok=True)
        with open(self.folder + path, "w") as f:
            f.write(text)
        os.chmod(self.folder + path, mode)

    def add(self, path):
        """Adds a file of the host, or a link and its target."""
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
        """Adds a program and its shared libraries. Returns the paths of the libraries."""
        if not os.path.exists(path):
            raise Failed(f"no {path} for the guest (./dev test nic installs and builds programs)")
        self.add(path)
        listed = subprocess.run(["ldd", path], capture_output=True, text=True, timeout=20).stdout
        libraries = re.findall(r"(?:^\s*|=> )(/.+) \(0x", listed, re.M)
        for library in libraries:
            self.add(library)
        return libraries

    def add_server(self):
        """Adds nightjar, and the poll-mode drivers in the folder from which the EAL loads them."""
        libraries = self.add_program(server_path())
        eal = next(path for path in libraries if "/librte_eal.so." in path)
        abi = eal.rpartition(".so.")[2]
        for name in DRIVERS:
            pattern = f"{os.path.dirname(eal)}/dpdk/pmds-{abi}.*/librte_{name}.so.{abi}"
            found = glob.glob(pattern)
            if not found:
                raise Failed(f"no driver for the guest: {pattern}")
            self.add_program(found[0])

    def add_modules(self, folder):
        """Adds the kernel modules and the files that modprobe reads."""
        to = f"{self.folder}/lib/modules/{os.path.basename(folder)}"
        os.makedirs(to)
        for name in "builtin", "builtin.modinfo", "order":
            shutil.copy(f"{folder}/modules.{name}", to)
        for name in MODULES:
            for path in glob.glob(f"{folder}/kernel/**/{name}.ko*", recursive=True):
                copy = path.replace(folder, to)
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copy(path, copy)
        done = subprocess.run(["depmod", "-b", self.folder, os.path.basename(folder)],
                              capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise Failed(f"depmod: {done.stderr}")

    def add_users(self):
        """Adds root and another user, sudo, and the PAM modules of su."""
        for name, text in ETC.items():
            self.write(f"/etc/{name}", text)
        for name in FOLDERS:
            os.makedirs(f"{self.folder}/etc/{name}", exist_ok=True)
        self.write("/usr/bin/sudo", SUDO, 0o755)
        for name in PAM_MODULES:
            self.add_program(next(iter(glob.glob(f"/lib/*/security/{name}.so")), name))


def pack(folder, modules, add_more=lambda root: None):
    """
    Makes an initramfs in `folder`. Returns (its path, {file of the site: sha256}). The initramfs is
    not compressed, because compression takes longer than reading. `add_more` adds to the Root.
    """
    root = Root(f"{folder}/root")
    for program in PROGRAMS:
        root.add_program(program)
    root.add_users()
    root.add_server()
    root.add_modules(modules)
    add_more(root)
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
