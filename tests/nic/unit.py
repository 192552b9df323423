# SPDX-License-Identifier: BSD-3-Clause
"""nightjar.service on a NIC that is bound to vfio-pci: systemd starts it, in a guest."""
import glob
import os
import time

from tests.netlab.units import SCRIPT, SYSTEMD, UID, enter, write_files
from tests.netlab.world import PREFIX_BITS, SERVER_ADDR, Failed
from tests.nic.checks import SERVER_SECONDS_MAX, Checks
from tests.nic.pack import SHELL, SITE

PROGRAMS = (SYSTEMD, "/usr/bin/systemctl", "/usr/bin/unshare", "/usr/bin/nsenter",
            "/usr/bin/mount")
FILES, CGROUPS = "/files", "/tmp/cgroups"
EAL = "-l 1 --preset {preset},pci={address}"
OPTIONS = f"--addr {SERVER_ADDR}/{PREFIX_BITS} --root /srv/www"


def add_files(root, address, preset):
    """Adds systemd, the units, and what they need, to the contents of an initramfs."""
    os.symlink(SHELL, f"{root.folder}/bin/sh")  # busybox's has commands of its own
    for program in (*PROGRAMS, *glob.glob("/lib/systemd/systemd-executor")):
        root.add_program(program)
    root.add(SCRIPT)
    write_files(root.folder + FILES, EAL.format(preset=preset, address=address), OPTIONS, {},
                {"TimeoutStartSec": SERVER_SECONDS_MAX, "AmbientCapabilities": "",
                 "CapabilityBoundingSet": ""})
    os.makedirs(f"{root.folder}{FILES}/srv")


class Unit(Checks):
    """The checks of the unit. `output` and `has_ended` are those of its server, which has no
    GuestServer."""
    output, has_ended = "", False

    def start(self):
        """As docs/deploy.md says: the user gets the IOMMU group's device, and the unit no
        capability, as none is needed."""
        self.guest.run(f"cp -r {SITE} {FILES}/srv/www && chown {UID} /dev/vfio/[0-9]*")
        self.guest.run(f"mkdir {CGROUPS} /tmp/root && mount -t cgroup2 cgroup2 {CGROUPS} && "
                       f"mkdir {CGROUPS}/unit")
        systemd = f"{SHELL} {SCRIPT} {CGROUPS}/unit /tmp/root {FILES} nightjar.service"
        self.guest.run(f"{{ NJ_DEVICES='vfio hugepages' {systemd} </dev/null >/tmp/systemd.log "
                       "2>&1; touch /tmp/ended; } &")
        self.server = self
        self.wait_for("active")
        self.guest.run(f"pidof nightjar >/tmp/{self.name}.pid")
        self.output = self.errors()
        self.rights(UID)

    def inside(self, command):
        """Runs a command in the namespaces of systemd. Returns its output, and errors."""
        return self.guest.run(
            f"{SHELL} -c 'read -r first <{CGROUPS}/unit/init.scope/cgroup.procs && "
            f"exec {' '.join(enter('$first'))} env SYSTEMD_PAGER=cat SYSTEMD_COLORS=0 {command}' "
            "|| true").strip()

    def show(self, name):
        return self.inside(f"systemctl show nightjar -p {name} --value")

    def errors(self):
        return self.inside("cat /run/errors")

    def wait_for(self, state):
        give_up = time.monotonic() + SERVER_SECONDS_MAX
        while (found := self.show("ActiveState")) != state:
            has_ended = "ended" in self.guest.run("ls /tmp")
            if time.monotonic() > give_up or found == "failed" or has_ended:
                status = self.inside("systemctl status nightjar --no-pager")
                log = self.guest.run("cat /tmp/systemd.log")
                raise Failed(f"{found}, expected {state}:\n{status}\n{self.errors()}\n{log}")
            time.sleep(0.5)

    def restart(self):
        before = self.show("MainPID")
        self.inside("systemctl restart nightjar")
        self.wait_for("active")
        if self.show("MainPID") == before:
            raise Failed(f"process {before} still runs")
        self.page()

    def stop(self):
        self.inside("systemctl stop nightjar")
        self.wait_for("inactive")
        self.has_ended = True
        if (result := self.show("Result")) != "success":
            raise Failed(f"{result}\n{self.errors()}")

    def kill(self):
        """The server ends with the guest."""
