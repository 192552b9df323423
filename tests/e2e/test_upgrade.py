# SPDX-License-Identifier: BSD-3-Clause
"""
Upgrades: a new process takes over while the former one completes its connections. Clients notice
nothing: no connection is refused or cut, and all bodies are byte-exact.
"""
import os
import re
import shutil
import signal
import socket
import struct
import tempfile
import unittest

from tests.netlab import management
from tests.netlab.case import fill_site
from tests.netlab.steady import SteadyClients
from tests.netlab.limits import time_limit
from tests.netlab.world import (PREFIX_BITS6, SERVER_ADDR6, Failed, Server, World,
                                server_path, until, version)

PLAIN_BUILD = "upgrade"
NEW_PER_S = 200


class Contained(Server):
    """A server with a PID namespace of its own, as in a container: its process id there is 1."""

    def command(self, *args):
        return ["unshare", "--pid", "--fork", "--kill-child", *super().command(*args)]

    def signal(self, number=signal.SIGTERM):
        pid = self.process.pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
            os.kill(int(children.read()), number)


class Upgrade:
    """A server, and processes that take over."""
    server_class = Server
    link, lcores, ipv6, tls, vlan = "tap", 1, False, False, None
    n_open, n_downloads, download = 100, 10, "200KiB"  # more than the windows of a client
    n_new, new_per_s = 50, NEW_PER_S  # new connections after each step

    def setUp(self):
        self.world = World(self.link, lcores=self.lcores, ipv6=self.ipv6,
                           vlan=self.vlan)
        self.addCleanup(self.world.close)
        world = self.world
        world.root = os.path.join(world.scratch, "site")
        os.mkdir(world.root)
        self.sums = fill_site(world.root)
        self.socket = os.path.join(world.scratch, "upgrade")
        world.options += ["--upgrade-socket", self.socket, "--management-listen", "127.0.0.1:9180"]
        if self.ipv6:
            world.options += ["--addr", f"{SERVER_ADDR6}/{PREFIX_BITS6}"]
        if self.tls:
            world.serve_tls()
        world.make_namespaces()
        world.start()
        self.n_started = 1
        if self.ipv6:
            until("the IPv6 address is checked", lambda: self.ready6(world.server))

    def ready6(self, server):
        return server.addresses().get(f"{SERVER_ADDR6}/{PREFIX_BITS6}") == "ready"

    def start_next(self, *options, ready=True, addr="198.18.0.2/24"):
        """Starts another process with the same command line, but an EAL prefix of its own."""
        world = self.world
        prefix = f"{world.name}-{self.n_started}"
        self.n_started += 1
        world.reaper.will_make("prefix", prefix)
        vlan = ["--vlan", str(self.vlan)] if self.vlan else []
        args = ["--addr", addr, *vlan, *world.options, "--root", world.root, *options]
        server = self.server_class(world.server_ns, prefix, world.eal, args, world.server_errors)
        if ready:
            self.wait_ready(server)
        return server

    def wait_ready(self, server):
        try:
            server.wait_ready()
        except Failed as failed:
            raise Failed(f"{failed}\n{self.world.errors()}") from None

    def check_management(self, server):
        """Only this process accepts connections of the management listener."""
        def listens():
            try:
                with management.connect(self.world.management) as s:
                    who = s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            except OSError:
                return False
            return struct.unpack("3i", who)[0] == server.process.pid

        def answers():
            ready = [management.ask(at, "GET", "/ready", namespace=self.world.server_ns).text
                     for at in [self.world.management] + 8 * [("127.0.0.1", 9180)]]
            return set(ready) == {"ready\n"}
        until("it listens at the path", listens)
        until("it is ready", answers)

    def clients(self):
        clients = SteadyClients(self.world, self.sums, self.ipv6)
        clients.__enter__()
        self.addCleanup(clients.close)
        return clients

    def fill(self, clients):
        """Opens connections, begins downloads, and lets new connections arrive."""
        clients.open(self.n_open)
        until("all connections are open", lambda: clients.n_responses >= self.n_open)
        self.hold(clients)
        clients.arrive(self.new_per_s)
        self.more(clients)

    def hold(self, clients):
        """Begins downloads, which stay in progress until complete()."""
        clients.n_held = 0
        clients.hold(self.n_downloads, self.download)
        until("downloads are in progress", lambda: clients.n_held == self.n_downloads)

    def more(self, clients):
        """Waits for more new connections."""
        until(lambda: f"{self.n_new} new connections; {clients.errors}",
              lambda goal=clients.n_new + self.n_new: clients.n_new >= goal or clients.errors)
        self.check(clients)

    def check(self, clients):
        self.assertEqual([], clients.errors, f"{clients.n_errors} errors\n{self.world.errors()}")

    def complete(self, clients, former):
        """The former process ends when all its connections have."""
        until("all connections moved",
              lambda: clients.n_replaced >= self.n_open or clients.errors)
        self.check(clients)
        self.assertIsNone(former.process.poll())  # downloads are in progress
        clients.n_replaced = 0
        clients.go_on()
        self.assertEqual(0, former.wait(), self.world.errors())
        self.assertEqual([], os.listdir(f"/var/run/dpdk/{former.prefix}"))
        self.more(clients)

    def end(self, clients, server):
        downloads = clients.responses[self.download]
        clients.close()
        self.check(clients)
        server.signal()
        self.assertEqual(0, server.wait(), self.world.errors())
        self.assertFalse(os.path.exists(self.socket))
        return downloads


class Upgrades(Upgrade):
    """Connections, downloads in progress and new connections, while processes take over."""
    n_upgrades = 1

    def test_upgrades(self):
        clients = self.clients()
        self.fill(clients)
        running = self.world.server
        for number in range(self.n_upgrades):
            if number > 0:
                self.hold(clients)
            following = self.start_next()
            self.check_management(following)
            self.more(clients)
            self.complete(clients, running)
            self.check_management(following)
            running = following
        self.assertEqual(self.n_upgrades * self.n_downloads, self.end(clients, running))
        self.assertFalse(os.path.exists(self.world.management))


class Tap(Upgrades, unittest.TestCase):
    lcores = 2
    n_open, n_downloads, download, n_new = 1000, 20, "10MiB", NEW_PER_S
    n_upgrades = 2


class TapTls6(Upgrades, unittest.TestCase):
    ipv6, tls = True, True
    n_open, n_new, new_per_s = 50, 25, 50  # handshakes that the client's Python can do, too


class Veth(Upgrades, unittest.TestCase):
    link = "veth"
    n_open, n_downloads, download, n_new = 1000, 20, "10MiB", NEW_PER_S


class Veth6(Upgrades, unittest.TestCase):
    link, ipv6, lcores, vlan = "veth", True, 2, 7


class Ends(Upgrade, unittest.TestCase):
    """One of the two processes ends before the upgrade is complete."""
    n_open, n_downloads = 50, 5

    def test_new_process_stopped(self):
        """It gives new connections back, and completes its own."""
        clients = self.clients()
        self.fill(clients)
        self.change("block", "198.51.100.0/24,1h")
        self.change("limits", "class=default,streams=1077,for=2h,then=1088")
        second = self.start_next("--drain-timeout", "60s")
        self.more(clients)
        self.check_management(second)
        self.check_changes("198.51.100.0/24")
        self.change("unblock", "198.51.100.0/24")
        self.change("block", "203.0.113.0/24")
        second.signal()
        self.assertEqual(0, second.wait(), self.world.errors())
        self.more(clients)
        self.check_management(self.world.server)
        self.check_changes("203.0.113.0/24")
        third = self.start_next()
        self.check_management(third)
        self.more(clients)
        self.complete(clients, self.world.server)
        self.assertEqual(self.n_downloads, self.end(clients, third))

    def change(self, what, how):
        answer = management.ask(self.world.management, "POST", f"/api/v1/{what}", how)
        self.assertEqual(200, answer.status, answer.text)

    def check_changes(self, blocked):
        """What management has changed is in force in the process that takes new connections."""
        ask = lambda what: management.ask(self.world.management, "GET", f"/api/v1/{what}").json()
        self.assertEqual([blocked], [one["network"] for one in ask("blocks")["blocks"]])
        change, = ask("limits")["changes"]
        self.assertEqual(("default", "streams", "1077", "1088"),
                         tuple(change[key] for key in ("class", "key", "value", "then")))
        self.assertLessEqual(change["seconds_left"], 7200)

    def test_new_process_killed(self):
        """Only its own connections are lost."""
        clients = self.clients()
        self.hold(clients)
        second = self.start_next()
        clients.spawn(clients.visit("one"))
        until("a new connection", lambda: clients.n_new == 1)
        self.assertEqual(1, second.stats()["responses"])
        second.signal(signal.SIGKILL)
        second.wait()
        clients.arrive(self.new_per_s)
        self.more(clients)
        self.complete_alone(clients, self.world.server)

    def complete_alone(self, clients, server):
        """The downloads end, and the server takes part in no upgrade."""
        clients.go_on()
        until("the downloads are complete",
              lambda: clients.responses[self.download] == self.n_downloads or clients.errors)
        self.end(clients, server)

    def test_new_process_killed_before_it_takes_over(self):
        clients = self.clients()
        self.fill(clients)
        for line in "upgrade: nightjar", "large files are read":
            with self.subTest(after=line):
                second = self.start_until(line)
                second.signal(signal.SIGKILL)
                second.wait()
                self.more(clients)
        self.complete_alone(clients, self.world.server)

    def start_until(self, line):
        """Starts a process, and waits for a line of its log."""
        second = self.start_next(ready=False)
        with second.stderr_changed:
            self.assertTrue(second.stderr_changed.wait_for(
                lambda: line in second.stderr_text, time_limit()), self.world.errors())
        return second

    def test_former_process_killed_before_it_is_taken_over(self):
        """The new one starts alone."""
        first = self.world.server
        for line in "runs as user", "large files are read":
            with self.subTest(after=line):
                second = self.start_until(line)
                first.signal(signal.SIGKILL)
                first.wait()
                self.wait_ready(second)
                clients = self.clients()
                clients.arrive(self.new_per_s)
                self.more(clients)
                clients.close()
                first = second
        self.assertIn("has ended, and its connections are lost", first.stderr_text)
        first.signal()
        self.assertEqual(0, first.wait(), self.world.errors())
        self.assertFalse(os.path.exists(self.socket))

    def test_former_process_stopped_before_it_is_taken_over(self):
        """It waits for the new one, and completes its connections."""
        clients = self.clients()
        self.fill(clients)
        second = self.start_until("upgrade: nightjar")
        self.world.server.signal()
        self.wait_ready(second)
        self.more(clients)
        self.complete(clients, self.world.server)
        self.assertEqual(self.n_downloads, self.end(clients, second))

    def test_a_process_that_hangs_in_its_start(self):
        """A process that stops waits half of --drain-timeout for it. It may take over later."""
        self.world.stop()
        self.world.options += ["--drain-timeout", "16s"]
        self.world.server = first = self.start_next()
        self.world.address_client()
        for line in "upgrade: nightjar", "runs as user":
            with self.subTest(after=line):
                clients = self.clients()
                self.hold(clients)
                second = self.start_until(line)
                second.signal(signal.SIGSTOP)
                self.assertIn("another process is about to take over from process",
                              self.failure_of_next())
                first.signal()
                until("it drains", lambda: not self.accepts())
                second.signal(signal.SIGCONT)
                self.wait_ready(second)
                clients.arrive(self.new_per_s)
                self.more(clients)
                clients.go_on()
                self.assertEqual(0, first.wait(), self.world.errors())
                self.more(clients)
                self.assertEqual(self.n_downloads, clients.responses[self.download])
                clients.close()
                first = second
        self.end(clients, second)

    def accepts(self):
        try:
            self.world.connect().close()
        except OSError:
            return False
        return True

    def test_both_stopped(self):
        """Each completes its connections."""
        clients = self.clients()
        self.hold(clients)
        second = self.start_next()
        n_held = clients.n_held
        clients.hold(self.n_downloads, self.download)
        until("downloads from both", lambda: clients.n_held == n_held + self.n_downloads)
        first = self.world.server
        first.signal()
        until("it stops", lambda: "stopping: " in first.stderr_text)
        second.signal()
        until("both stop", lambda: "stopping: " in second.stderr_text)
        clients.go_on()
        for server in first, second:
            self.assertEqual(0, server.wait(), self.world.errors())
        self.assertEqual(2 * self.n_downloads, clients.responses[self.download])
        self.check(clients)
        clients.close()

    def failure_of_next(self):
        third = self.start_next(ready=False)
        self.assertEqual(1, third.wait(), self.world.errors())
        return third.stderr_text

    def test_new_process_fails(self):
        clients = self.clients()
        self.fill(clients)
        second = self.start_next("--access-log", "/nonexistent/log", ready=False)
        self.assertEqual(1, second.wait(), self.world.errors())
        self.more(clients)
        self.complete_alone(clients, self.world.server)

    def test_former_process_killed(self):
        """Only its own connections are lost."""
        clients = self.clients()
        clients.open(self.n_open)
        until("all connections are open", lambda: clients.n_responses >= self.n_open)
        second = self.start_next()
        until("all connections moved", lambda: clients.n_replaced >= self.n_open)
        self.world.server.signal(signal.SIGKILL)
        self.world.server.wait()
        clients.arrive(self.new_per_s)
        self.more(clients)
        self.end(clients, second)


class EndsOnVeth(Upgrade, unittest.TestCase):
    link, n_downloads = "veth", 5
    test_both_stopped = Ends.test_both_stopped


class Options(Upgrade, unittest.TestCase):
    """What the command line of the new process may change."""
    n_downloads = 1

    def refusal(self, *options, addr="198.18.0.2/24"):
        second = self.start_next(*options, ready=False, addr=addr)
        self.assertEqual(1, second.wait(), self.world.errors())
        self.assertIn("info: ready", self.world.server.stderr_text)
        done = self.world.client("curl", "-sS", "-o", "/dev/null", "--http2-prior-knowledge",
                                 self.world.url("/one"))
        self.assertEqual(0, done.returncode, done.stderr)
        return second.stderr_text

    def test_refusals(self):
        clients = self.clients()
        self.hold(clients)
        self.assertIn("port 0 has another set of addresses (--addr) than in process",
                      self.refusal(addr="198.18.0.3/24"))
        self.assertIn("port 0 has another --vlan", self.refusal("--vlan", "7"))
        second = self.start_next()
        self.assertIn("another upgrade is not complete", self.refusal())
        clients.go_on()
        self.assertEqual(0, self.world.server.wait(), self.world.errors())
        self.assertEqual(1, self.end(clients, second))

    def test_mac_address_of_a_tap(self):
        """A tap keeps its MAC address, whatever the new process asks for."""
        clients = self.clients()
        self.hold(clients)
        self.world.eal = [a + ",mac=fixed" if "net_tap" in a else a for a in self.world.eal]
        second = self.start_next()
        clients.go_on()
        self.assertEqual(0, self.world.server.wait(), self.world.errors())
        self.assertEqual(1, self.end(clients, second))

    def test_timeout(self):
        """Connections that are still open after --upgrade-timeout are reset."""
        self.world.stop()
        self.world.options += ["--upgrade-timeout", "100ms"]
        self.world.server = self.start_next()
        self.world.address_client()
        clients = self.clients()
        self.hold(clients)
        second = self.start_next()
        self.assertEqual(0, self.world.server.wait(), self.world.errors())
        self.assertIn("--upgrade-timeout is over: 1 connections are reset",
                      self.world.server.stderr_text)
        clients.close()
        second.signal()
        self.assertEqual(0, second.wait())

    def test_the_log_has_the_version_that_runs(self):
        """Without what follows the commit: the message between the processes has 31 bytes."""
        first, commit = self.world.server, re.split("[+-]", version())[0]
        second = self.start_next()
        self.assertIn(f"info: upgrade: nightjar {commit} runs as process {first.process.pid}\n",
                      second.stderr_text)
        self.assertEqual(0, first.wait(), self.world.errors())
        second.signal()
        self.assertEqual(0, second.wait())

    def test_stale_socket(self):
        """A socket that no process listens to any more is replaced."""
        self.world.server.signal(signal.SIGKILL)
        self.world.server.wait()
        self.assertTrue(os.path.exists(self.socket))
        second = self.start_next()
        status = os.stat(self.socket)
        self.assertEqual((0o600, 65534), (status.st_mode & 0o777, status.st_uid))
        second.signal()
        self.assertEqual(0, second.wait())


class Sockets(unittest.TestCase):
    """What may be at the path of the socket at the start."""

    def make_world(self, path):
        self.world = World("tap", options=["--upgrade-socket", path])
        self.addCleanup(self.world.close)
        self.world.root = os.path.join(self.world.scratch, "site")
        os.mkdir(self.world.root)
        self.world.make_namespaces()

    @staticmethod
    def identity(path):
        """What does not change when the file is looked at."""
        status = os.lstat(path)
        return status.st_ino, status.st_mode, status.st_size, status.st_ctime_ns

    def test_another_file(self):
        """It stays, and the message says that it is no socket."""
        def link(target):
            return lambda path: os.symlink(target, path)

        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        for name, make in (("folder", os.mkdir), ("fifo", os.mkfifo), ("file", os.mknod),
                           ("link", link("file")), ("dangling", link("missing"))):
            with self.subTest(name):
                path = os.path.join(folder, name)
                make(path)
                before = self.identity(path)
                self.make_world(path)
                with self.assertRaises(Failed) as failed:
                    self.world.start()
                self.assertEqual(1, self.world.server.process.returncode)
                self.assertIn(f"--upgrade-socket {path}: something else than a socket exists there",
                              str(failed.exception))
                self.assertEqual(before, self.identity(path))

    def test_a_folder_of_root(self):
        """The server's user makes the socket, and its folder must be writable for that user."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        path = f"{folder}/socket"
        self.make_world(path)
        with self.assertRaises(Failed) as failed:
            self.world.start()
        self.assertIn(f"--upgrade-socket {path}: user nobody cannot make a socket there: "
                      "chown nobody its folder", str(failed.exception))
        self.assertEqual(1, self.world.server.process.returncode)
        self.assertFalse(os.path.lexists(path))

    def test_a_folder_of_the_server_is_replaced(self):
        """
        Its owner replaces it, while the server starts as root, by a link to a folder of root. No
        file there changes its owner.
        """
        victims, home = tempfile.mkdtemp(), tempfile.mkdtemp()
        for folder in victims, home:
            self.addCleanup(shutil.rmtree, folder)
            os.chmod(folder, 0o777 if folder == home else 0o755)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stale:
            stale.bind(f"{victims}/socket")  # nobody listens there
        before = self.identity(f"{victims}/socket")
        os.symlink(victims, f"{home}/folder")
        self.make_world(f"{home}/folder/socket")
        with self.assertRaises(Failed):
            self.world.start()
        self.assertEqual(before, self.identity(f"{victims}/socket"))

    def test_check(self):
        """--check refuses a path that no socket can have."""
        self.make_world("")
        for path, why in (("", "expected a path of 1 to 107 bytes"),
                          ("/" + 107 * "x", "expected a path of 1 to 107 bytes"),
                          ("/upgrade.sock", "it would be in /: name a folder")):
            done = self.world.run_in(self.world.server_ns, server_path(), "--", "--check", "--root",
                                     self.world.root, "--upgrade-socket", path)
            self.assertEqual(2, done.returncode, done.stderr)
            self.assertIn(why, done.stderr)


class AnotherTap(Upgrade, unittest.TestCase):
    def test_refusal(self):
        """A new process cannot take over connections of another interface."""
        self.world.eal = [re.sub("iface=[^,]*", "iface=another", a) for a in self.world.eal]
        second = self.start_next(ready=False)
        self.assertEqual(1, second.wait(), self.world.errors())
        self.assertIn("port 0 has another interface or MAC address", second.stderr_text)
        self.world.server.signal()
        self.assertEqual(0, self.world.server.wait())


class InContainers(Upgrade, unittest.TestCase):
    server_class = Contained
    n_downloads = 5

    def test_on_a_tap(self):
        self.world.stop()
        self.world.server = self.start_next()
        self.world.address_client()
        clients = self.clients()
        self.hold(clients)
        second = self.start_next()
        clients.go_on()
        self.assertEqual(0, self.world.server.wait(), self.world.errors())
        self.assertEqual(self.n_downloads, self.end(clients, second))


class InContainersOnVeth(Upgrade, unittest.TestCase):
    link, server_class = "veth", Contained

    def test_refusal(self):
        """Two processes with the same id cannot share the interface."""
        self.world.stop()
        self.world.server = self.start_next()
        second = self.start_next(ready=False)
        self.assertEqual(1, second.wait(), self.world.errors())
        self.assertIn("the running server has process id 1 and this one 1: start it again, in the "
                      "same PID namespace", second.stderr_text)
        self.world.server.signal()
        self.assertEqual(0, self.world.server.wait())
