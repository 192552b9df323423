# SPDX-License-Identifier: BSD-3-Clause
"""
--preset: the devices of drivers-config that need no hardware have the properties in their files,
and the server serves on them. test_virtio.py tests the messages about other properties.
"""
import glob
import os
import shutil
import re
import subprocess
import unittest

from tests.netlab.limits import time_limit
from tests.netlab.world import REPO, World, lcore_args, server_path

PLAIN_BUILD = "start"


def preset(world, text, lcores=2):
    world.eal = ["--preset", text, *lcore_args(lcores)]
    return world


def said(world):
    """The messages about presets, from the level on."""
    return [line.split(" nightjar: ", 1)[1] for line in world.errors().splitlines()
            if ": preset " in line]


class Serves(unittest.TestCase):
    def page(self, world):
        self.addCleanup(world.close)
        # A copy: the server's user may not be able to read the folder of the repository.
        world.root = os.path.join(world.scratch, "site")
        shutil.copytree(os.path.join(REPO, "app", "site"), world.root)
        with world:
            got = world.client("curl", "-sS", "--http2-prior-knowledge", "-o", "/dev/null", "-w",
                               "%{http_code}", world.url("/"))
            self.assertEqual("200", got.stdout, got.stderr)
            return said(world)

    def test_tap(self):
        self.assertEqual(
            ["info: preset tap: --no-pci --no-huge -m 512 --no-shconf "
             "--vdev=net_tap0,iface=nj0,mac=02:00:00:00:00:07"],
            self.page(preset(World(), "tap,mac=02:00:00:00:00:07")))

    def test_af_packet(self):
        self.assertEqual(
            ["info: preset af_packet: --no-pci --no-huge -m 512 --no-shconf "
             "--vdev=net_af_packet0,iface=nj0,framecnt=512"],
            self.page(preset(World("veth"), "af_packet,iface=nj0,framecnt=512")))


class Null(unittest.TestCase):
    """The null device: it receives no packets and has RSS."""

    def test_null(self):
        world = preset(World("null", root="/run"), "null")
        self.addCleanup(world.close)
        world.make_namespaces()
        world.start()
        self.assertEqual(0, world.stop(), world.errors())
        self.assertEqual(["info: preset null: --no-pci --no-huge -m 512 --no-shconf "
                          "--vdev=net_null0,no-rx=1"], said(world))


class Asks(unittest.TestCase):
    def run_it(self, *args):
        return subprocess.run([server_path(), *args], capture_output=True, text=True,
                              timeout=time_limit())

    def test_list_has_each_file(self):
        done = self.run_it("--preset", "list")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        listed = [line.split()[0] for line in done.stdout.split("\n\n")[0].splitlines()]
        files = glob.glob(os.path.join(REPO, "drivers-config", "*.args"))
        self.assertEqual(sorted(os.path.basename(f)[:-len(".args")] for f in files), listed)
        with open(os.path.join(REPO, "drivers-config", "README.md")) as page:
            self.assertEqual(listed, sorted(re.findall(r"^\| `(\w+)` \|", page.read(), re.M)))

    def test_help_is_the_text_of_the_file(self):
        done = self.run_it("--preset", "ice,help")
        with open(os.path.join(REPO, "drivers-config", "ice.args")) as file:
            self.assertEqual((0, file.read(), ""), (done.returncode, done.stdout, done.stderr))

    def test_print(self):
        done = self.run_it("--print-preset", "ice,pci=03:00.0,safe-mode-support=1")
        self.assertEqual((0, "-a 0000:03:00.0,safe-mode-support=1\n", ""),
                         (done.returncode, done.stdout, done.stderr))

    def test_wrong(self):
        complete = ("--addr", "198.18.0.2/24", "--root", "/")
        for args, told in (
                (["--print-preset", "ixbge"], "did you mean ixgbe?"),
                (["--print-preset"], "expected a name"),
                (["--preset", "tap,ifcae=x", "--", *complete], "did you mean iface?"),
                (["--preset", "ixgbe", "--", *complete], "pci= is missing"),
                (["--", "--preset", "tap"], "must come before the --")):
            with self.subTest(args=args):
                done = self.run_it(*args)
                self.assertEqual((2, ""), (done.returncode, done.stdout))
                self.assertIn(told, done.stderr)
                self.assertEqual(1, done.stderr.count("\n"))
