# SPDX-License-Identifier: BSD-3-Clause
"""
Runs the commands that `nightjar doctor` advises, unchanged, in a guest without any setup. Each
advice makes its line ok. Afterwards the server serves.
"""
import json
import re
import shlex

from tests.netlab.world import Failed, server_path
from tests.nic.checks import Checks, GuestServer
from tests.nic.pack import SHELL, USER, USER_ID, as_user

UNTESTED = "# (untested)"  # marks the commands above it
DRIVERCTL = "/boot"  # such lines advise driverctl, which the guest lacks; tested by hand on Debian
HUGEPAGES_OF_ONE = 110  # too few for two servers
VFIO = "/dev/vfio/vfio"
LIMITS = "/etc/security/limits.d/nightjar.conf"
# The IDs of the lines whose advice is run; N is the number of the IOMMU group. With uio the server
# runs as root, with vfio as another user.
EXPECTED = {
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
    """The advice for one NIC in a bare guest."""

    def __init__(self, guest, sums):
        super().__init__(guest, guest.nics[0], 1, sums)
        self.user = USER if guest.binding == "vfio" else "root"
        self.followed = set()

    def lines(self, run=None):
        """{ID: line} of `nightjar doctor`, in its order. `run` runs a command in the guest."""
        options = ["--user", self.user] if run is None and self.user != "root" else []
        command = shlex.join([server_path(), "doctor", "--json", "--lcores", "1", *options])
        answer = (run or self.guest.run)(command + " || [ $? -eq 1 ]")
        return {line["id"]: line for line in json.loads(answer)["lines"]}

    def expect_ok(self, line, lines, output):
        if lines.get(line["id"], {}).get("verdict") != "ok":
            raise Failed(f"commands:\n{line['advice']}\noutput:\n{output}\nbefore: {line}\n"
                         f"now:    {lines.get(line['id'])}")

    def follow(self):
        """Runs the advice of the first line that is not ok, until no tested advice is left. A line
        may have another advice afterwards, for example for a missing file."""
        done = set()
        while todo := [line for line in self.lines().values() if line["verdict"] != "ok" and
                       has_command(line) and UNTESTED not in line["advice"].splitlines()]:
            line = todo[0]
            output = self.guest.run(f"{SHELL} -c {shlex.quote(line['advice'])}")
            if line["advice"] in done:
                raise Failed(f"run twice:\n{line['advice']}\noutput:\n{output}\n{line}")
            done.add(line["advice"])
            self.followed.add(re.sub(r"vfio/\d+$", "vfio/N", line["id"]))

    def advice(self):
        """Runs all advice that is not marked as untested, in the order of the lines."""
        if "ok" in {line["verdict"] for line in self.lines().values() if line["id"] == "nics"}:
            raise Failed("the guest is not bare: a NIC is ready already")
        self.follow()
        if self.guest.binding == "vfio":  # by default all users may open it
            self.guest.run(f"chmod 600 {VFIO}")
            self.follow()
        if self.followed != EXPECTED[self.guest.binding]:
            raise Failed(f"the advice of these lines was run: {sorted(self.followed)}")
        left = [line for line in self.lines().values() if line["verdict"] != "ok"]
        if any("untested)" not in line["advice"] and not line["id"].endswith(DRIVERCTL)
               for line in left):
            raise Failed("\n".join(map(str, left)))

    def serve(self):
        """Runs the server as the user of --user, in a new session. Then the advice about hugepages
        finds the process that uses them."""
        self.guest.run(f"echo {HUGEPAGES_OF_ONE} >/proc/sys/vm/nr_hugepages")
        self.start_as(self.user)
        self.page()
        self.name = self.server.name
        if self.user == USER:  # which may not change the bounding set
            self.rights(USER_ID, self.bounding_set())
        else:
            self.rights()
        self.sha256()
        line = self.lines()["hugepages/node0"]
        found = self.guest.run(f"{SHELL} -c {shlex.quote(line['advice'])}")
        pid = self.guest.run(f"cat /tmp/{self.server.name}.pid").strip()
        if line["verdict"] != "warning" or f"/proc/{pid}/smaps" not in found.split():
            raise Failed(f"process {pid} uses the hugepages: {line}\n{found}")
        self.stop()

    def bounding_set(self):
        return int(self.guest.run("grep CapBnd /proc/self/status").split()[1], 16)

    def start_as(self, user):
        self.kill()
        self.server = GuestServer(
            self.guest, f"{self.nic.preset or self.nic.name},pci={self.guest.address(self.nic)}",
            1, (), user=user, name=user)
        self.server.wait_ready()

    def session(self):
        """Runs doctor and its advice in a session of the user whose memlock limit is too low. The
        advice removes the limit of the session. Without it the server does not start."""
        self.guest.run(f"rm {LIMITS}")
        line = self.lines(lambda command: self.guest.run(as_user(USER, command)))["memlock"]
        if line["verdict"] != "error" or "prlimit" not in line["advice"]:
            raise Failed(f"the session has no limit: {line}")
        try:
            self.start_as(USER)
        except Failed as failed:
            if "LimitMEMLOCK" not in str(failed):
                raise
        else:
            raise Failed("the server starts without the advice")
        mark = "--- end of advice"
        output = ""

        def run_after_advice(command):
            nonlocal output
            answer = self.guest.run(
                as_user(USER, f"{line['advice']}\necho; echo '{mark}'\n{command}"))
            output, _, answer = answer.partition(f"{mark}\n")
            return answer
        self.expect_ok(line, self.lines(run_after_advice), output)
