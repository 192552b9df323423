# SPDX-License-Identifier: BSD-3-Clause
"""
A guest under QEMU, emulated without KVM, with PCI NICs whose other ends are taps in a network
namespace. Its serial lines and QEMU's monitor are Unix sockets.
"""
import contextlib
import dataclasses
import json
import re
import select
import socket
import subprocess
import tempfile
import time

from tests.netlab.world import Failed, exit_text, ip

QEMU = "qemu-system-x86_64"
HUGEPAGES_PER_LCORE, OTHER_MIB = 170, 620  # an lcore with jumbo frames needs 300 MiB
# On a busy host timer interrupts are late. The kernel must neither panic nor print warnings then.
KERNEL_OPTIONS = "console=ttyS0 loglevel=4 panic=-1 mitigations=off no_timer_check nowatchdog"
BARE_OPTIONS = "bare=yes transparent_hugepage=never"  # the guest's init reads `bare`
BOOT_SECONDS_MAX = 300  # 15 on an idle machine
ACCEPT_SECONDS_MAX = 60
FIRST_SLOT = 8  # virtual functions of the igb take slots up to 24 after its own
MACHINES = {
    "uio": (["-machine", "pc,hpet=off"], ""),
    "vfio": (["-machine", "q35,kernel-irqchip=off,hpet=off",
              "-device", "intel-iommu,intremap=off"], "intel_iommu=on"),
}
KERNEL_DRIVERS = {"uio": "uio_pci_generic", "vfio": "vfio-pci"}


class Channel:
    """One Unix socket to which QEMU connects."""

    def __init__(self, path):
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(path)
        self.listening.listen(1)
        self.listening.settimeout(1)
        self.connection = None
        self.unread = b""

    def accept(self, is_alive):
        """Waits for the connection of QEMU while is_alive() is true."""
        give_up = time.monotonic() + ACCEPT_SECONDS_MAX
        while is_alive() and time.monotonic() < give_up:
            with contextlib.suppress(TimeoutError):
                self.connection, _ = self.listening.accept()
                self.unread = b""
                self.connection.setblocking(False)
                return
        raise Failed("QEMU did not connect")

    def send(self, text):
        self.connection.settimeout(20)
        self.connection.sendall(text.encode())
        self.connection.setblocking(False)

    def receive(self, seconds):
        """Appends bytes to `unread`. Returns False after `seconds` or at the end of the stream."""
        if not select.select([self.connection], [], [], max(0, seconds))[0]:
            return False
        try:
            chunk = self.connection.recv(65536)
        except ConnectionResetError:
            return False
        self.unread += chunk
        return bool(chunk)

    def read_until(self, pattern, seconds):
        """(match of a pattern, the bytes before it), or None after `seconds` or at the end."""
        give_up = time.monotonic() + seconds
        while not (found := re.search(pattern, self.unread, re.M)):
            if not self.receive(give_up - time.monotonic()):
                return None
        before, self.unread = self.unread[:found.start()], self.unread[found.end():]
        return found, before

    def close(self):
        self.listening.close()
        if self.connection:
            self.connection.close()


@dataclasses.dataclass(frozen=True)
class Nic:
    name: str  # in tests, in QEMU, and of its tap
    device: str  # of QEMU
    options: str = ""
    queues: int = 1
    has_rss: bool = False  # nightjar must use it
    preset: str = ""  # default: `name`
    warning_of_3_lcores: str = ""  # if it has fewer queues

    def arguments(self, slot, binding):
        """The arguments of QEMU. Devices other than virtio read one queue of a tap only."""
        virtio = self.device.startswith("virtio")
        tap = f"tap,id={self.name},ifname={self.name},script=no,downscript=no"
        if virtio:
            tap += f",queues={self.queues}"
        device = [self.device, f"netdev={self.name}", f"addr={slot:#x}", "romfile=",
                  f"mac=02:00:00:00:00:{slot:02x}"]
        if self.options:
            device.append(self.options)
        if virtio and binding == "vfio":
            device.append("iommu_platform=on,disable-legacy=on")
        return ["-netdev", tap, "-device", ",".join(device)]


class Guest:
    """
    A guest whose NICs boot() binds to the driver of `binding`. A bare guest has the same machine
    without any setup for nightjar. The guest ends with its world, or by close().
    """

    def __init__(self, world, kernel, initramfs, nics, binding, lcores=2, is_bare=False):
        self.world, self.nics, self.binding, self.is_bare = world, nics, binding, is_bare
        self.folder = tempfile.mkdtemp(prefix="guest-", dir=world.scratch)
        self.console = f"{self.folder}/console"
        self.shell, self.output, self.monitor = (
            Channel(f"{self.folder}/{name}") for name in ("shell", "output", "monitor"))
        machine, kernel_options = MACHINES[binding]
        hugepages = lcores * HUGEPAGES_PER_LCORE
        more_options = BARE_OPTIONS if is_bare else f"hugepages={hugepages}"
        self.command = [
            QEMU, "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(1 + lcores),
            "-m", str(OTHER_MIB + 2 * hugepages), *machine,
            "-nodefaults", "-no-user-config", "-no-reboot",
            "-display", "none", "-serial", f"file:{self.console}",
            *self.serial("shell"), *self.serial("output"),
            "-chardev", f"socket,id=monitor,path={self.folder}/monitor",
            "-mon", "chardev=monitor,mode=control", "-kernel", kernel, "-initrd", initramfs,
            "-append", f"{KERNEL_OPTIONS} {kernel_options} {more_options}"]
        for slot, nic in enumerate(nics, FIRST_SLOT):
            self.command += nic.arguments(slot, binding)
        self.launch()

    def launch(self):
        self.qemu = self.world.client_popen(*self.command, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def serial(self, name):
        return ["-chardev", f"socket,id={name},path={self.folder}/{name}",
                "-serial", f"chardev:{name}"]

    def boot(self):
        """Boots the guest. Starts QEMU a second time if it crashes, as its TCG does sometimes."""
        try:
            self.boot_once()
        except Failed as failed:
            if self.qemu.poll() is None or self.qemu.returncode >= 0:
                raise
            print(f"     starting QEMU again: {failed}", flush=True)
            self.qemu.stderr.close()
            self.launch()
            self.boot_once()

    def boot_once(self):
        for channel in (self.shell, self.output, self.monitor):
            try:
                channel.accept(lambda: self.qemu.poll() is None)
            except Failed as failed:
                raise Failed(f"{failed}: {self.qemu_exit_text()}") from None
        self.qemu_command("qmp_capabilities")  # QEMU has created the taps
        for nic in self.nics:
            ip("-n", self.world.client_ns, "link", "set", nic.name, "up")
        self.answer("boot", BOOT_SECONDS_MAX)
        for nic in self.nics:
            if not self.is_bare:
                self.bind(self.address(nic))

    def qemu_exit_text(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.qemu.wait(1)
        if self.qemu.returncode is None:
            return "QEMU still runs"
        return f"{exit_text(self.qemu.returncode)}; {self.qemu.stderr.read().decode().strip()}"

    def bind(self, address):
        device, driver = f"/sys/bus/pci/devices/{address}", KERNEL_DRIVERS[self.binding]
        self.run(f"echo {driver} >{device}/driver_override && "
                 f"echo {address} >/sys/bus/pci/drivers_probe && [ -e {device}/driver ]")

    def address(self, nic):
        return f"0000:00:{FIRST_SLOT + self.nics.index(nic):02x}.0"

    def run(self, command, seconds=120):
        """Runs a shell command in the guest, which must succeed. Returns its output."""
        self.shell.send(f"{{ {command}\n}} 2>&1; echo \x01$?\x01\n")
        return self.answer(command, seconds)

    def answer(self, command, seconds):
        answer = self.shell.read_until(rb"\x01(\d+)\x01\r?\n", seconds)
        if not answer:
            raise Failed(f"the guest did not answer within {seconds} s: {command}\n"
                         f"QEMU: {self.qemu_exit_text()}\n{self.console_end()}")
        found, output = answer
        output = output.decode(errors="replace")
        if found[1] != b"0":
            raise Failed(f"exit status {found[1].decode()} in the guest: {command}\n{output}")
        return output

    def console_end(self):
        with open(self.console, "rb") as f:
            return f.read().decode(errors="replace")[-3000:]

    def qemu_command(self, command, **arguments):
        self.monitor.send(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        answer = self.monitor.read_until(rb'^\{"(return|error)".*\n', 120)
        if not answer or answer[0][1] == b"error":
            text = answer[0][0].decode() if answer else f"no answer: {self.qemu_exit_text()}"
            raise Failed(f"QEMU: {command} {arguments}: {text}")

    def set_link(self, nic, up):
        self.qemu_command("set_link", name=nic.name, up=up)

    def close(self):
        """Ends QEMU, and with it the taps."""
        self.qemu.kill()
        self.qemu.wait(20)
        self.qemu.stderr.close()
        for channel in (self.shell, self.output, self.monitor):
            channel.close()
