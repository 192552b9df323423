# SPDX-License-Identifier: BSD-3-Clause
"""
Tests nightjar with the poll-mode drivers of PCI NICs, in guests under QEMU: each device that
Debian's QEMU emulates, bound to vfio-pci and to uio_pci_generic, with one lcore up to one per
queue. Prints a line for each check, then a table. Needs root, but no KVM and no hugepages of the
host.
"""
import argparse
import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import time
import traceback

from tests.netlab.ended import ended, exit_with
from tests.netlab.world import Failed, World, server_path
from tests.nic.advice import Advice
from tests.nic.checks import JUMBO_BYTES, JUMBO_MTU, REQUESTS, SESSIONS, Bond, Checks
from tests.nic.guest import KERNEL_DRIVERS, QEMU, Guest, Nic
from tests.nic.kernel import Missing, kernel
from tests.nic.pack import pack
from tests.nic.unit import Unit, add_files

VIRTIO = Nic("virtio", "virtio-net-pci", "mq=on", queues=2)
# The driver reports two queues for the e1000 (82540EM), which has one.
E1000 = Nic("e1000", "e1000")
NICS = (VIRTIO, Nic("virtio-rss", "virtio-net-pci", "mq=on,rss=on", queues=2, has_rss=True,
                    preset="virtio"),
        E1000, Nic("e1000e", "e1000e", queues=2, preset="e1000"),
        # Before version 6 its number of queues is a power of two: others pass packets to lcore 3.
        Nic("vmxnet3", "vmxnet3", queues=3, warning_of_3_lcores="the port has 2 to receive"),
        Nic("igb", "igb", queues=2, has_rss=True))
# {check: column of the table}, in this order.
CHECKS = {"start": "starts", "page": "serves", "ipv6": "IPv6", "sha256": "sha256",
          "h2load": "h2load", "rss": "RSS", "flap": "flap", "drain": "drain",
          "restart": "restart", "killed": "kill -9", "no_link": "no link",
          "interrupt": "interrupt", "jumbo": "jumbo"}
LEGEND = f"""\
| column | check |
|---|---|
| starts | the server reports ready, the port matches its preset, and no thread is root |
| serves, IPv6 | a page over IPv4; 200 KiB over IPv6, compared by sha256 |
| sha256 | 10 MiB, compared by sha256 |
| h2load | {REQUESTS:,} requests of {SESSIONS} connections succeed |
| RSS | each lcore has connections. device: RSS of the NIC; rings: lcores pass packets on |
| flap | link down during a download until the driver reports it and TCP times out; then up |
| drain | SIGTERM during a download: the download completes, and the exit status is 0 |
| restart | second start, with a preset of another binding: a warning; a page; shutdown |
| kill -9 | SIGKILL during a download; the next start serves a page |
| no link | start while the link is down; after link up a page is served |
| interrupt | `--idle interrupt`: sleeping lcores respond; polled: no receive interrupts |
| jumbo | `--mtu {JUMBO_MTU}`: 10 MiB in frames above {JUMBO_BYTES:,} bytes; peer MTU 1,500, too |
"""
ADVICE_CHECKS = {"uio": ("advice", "serve"), "vfio": ("advice", "serve", "session")}
TOGETHER, UNIT = "nic.together", "nic.unit.vfio"
UNIT_CHECKS = ("start", "page", "sha256", "restart", "stop")
QUICK_CHECKS = ("start", "page", "sha256", "drain")
CHECK_SECONDS_MAX = 400


def too_long(*_):
    raise Failed(f"the check took longer than {CHECK_SECONDS_MAX} s")


class Lab(World):
    """A network namespace for guests and clients. There is no server outside of a guest."""

    def __init__(self):
        super().__init__("null", ipv6=True)

    def start(self):
        pass


class Report:
    """Counts checks, prints a line for each, and keeps the table."""

    def __init__(self):
        self.passed = self.failed = 0
        self.rows = []
        self.reasons = {}  # {name of a check or NIC: why it was not run}

    def check(self, name, function):
        """Runs a check and prints its line. Returns the text for the table."""
        began, error, result = time.monotonic(), "", None
        signal.alarm(CHECK_SECONDS_MAX)
        try:
            result = function()
        except (Failed, subprocess.TimeoutExpired) as failed:
            error = str(failed)
        except Exception:
            error = traceback.format_exc()
        finally:
            signal.alarm(0)
        print(f"{'FAIL' if error else 'ok':<4} {name} ({time.monotonic() - began:.1f} s)",
              flush=True)
        if error:
            print("     " + error.strip().replace("\n", "\n     "), flush=True)
        self.failed += bool(error)
        self.passed += not error
        return "FAILED" if error else result if isinstance(result, str) else "ok"

    def not_run(self, name, reason):
        if name not in self.reasons:
            print(f"not run {name}: {reason}", flush=True)
        self.reasons[name] = reason

    def table(self):
        """The table in Markdown."""
        columns = ["device", "bound to", "lcores", *CHECKS.values()]
        lines = [columns, ["---"] * len(columns)]
        lines += [[*head, *(cells.get(name, "-") for name in CHECKS)] for head, cells in self.rows]
        text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
        if self.reasons:
            text += "\nNot run:\n\n"
        return text + "".join(f"- {name}: {reason}\n" for name, reason in self.reasons.items())


def run_checks(report, prefix, checks, names):
    """Runs checks. Returns {check: cell of the table}."""
    cells = {}
    with checks.network():
        for name in names:
            if name == "rss" and checks.lcores == 1:
                cells[name] = "-"
            elif name == "jumbo" and not has_option("--mtu"):
                report.not_run(name, "this nightjar has no option --mtu")
                cells[name] = "not run"
            else:
                cells[name] = report.check(f"{prefix}.{name}", getattr(checks, name))
            if name == "start" and cells[name] == "FAILED":
                break
        with contextlib.suppress(Failed, OSError):
            checks.kill()
    return cells


def has_option(name):
    return name in subprocess.run([server_path(), "--help", "all"], capture_output=True, text=True,
                                  timeout=20).stdout


def version_of(*command):
    """The first number with dots that the command prints."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    return re.search(r"\d+(\.\d+)+", done.stdout)[0]


def qemu_has(device):
    listed = subprocess.run([QEMU, "-device", "help"], capture_output=True, text=True, timeout=60)
    return f'name "{device}"' in listed.stdout


def prepare(world):
    """Returns (kernel, initramfs, sums of the site). Raises Failed if the host lacks something."""
    for program, package in (QEMU, "qemu-system-x86"), ("cpio", "cpio"):
        if not shutil.which(program):
            raise Missing(f"no {program}: install Debian's package {package}")
    image, modules = kernel(world.reaper)
    return image, *pack(world.scratch, modules)


def quick(report, world, image, initramfs, sums):
    guest = Guest(world, image, initramfs, [VIRTIO, E1000], "uio")
    try:
        if report.check("nic.quick.boot", guest.boot) == "FAILED":
            return
        for nic in guest.nics:
            run_checks(report, f"nic.quick.{nic.name}", Checks(guest, nic, nic.queues, sums),
                       QUICK_CHECKS)
    finally:
        guest.close()


def all_nics(report, world, image, initramfs, sums, part):
    for binding, driver in KERNEL_DRIVERS.items():
        for nic in NICS:
            name, device = f"nic.{nic.name}.{binding}", f"{nic.device} {nic.options}".rstrip()
            if part not in name:
                continue
            if not qemu_has(nic.device):
                report.not_run(nic.name, f"QEMU {version_of(QEMU, '--version')} does not "
                                         "emulate it (bookworm-backports has a later one)")
                report.rows.append(((device, driver, "-"), dict.fromkeys(CHECKS, "not run")))
                continue
            guest = Guest(world, image, initramfs, [nic], binding, lcores=max(2, nic.queues))
            try:
                booted = report.check(f"{name}.boot", guest.boot) == "ok"
                for lcores in range(1, nic.queues + 1):
                    cells = {"start": "FAILED"} if not booted else run_checks(
                        report, f"{name}.{lcores}", Checks(guest, nic, lcores, sums), CHECKS)
                    report.rows.append(((device, driver, str(lcores)), cells))
            finally:
                guest.close()


def doctor(report, world, image, initramfs, sums, part):
    """The advice of `nightjar doctor`, in a guest for each way to bind a NIC."""
    for binding in KERNEL_DRIVERS:
        name = f"nic.doctor.{binding}"
        if part not in name:
            continue
        guest = Guest(world, image, initramfs, [VIRTIO], binding, is_bare=True)
        try:
            if report.check(f"{name}.boot", guest.boot) == "ok":
                run_checks(report, name, Advice(guest, sums), ADVICE_CHECKS[binding])
        finally:
            guest.close()


def unit(report, world, part):
    """nightjar.service under systemd, in a guest whose initramfs has systemd."""
    if part not in UNIT:
        return
    image, modules = kernel(world.reaper)
    folder = f"{world.scratch}/unit"
    initramfs, sums = pack(folder, modules,
                           lambda root: add_files(root, "0000:00:08.0", VIRTIO.name))
    guest = Guest(world, image, initramfs, [VIRTIO], "vfio")
    try:
        if report.check(f"{UNIT}.boot", guest.boot) == "ok":
            run_checks(report, UNIT, Unit(guest, VIRTIO, 1, sums), UNIT_CHECKS)
    finally:
        guest.close()


def together(report, world, image, initramfs, sums, part):
    """Two servers with one NIC each, and a server with both NICs as a bond."""
    if part not in TOGETHER:
        return
    guest = Guest(world, image, initramfs, [E1000, dataclasses.replace(E1000, name="e1000-b",
                                                                       preset="e1000")], "uio")
    first, second = (Checks(guest, nic, 1, sums, name, cpu)
                     for nic, name, cpu in zip(guest.nics, ("first", "second"), (1, 2)))
    try:
        if report.check(f"{TOGETHER}.boot", guest.boot) == "FAILED":
            return
        report.check(f"{TOGETHER}.servers", lambda: two_servers(first, second))
        run_checks(report, f"{TOGETHER}.bond", Bond(guest, sums), ("start", "page", "loss", "stop"))
    finally:
        guest.close()


def two_servers(first, second):
    """One server continues while another one starts and ends."""
    first.start()
    second.start()
    for checks in first, second:
        with checks.network():
            checks.sha256()
    second.stop()
    with first.network():
        first.page()
    first.stop()


def page(report, kernel_path):
    """The text of docs/nics.md."""
    return (
        "# PCI NICs under QEMU\n\n"
        "nightjar on DPDK's poll-mode drivers of the PCI NICs that QEMU emulates. No hardware was "
        "tested.\n`sudo ./dev test nic --table docs/nics.md` generates this page. The e1000 "
        "(82540EM) has one queue,\nso it has one lcore, although its driver reports two queues."
        "\n\n"
        f"QEMU {version_of(QEMU, '--version')} without KVM, "
        f"DPDK {version_of('pkg-config', '--modversion', 'libdpdk')}, "
        f"guest kernel {os.path.basename(kernel_path).removeprefix('vmlinuz-')}.\n\n"
        f"{report.table()}\n{LEGEND}")


def run(report, args):
    with Lab() as world:
        prepared = []

        def begin():
            try:
                prepared.extend(prepare(world))
            except Missing as missing:
                if not args.optional:
                    raise
                report.not_run("nic.quick", missing)
        if report.check("nic.prepare", begin) == "FAILED" or not prepared:
            return
        if args.quick:
            quick(report, world, *prepared)
            return
        doctor(report, world, *prepared, args.only)
        unit(report, world, args.only)
        together(report, world, *prepared, args.only)
        all_nics(report, world, *prepared, args.only)
        print("\n" + report.table())
        if args.table:
            with open(args.table, "w") as f:
                f.write(page(report, prepared[0]))


def main():
    parser = argparse.ArgumentParser(prog="./dev test nic", description=__doc__)
    parser.add_argument("--quick", action="store_true",
                        help="one boot, two devices, the checks that `./dev ci` runs")
    parser.add_argument("--optional", action="store_true",
                        help="it is no failure if QEMU or the guest's kernel is missing")
    parser.add_argument("--only", metavar="PART", default="",
                        help="devices and drivers with this in their name, e.g. virtio.vfio")
    parser.add_argument("--table", metavar="FILE", help="also write the table to FILE")
    args = parser.parse_args()
    if args.quick and (args.table or args.only):
        parser.error("--quick cannot be combined with --table or --only")
    if args.table:
        args.table = os.path.join(os.environ.get("NJ_CALLER", "."), args.table)
        if not os.access(os.path.dirname(args.table) or ".", os.W_OK):
            parser.error(f"--table: no folder to write to: {os.path.dirname(args.table)}")
    names = [f"nic.{name}.{binding}" for name in ("doctor", *(nic.name for nic in NICS))
             for binding in KERNEL_DRIVERS] + [TOGETHER, UNIT]
    if not any(args.only in name for name in names):
        parser.error(f"--only {args.only}: not part of any of {', '.join(names)}")
    if os.geteuid() != 0:
        parser.exit(1, "needs root (namespaces, taps): sudo ./dev test nic\n")
    signal.signal(signal.SIGALRM, too_long)
    signal.signal(signal.SIGTERM, ended)
    report = Report()
    run(report, args)
    print(f"{report.passed} passed, {report.failed} failed", flush=True)
    return int(report.failed > 0)


if __name__ == "__main__":
    exit_with(main)
