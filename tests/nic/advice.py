# SPDX-License-Identifier: BSD-3-Clause
"""
What `nightjar doctor` advises, typed as it stands in a guest in which nothing is ready: each makes
its line ok, and then the server serves.
"""
import json
import re
import shlex

from tests.netlab.world import Failed, server_path
from tests.nic.checks import Checks, GuestServer
from tests.nic.pack import SHELL, USER, as_user

UNTESTED = "# (untested)"  # the commands before it
OF_A_PACKAGE = "/boot"  # driverctl, which the guest does not have: typed by hand in a whole Debian
HUGEPAGES_OF_ONE = 110  # so that two servers do not fit
VFIO = "/dev/vfio/vfio"
LIMITS = "/etc/security/limits.d/nightjar.conf"
# The ids of the lines, with N for the number of the IOMMU group. With uio the server runs as root,
# with vfio as another user.
TYPED = {
    "uio": {"hugepages/node0", "hugepages/boot", "hugetlbfs", "transparent-hugepages",
            "module/uio_pci_generic", "nic/0000:00:08.0", "permission/dev/net/tun"},
    "vfio": {"hugepages/node0", "hugepages/boot", "hugetlbfs", "transparent-hugepages",
             "interrupt-remapping", "module/vfio-pci", "nic/0000:00:08.0", "memlock",
             "permission/dev/hugepages", "permission/dev/vfio/vfio", "permission/dev/vfio/N",
             "permission/dev/net/tun"},
}


def has_command(line):
    return any(not text.startswith("#") for text in line["advice"].splitlines())


class Advice(Checks):
    """Of one NIC in a bare guest."""

    def __init__(self, guest, sums):
        super().__init__(guest, guest.nics[0], 1, sums)
        self.user = USER if guest.binding == "vfio" else "root"
        self.typed = set()

    def ask(self, run=None):
        """{id: line}, in doctor's order. `run` runs a command in the guest."""
        options = ["--user", self.user] if run is None and self.user != "root" else []
        command = shlex.join([server_path(), "doctor", "--json", "--lcores", "1", *options])
        answer = (run or self.guest.run)(command + " || [ $? -eq 1 ]")
        return {line["id"]: line for line in json.loads(answer)["lines"]}

    def expect_ok(self, line, lines, said):
        if lines.get(line["id"], {}).get("verdict") != "ok":
            raise Failed(f"typed:\n{line['advice']}\nit said:\n{said}\nbefore: {line}\n"
                         f"now:    {lines.get(line['id'])}")

    def follow(self):
        """From the top, until there is nothing more to type that was to be tested. A line may have
        another advice afterwards, such as for a file that was missing."""
        typed = set()
        while todo := [line for line in self.ask().values() if line["verdict"] != "ok" and
                       has_command(line) and UNTESTED not in line["advice"].splitlines()]:
            line = todo[0]
            said = self.guest.run(f"{SHELL} -c {shlex.quote(line['advice'])}")
            if line["advice"] in typed:
                raise Failed(f"typed twice:\n{line['advice']}\nit said:\n{said}\n{line}")
            typed.add(line["advice"])
            self.typed.add(re.sub(r"vfio/\d+$", "vfio/N", line["id"]))

    def advice(self):
        """All but what needs a reboot, in the order of the lines."""
        if "ok" in {line["verdict"] for line in self.ask().values() if line["id"] == "nics"}:
            raise Failed("the guest is not bare: a NIC is ready already")
        self.follow()
        if self.guest.binding == "vfio":  # the kernel lets everybody have it
            self.guest.run(f"chmod 600 {VFIO}")
            self.follow()
        if self.typed != TYPED[self.guest.binding]:
            raise Failed(f"typed was {sorted(self.typed)}")
        left = [line for line in self.ask().values() if line["verdict"] != "ok"]
        if any("untested)" not in line["advice"] and not line["id"].endswith(OF_A_PACKAGE)
               for line in left):
            raise Failed("\n".join(map(str, left)))

    def serve(self):
        """The user that doctor was asked about runs the server, in a new session. Meanwhile
        doctor's advice finds the process that has the huge pages."""
        self.guest.run(f"echo {HUGEPAGES_OF_ONE} >/proc/sys/vm/nr_hugepages")
        self.start_as(self.user)
        self.page()
        self.sha256()
        line = self.ask()["hugepages/node0"]
        found = self.guest.run(f"{SHELL} -c {shlex.quote(line['advice'])}")
        pid = self.guest.run(f"cat /tmp/{self.server.name}.pid").strip()
        if line["verdict"] != "warning" or f"/proc/{pid}/smaps" not in found.split():
            raise Failed(f"process {pid} has them: {line}\n{found}")
        self.stop()

    def start_as(self, user):
        self.kill()
        self.server = GuestServer(
            self.guest, f"{self.nic.preset or self.nic.name},pci={self.guest.address(self.nic)}",
            1, (), user=user, name=user)
        self.server.wait_ready()

    def session(self):
        """The user's own session, which has too low a limit, asks and types. With the advice it
        has none, and without it the server does not start."""
        self.guest.run(f"rm {LIMITS}")
        line = self.ask(lambda command: self.guest.run(as_user(USER, command)))["memlock"]
        if line["verdict"] != "error" or "prlimit" not in line["advice"]:
            raise Failed(f"it has no limit: {line}")
        try:
            self.start_as(USER)
        except Failed as failed:
            if "LimitMEMLOCK" not in str(failed):
                raise
        else:
            raise Failed("it starts without the advice")
        mark = "--- typed"
        said = ""

        def type_and_ask(command):
            nonlocal said
            answer = self.guest.run(
                as_user(USER, f"{line['advice']}\necho; echo '{mark}'\n{command}"))
            said, _, answer = answer.partition(f"{mark}\n")
            return answer
        self.expect_ok(line, self.ask(type_and_ask), said)
