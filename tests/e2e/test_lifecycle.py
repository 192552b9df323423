# SPDX-License-Identifier: BSD-3-Clause
"""Shutdown, shutdown with a time-out, and bad options with which the server does not start."""
import hashlib
import os
import random
import signal
import subprocess
import time
import unittest

from tests.netlab.case import fill_site
from tests.netlab.frames import Frames
from tests.netlab.h2client import Client
from tests.netlab.limits import time_limit
from tests.netlab.world import (BUILD, SERVER_ADDR, TIME, Server, World, driver_args, ip,
                                lcore_args, server_for_nobody, server_path, until, version)


class Drain(unittest.TestCase):
    def start(self, *options):
        self.world = World(options=options)
        self.addCleanup(self.world.close)
        self.world.root = os.path.join(self.world.scratch, "site")
        os.mkdir(self.world.root)
        self.sums = fill_site(self.world.root)
        self.world.make_namespaces()
        self.world.start()
        return self.world.server

    def downloading(self):
        """Returns a client that has read the beginning of a 10 MiB response, and the stream."""
        client = Client(self.world.connect())
        self.addCleanup(client.close)
        stream = client.request("/10MiB")
        while not any(type(e).__name__ == "DataReceived" for e in client.events):
            self.assertTrue(client.read())
        return client, stream

    def test_a_download_finishes_after_a_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            with self.subTest(signal=number.name):
                server = self.start()
                client, stream = self.downloading()
                server.signal(number)
                status, _, body = client.response(stream)
                self.assertEqual(200, status)
                self.assertEqual(self.sums["10MiB"], hashlib.sha256(body).hexdigest())
                self.assertTrue(client.goaway(), "no GOAWAY came")
                client.close()
                self.assertEqual(0, server.wait(), self.world.errors())
                self.world.close()

    def test_shutdown_with_a_stuck_client(self):
        """The server waits for as long as the option says, and by default for longer."""
        by_default, other = self.start(), self.world
        self.downloading()  # the client reads no more
        server = self.start("--drain-timeout", "2s")
        self.downloading()
        by_default.signal()
        began = time.monotonic()
        server.signal()
        self.assertEqual(0, server.wait(), self.world.errors())
        self.assertGreater(time.monotonic() - began, 1)  # it waited for the client
        self.assertIsNone(by_default.process.poll(), other.errors())
        self.assertEqual([], os.listdir(f"/var/run/dpdk/{self.world.name}"))

    def test_shutdown_with_a_client_that_does_not_close(self):
        server = self.start("--drain-timeout", "10m")
        client = Client(self.world.connect())
        self.addCleanup(client.close)
        client.ping()
        stream = client.request("/16KiB-1")
        until("the response sent", lambda: server.stats()["responses"] == 1)
        server.signal()
        self.assertEqual(0, server.wait(), self.world.errors())
        while data := client.sock.recv(1 << 16):  # the rest is in the socket buffer
            client.take(client.h2.receive_data(data))
        status, _, body = client.response(stream)
        self.assertEqual(200, status)
        self.assertEqual(self.sums["16KiB-1"], hashlib.sha256(body).hexdigest())
        self.assertTrue(client.goaway(), "no GOAWAY came")

    def test_shutdown_with_half_open_connections(self):
        server = self.start("--drain-timeout", "2s")
        frames = Frames(random.Random(1), self.world.server_mac(), SERVER_ADDR, "198.18.0.77")
        raw = self.world.raw_socket()
        self.addCleanup(raw.close)
        for port in range(40000, 40020):
            raw.send(frames.syn(port))
        until("SYNs received", lambda: sum(s["connections"] for s in server.shards()) == 20)
        server.signal()
        self.assertEqual(0, server.wait(), self.world.errors())

    def test_shutdown_with_a_device_that_is_down(self):
        server = self.start("--drain-timeout", "1s")
        self.downloading()
        ip("-n", self.world.server_ns, "link", "set", "nj0", "down")
        server.signal()
        self.assertEqual(0, server.wait(), self.world.errors())

    def test_an_idle_server_ends_at_once(self):
        server = self.start("--drain-timeout", "10m")
        server.signal()
        self.assertEqual(0, server.wait(), self.world.errors())
        self.assertEqual([], os.listdir(f"/var/run/dpdk/{self.world.name}"))
        self.assertNotIn("nj0", ip("-n", self.world.server_ns, "link"))

    def test_messages(self):
        """Messages go to stderr, each with time and level. --live needs a terminal."""
        server = self.start("--live", "--drain-timeout", "1s")
        client = Client(self.world.connect())
        self.addCleanup(client.close)
        client.ping()
        until("the connection counted", lambda: server.stats()["connections"] == 1)
        server.signal(signal.SIGHUP)
        until("a message", lambda: "SIGHUP: no configuration file" in self.world.errors())
        server.signal(signal.SIGUSR2)
        until("a message", lambda: "SIGUSR2 does nothing" in self.world.errors())
        server.signal()
        self.assertEqual(0, server.wait(), self.world.errors())
        self.assertEqual("", server.output)
        lines = self.world.errors().splitlines()
        for line in lines:
            self.assertRegex(line, f"^{TIME} nightjar: (info|warning): ")
        for message in ("ready: http://198.18.0.2:80/ serves ", "SIGHUP: no configuration file",
                        "--live: standard error is not a terminal", "stopping: 1 connection open",
                        f"; version {version()}"):
            self.assertEqual(1, sum(message in line for line in lines), (message, lines))

    def test_messages_for_the_journal_have_priorities(self):
        """They have no time and level: the journal stores these itself."""
        self.world = World()
        self.addCleanup(self.world.close)
        self.world.make_namespaces()
        read, write = os.pipe()
        stat = os.fstat(write)
        done = self.world.run_in(
            self.world.server_ns, server_path(), *self.world.eal, "--", "--addr", "198.18.0.2/24",
            "--root", "/nowhere", capture_output=False, stderr=write,
            env=dict(os.environ) | {"JOURNAL_STREAM": f"{stat.st_dev}:{stat.st_ino}"})
        os.close(write)
        with os.fdopen(read) as messages:
            self.assertEqual("<3>nightjar: --root /nowhere: No such file or directory\n",
                             messages.read())
        self.assertEqual(2, done.returncode)

    def test_a_second_signal_changes_nothing(self):
        server = self.start()
        server.signal()
        server.signal()
        self.assertEqual(0, server.wait(), self.world.errors())


EARLY_SIGNAL = os.path.join(BUILD, "tests/e2e/early_signal/nightjar-test-early-signal.so")


class EarlyServer(Server):
    """`early_signal` is sent by a constructor of a library, before main()."""
    early_signal = None

    def command(self, *args):
        return ["env", f"LD_PRELOAD={EARLY_SIGNAL}", f"NJ_EARLY_SIGNAL={self.early_signal.value}",
                *super().command(*args)]


class EarlySignals(unittest.TestCase):
    """Signals that arrive while libraries of the process are initialised wait for the start."""
    without_sanitizers = True  # their library must be the first one

    def setUp(self):
        self.assertTrue(os.path.exists(EARLY_SIGNAL), f"{EARLY_SIGNAL} is not built")

    def start(self, number):
        self.world = World(root="/run")
        self.addCleanup(self.world.close)
        self.world.server_class = type("Early", (EarlyServer,), {"early_signal": number})
        self.world.make_namespaces()
        self.world.start()

    def test_signals_that_a_server_handles(self):
        for number, line in ((signal.SIGHUP, "SIGHUP: no configuration file"),
                             (signal.SIGUSR1, "ready: "), (signal.SIGUSR2, "SIGUSR2 does nothing")):
            with self.subTest(signal=number.name):
                self.start(number)
                until(line, lambda: line in self.world.errors())
                self.assertEqual(0, self.world.stop(), self.world.errors())

    def test_a_signal_that_ends_the_server(self):
        for number in signal.SIGTERM, signal.SIGQUIT:
            with self.subTest(signal=number.name):
                self.start(number)
                self.assertEqual(0, self.world.server.wait(), self.world.errors())
                self.assertIn("stopping: 0 connections open", self.world.errors())

    def test_modes_without_a_server(self):
        """They end by the default action, as other programs do."""
        for arguments in ["--check"], ["doctor"]:
            with self.subTest(arguments=arguments):
                done = subprocess.run(
                    [server_path(), *arguments], capture_output=True, timeout=time_limit(),
                    env=dict(os.environ) | {"LD_PRELOAD": EARLY_SIGNAL,
                                            "NJ_EARLY_SIGNAL": str(signal.SIGTERM.value)})
                self.assertEqual(-signal.SIGTERM, done.returncode)


class Spread(unittest.TestCase):
    """The start message and telemetry have the same text about the spread of packets to shards."""

    def spread(self, link):
        world = World(link, root="/run")
        self.addCleanup(world.close)
        world.make_namespaces()
        world.start()
        spread = world.server.telemetry("/nightjar/shards")["spread"]
        self.assertEqual(0, world.stop(), world.errors())
        self.assertIn(spread, world.errors())
        return spread

    def test_rss_is_read_back(self):
        self.assertTrue(self.spread("null").startswith("RSS of the device, key and"))

    def test_without_rss_packets_are_steered(self):
        self.assertTrue(self.spread("tap").startswith("Toeplitz steering through rings"))


class BadInput(unittest.TestCase):
    """Each test expects an exit status above 0, one error message, and no file or link left."""

    GOOD = ["--addr", "198.18.0.2/24", "--root", "/run", "--management-socket", "none"]

    def setUp(self):
        self.world = World()
        self.addCleanup(self.world.close)
        self.world.make_namespaces()
        self.world.reaper.will_make("prefix", self.world.name)

    def refused(self, options, eal=None, wrapper=(), program=None, links=0):
        """
        Runs the server, which must not start. Afterwards there are `links` interfaces named nj0.
        Returns the error message.
        """
        w = self.world
        eal = driver_args("tap") + lcore_args(2) if eal is None else eal
        done = w.run_in(w.server_ns, *wrapper, program or server_path(), *eal, "--file-prefix",
                        w.name, "--", *options)
        self.assertNotEqual(0, done.returncode)
        self.assertLess(done.returncode, 99, f"a crash or a report of a sanitizer:\n{done.stderr}")
        self.assertGreater(done.returncode, 0, f"killed by a signal:\n{done.stderr}")
        lines = [line for line in done.stderr.splitlines() if ": info: preset " not in line]
        self.assertEqual(1, len(lines), f"expected one line:\n{done.stderr}")
        self.assertRegex(lines[0], f"^({TIME} nightjar: error|nightjar): ")
        self.assertEqual("", done.stdout)
        self.assertFalse(os.path.exists(f"/var/run/dpdk/{w.name}"), "left in /var/run/dpdk")
        self.assertFalse(os.path.exists(f"/tmp/dpdk/{w.name}"), "left in /tmp/dpdk")
        self.assertEqual(links, ip("-n", w.server_ns, "-o", "link").count(" nj0"))
        return lines[0]

    def test_unknown_option(self):
        self.assertIn("--bogus", self.refused([*self.GOOD, "--bogus"]))

    def test_missing_address(self):
        self.assertIn("--addr", self.refused(["--root", "/run"]))

    def test_missing_root(self):
        self.assertIn("--root", self.refused(["--addr", "198.18.0.2/24"]))

    def test_root_that_is_not_there(self):
        self.assertIn("/nowhere", self.refused(["--addr", "198.18.0.2/24", "--root", "/nowhere"]))

    def test_bad_addresses(self):
        for addr in ("198.18.0.2", "198.18.0.256/24", "198.18.0.2/33", "x/24", "198.18.0.2/",
                     "0.0.0.0/24", "224.0.0.1/24", ""):
            with self.subTest(addr=addr):
                self.refused(["--addr", addr, "--root", "/run"])

    def test_bad_ports_and_times(self):
        for more in (["--listen", "0"], ["--listen", "65536"], ["--listen", "http"],
                     ["--drain-timeout", "soon"], ["--idle-timeout", "0"],
                     ["--gateway", "198.18.0"], ["stray"]):
            with self.subTest(more=more):
                self.refused([*self.GOOD, *more])

    def test_bad_eal_argument(self):
        self.refused(self.GOOD, eal=[*driver_args("tap"), "--no-such-thing"])

    def test_no_such_driver(self):
        self.refused(self.GOOD, eal=["--no-pci", "--no-huge", "-m", "512", "--vdev=net_bogus0"])

    def test_a_device_that_cannot_be_probed(self):
        """The EAL ignores the failure. The error message has the driver's message."""
        line = self.refused(self.GOOD, eal=["--no-pci", "--no-huge", "-m", "512", *lcore_args(1),
                                            "--vdev=net_af_packet0,iface=nosuch"])
        self.assertIn("no Ethernet port: DPDK: ", line)
        self.assertIn("No such device", line)

    def test_a_pci_device_that_is_not_there(self):
        """The EAL ignores it without a message."""
        line = self.refused(self.GOOD, eal=["--no-huge", "-m", "512", *lcore_args(1),
                                            "-a", "0000:fe:1f.7"])
        self.assertIn("0000:fe:1f.7: no such PCI device (lspci -D lists them)", line)

    def test_a_device_of_a_preset_that_cannot_be_probed(self):
        """It is an error, also if there is another port."""
        for other, cause in (("af_packet,iface=nosuch", "No such device"),
                            ("bonding,member=net_tap0,mode=9", "Invalid (slave|member) mode")):
            with self.subTest(other=other):
                line = self.refused(self.GOOD, eal=["--preset", "tap,iface=nj0", "--preset", other,
                                                    *lcore_args(1)])
                self.assertRegex(line, f"preset {other.split(',')[0]}: DPDK created no port for "
                                       f"net_\\w+0: .*{cause}")

    def test_a_member_of_a_bond(self):
        """--port of a member is an error in each order of the options."""
        bond = ["--preset", "tap,iface=nj0", "--preset", "tap,iface=nj1",
                "--preset", "bonding,mode=1,member=net_tap0,member=net_tap1"]
        for ports in ("0", "2"), ("2", "0"):
            with self.subTest(ports=ports):
                line = self.refused(
                    [*(word for port in ports for word in ("--port", port)), "--addr",
                     "198.18.0.2/24@0", "--addr", "198.18.1.2/24@2", "--root", "/run"],
                    eal=[*bond, *lcore_args(2)])
                self.assertIn("--port 0: it is a member of a bond", line)

    def test_no_device(self):
        self.refused(self.GOOD, eal=["--no-pci", "--no-huge", "-m", "512", *lcore_args(2)])

    def test_too_little_memory(self):
        eal = [*driver_args("tap"), *lcore_args(2)]
        eal[eal.index("-m") + 1] = "4"
        self.refused(self.GOOD, eal=eal)

    def test_tap_name_taken(self):
        ip("-n", self.world.server_ns, "link", "add", "nj0", "type", "veth",
           "peer", "name", "other")
        self.assertIn("nj0", self.refused(self.GOOD, links=1))

    def test_no_privileges(self):
        program, variables = server_for_nobody(self.world.scratch)
        nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                  "env", *(f"{name}={value}" for name, value in variables.items()))
        self.refused(self.GOOD, wrapper=nobody, program=program)

    def test_help_of_the_eal_leaves_no_files(self):
        w = self.world
        for more in ("-v", "-h"):
            done = w.run_in(w.server_ns, server_path(), "--no-pci", "--no-huge", "-m", "512",
                            "--no-shconf", "--file-prefix", w.name, more, "--", *self.GOOD)
            self.assertIn("EAL", done.stdout + done.stderr)
            self.assertFalse(os.path.exists(f"/var/run/dpdk/{w.name}"), "left in /var/run/dpdk")

    def test_a_wrong_eal_argument_with_help(self):
        w = self.world
        done = w.run_in(w.server_ns, server_path(), "--bogus", "-h", "--", *self.GOOD)
        self.assertEqual(1, done.returncode)
        self.assertIn("--bogus", done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1],
                         r"nightjar: error: EAL: \w.* \(the arguments")

    def test_help_and_version_without_root_and_hugepages(self):
        for option, word in (("--help", "--root"), ("--version", "nightjar")):
            done = subprocess.run([server_path(), "--", option], capture_output=True, text=True,
                                  timeout=time_limit())
            self.assertEqual((0, ""), (done.returncode, done.stderr))
            self.assertIn(word, done.stdout)
