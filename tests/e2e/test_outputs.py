# SPDX-License-Identifier: BSD-3-Clause
"""
Outputs that take nothing, as log (standard error) and as access log: a pipe, a socket and a
terminal that nobody reads, a full device, a full file system, and descriptors 0 to 2 that are
closed. While a client floods it with PINGs, for which it logs lines, the server answers other
clients, feeds the watchdog of the service manager, and ends at SIGTERM. Lost lines are counted, in
the log too.
"""
import contextlib
import fcntl
import os
import pty
import re
import signal
import socket
import subprocess
import termios
import tty
import unittest

from tests.e2e.test_notify import Manager
from tests.netlab.case import fill_site
from tests.netlab.h2client import Client
from tests.netlab.limits import time_limit
from tests.netlab.world import SERVER_ADDR, Server, World, server_path, until

PLAIN_BUILD = "system calls"
WATCHDOG_USEC = 200_000
WATCHDOG_MESSAGES = 8  # more than the manager's socket holds unread, when the flood is over
PIPE_BYTES = 4096
FAULTS = 64  # in a policy file: as many lines are logged
BAD_POLICY = "[limits]\n" + "".join(f"nonsense{i} = 1\n" for i in range(FAULTS))


# --- outputs ------------------------------------------------------------------------------------

class Output:
    """An output for a server, `fd`. fill(): from here on it takes nothing."""

    def __init__(self, fd, other=-1):
        self.fd, self.other = fd, other

    def fill(self):
        """Through an open file of its own, whose O_NONBLOCK the server does not see."""
        own = os.open(f"/proc/self/fd/{self.fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(own, b"x" * 512)
        os.close(own)

    def read_until(self, pattern):
        """Reads until the text has the pattern, and returns the text."""
        text = b""
        os.set_blocking(self.other, False)

        def found():
            nonlocal text
            with contextlib.suppress(BlockingIOError):
                text += os.read(self.other, 1 << 16)
            return re.search(pattern, text)
        until(lambda: f"{pattern} in {text[-2000:]}", found)
        return text.decode()

    def close(self):
        for fd in {self.fd, self.other} - {-1}:
            os.close(fd)


def pipe():
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return Output(write, read)


class Terminal(Output):
    def __init__(self):
        ours, servers = pty.openpty()
        tty.setraw(servers)
        super().__init__(servers, ours)

    def fill(self):
        """As Ctrl-S does."""
        termios.tcflow(self.fd, termios.TCOOFF)


class Socket(Output):
    """What journald gives a service as its standard output and standard error."""

    def __init__(self):
        ours, servers = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        servers.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIPE_BYTES)
        super().__init__(servers.detach(), ours.detach())

    def fill(self):
        with socket.socket(fileno=os.dup(self.fd)) as s, contextlib.suppress(BlockingIOError):
            while True:
                s.send(b"x" * 512, socket.MSG_DONTWAIT)


class Full(Output):
    def __init__(self):
        super().__init__(os.open("/dev/full", os.O_WRONLY))

    def fill(self):
        pass


def fill_folder(folder):
    """Fills the file system of the folder, but for what existing files have room for."""
    with open(os.path.join(folder, "fill"), "wb", buffering=0) as f, \
            contextlib.suppress(OSError):
        while True:
            f.write(b"x" * 4096)


# --- a server -----------------------------------------------------------------------------------

class OwnOutputs(Server):
    """A server with the standard descriptors that the test gives it."""

    def __init__(self, world, options, command=(), **descriptors):
        self.prefix = world.name
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", world.server_ns, *command, server_path(), *world.eal,
             "--file-prefix", world.name, "--", "--addr", f"{SERVER_ADDR}/24",
             "--management-socket", "none", *options],
            env=dict(os.environ) | world.variables, start_new_session=True, **descriptors)

    def wait(self):
        return self.process.wait(time_limit())

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(time_limit())


class OutputCase(unittest.TestCase):
    def start(self, *options, command=(), variables=(), files=True, **descriptors):
        """Starts a server and waits until it serves. `command`: of a program that executes it."""
        self.world = World(lcores=1)
        self.addCleanup(self.world.close)
        self.world.make_namespaces()
        self.world.reaper.will_make("prefix", self.world.name)
        path = os.path.join(self.world.scratch, "notify")
        self.manager = Manager(self.world.server_ns, path)
        self.addCleanup(self.manager.sock.close)
        self.world.variables |= {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": str(WATCHDOG_USEC)}
        self.world.variables |= dict(variables)
        root = os.path.join(self.world.scratch, "site")
        os.mkdir(root)
        fill_site(root)
        descriptors = {name: subprocess.DEVNULL for name in ("stdin", "stdout", "stderr")
                       } | descriptors
        self.server = OwnOutputs(self.world, ["--root", root, *options], command, **descriptors)
        self.addCleanup(self.server.end)
        self.manager.until("READY")
        self.world.address_client()

    def output(self, kind):
        output = kind()
        self.addCleanup(output.close)
        return output

    def client(self):
        client = Client(self.world.connect())
        self.addCleanup(client.close)
        return client

    def flood(self):
        """PINGs until the server closes the connection, for which it logs a line."""
        before = self.server.stats()["h2_abuse"]
        client = self.client()
        with contextlib.suppress(ConnectionError):
            while not client.goaway():
                for _ in range(100):
                    client.h2.ping(b"12345678")
                client.flush()
                if not client.read():
                    break
        client.close()
        until("the flood is counted", lambda: self.server.stats()["h2_abuse"] > before)

    def assert_serves_and_ends(self):
        self.flood()
        self.assertEqual(200, self.client().get("/16KiB-1")[0])
        for _ in range(WATCHDOG_MESSAGES):
            self.manager.until("WATCHDOG")
        self.server.signal()
        self.manager.until("STOPPING")
        self.assertEqual(0, self.server.wait())

    def load(self, n=20000):
        done = self.world.client("h2load", "-n", str(n), "-c", "4", "-m", "16",
                                 self.world.url("/one"))
        self.assertIn(f"{n} succeeded, 0 failed", done.stdout)

    def write_policy(self, text):
        with open(self.policy, "w", encoding="utf-8") as f:
            f.write(text)

    def log_many_lines(self, times):
        """Each reload of a policy file with faults logs FAULTS lines and some more."""
        for _ in range(times):
            self.server.signal(signal.SIGHUP)
            self.manager.until("RELOADING")
            self.manager.until("READY")


# --- the log ------------------------------------------------------------------------------------

class Log(OutputCase):
    def blocked(self, kind):
        output = self.output(kind)
        self.start(stderr=output.fd)
        output.fill()
        self.assert_serves_and_ends()

    def test_a_pipe(self):
        self.blocked(pipe)

    def test_a_socket(self):
        self.blocked(Socket)

    def test_a_full_device(self):
        self.blocked(Full)

    def test_a_terminal_with_a_live_line(self):
        output = self.output(Terminal)
        self.start("--live", stderr=output.fd)
        output.read_until(rb" req/s ")
        output.fill()
        self.assert_serves_and_ends()

    def test_a_pipe_whose_reader_has_ended(self):
        output = self.output(pipe)
        self.start(stderr=output.fd)
        os.close(output.other)
        output.other = -1
        self.assert_serves_and_ends()

    def test_a_pipe_that_is_full_before_the_start(self):
        output = self.output(pipe)
        output.fill()
        self.start(stderr=output.fd)
        self.assert_serves_and_ends()

    def test_a_failed_start(self):
        """The process ends, though nobody reads why."""
        output = self.output(pipe)
        output.fill()
        world = World(lcores=1)
        self.addCleanup(world.close)
        world.make_namespaces()
        world.eal = ["--no-huge", "--no-pci", "--no-shconf", "-m", "64"]
        server = OwnOutputs(world, ["--root", "/run"], stderr=output.fd,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(server.end)
        self.assertEqual(1, server.wait())

    def test_the_journal(self):
        output = self.output(Socket)
        st = os.fstat(output.fd)
        self.start(stderr=output.fd, stdout=output.fd,
                   variables={"JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino}"})
        text = output.read_until(rb"ready: ")
        self.assertTrue(all(line.startswith(("<6>nightjar: ", "<4>nightjar: "))
                            for line in text.splitlines()), text)
        output.fill()
        self.assert_serves_and_ends()

    def test_lost_lines_are_counted(self):
        """The pipe has no reader, until lines are lost. Then the log says at their place how many
        these were: of the lines of faults, all others are there."""
        self.policy = os.path.join("/run", f"outputs-{os.getpid()}.conf")
        self.addCleanup(os.unlink, self.policy)
        self.write_policy("")
        output = self.output(pipe)
        self.start("--config", self.policy, stderr=output.fd)
        output.read_until(rb"ready: ")
        self.write_policy(BAD_POLICY)
        reloads = 12
        self.log_many_lines(reloads)
        lost = self.server.stats()["log_lost"]
        self.assertGreater(lost, 0)
        text = output.read_until(rb"lines were lost here: .*\n")
        told = re.findall(r"warning: log: (\d+) lines were lost here: standard error", text)
        self.assertEqual([str(lost)], told)
        self.assertEqual(lost, self.server.stats()["log_lost"])
        per_reload = (text.count("nightjar: ") - 1 + lost) / reloads
        self.assertEqual(per_reload, int(per_reload), text[-2000:])
        self.assertGreater(per_reload, FAULTS)
        self.assert_serves_and_ends()

    def test_a_full_file_system(self):
        """tmpfs of the server's own mount namespace, until there is room again."""
        folder = os.path.join("/run", f"outputs-{os.getpid()}")
        os.mkdir(folder)
        self.addCleanup(os.rmdir, folder)
        self.start(command=["sh", "-c", 'mount -t tmpfs -o size=64k none "$0" && '
                            'exec "$@" 2>>"$0/log"', folder])
        folder = f"/proc/{self.server.process.pid}/root{folder}"
        log = os.path.join(folder, "log")

        def text():
            with open(log, encoding="utf-8") as f:
                return f.read()
        fill_folder(folder)
        while self.server.stats()["log_lost"] == 0:  # the last page of the log has room
            self.flood()
        self.assertEqual(200, self.client().get("/16KiB-1")[0])
        self.assertNotIn("lost here", text())
        os.unlink(os.path.join(folder, "fill"))
        until("the log says what was lost", lambda: "lost here" in text())
        lost = sum(map(int, re.findall(r"log: (\d+) lines? w\S+ lost here", text())))
        self.assertEqual(self.server.stats()["log_lost"], lost)
        self.assert_serves_and_ends()


# --- the access log -----------------------------------------------------------------------------

class AccessLog(OutputCase):
    def wait_access_lost(self):
        until("lines are lost", lambda: self.server.stats()["access_lost"] > 0)

    def blocked(self, kind):
        output = self.output(kind)
        self.start("--access-log", "-", stdout=output.fd, stderr=output.fd)
        output.fill()
        self.load()
        self.wait_access_lost()
        self.assert_serves_and_ends()

    def test_standard_output_is_a_pipe(self):
        self.blocked(pipe)

    def test_standard_output_is_a_socket(self):
        self.blocked(Socket)

    def test_standard_output_is_a_terminal(self):
        self.blocked(Terminal)

    def test_standard_output_is_a_full_device(self):
        self.blocked(Full)

    def test_a_fifo(self):
        """Its reader does not read."""
        path = os.path.join("/run", f"outputs-{os.getpid()}.fifo")
        os.mkfifo(path)
        os.chmod(path, 0o666)
        self.addCleanup(os.unlink, path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.start("--access-log", path)
        self.load()
        self.wait_access_lost()
        self.assert_serves_and_ends()

    def test_a_full_file_system(self):
        folder = os.path.join("/run", f"outputs-{os.getpid()}")
        os.mkdir(folder)
        self.addCleanup(os.rmdir, folder)
        self.start("--access-log", os.path.join(folder, "access.log"),
                   command=["sh", "-c", 'mount -t tmpfs -o size=64k,mode=777 none "$0" && '
                            'exec "$@" 2>>"$0/log"', folder])
        fill_folder(f"/proc/{self.server.process.pid}/root{folder}")
        self.load()
        self.wait_access_lost()
        self.assert_serves_and_ends()


# --- closed descriptors -------------------------------------------------------------------------

class Closed(OutputCase):
    def closed(self, redirections, *options):
        """Starts a server with closed descriptors, `redirections` of sh."""
        self.start(*options, command=["sh", "-c", f'exec "$@" {redirections}', "sh"])

    def targets(self):
        return [os.readlink(f"/proc/{self.server.process.pid}/fd/{fd}") for fd in range(3)]

    def test_each(self):
        for redirections in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            with self.subTest(redirections):
                self.closed(redirections)
                self.assertEqual(["/dev/null"] * 3, self.targets())
                self.assert_serves_and_ends()

    def test_an_access_log(self):
        path = os.path.join("/run", f"outputs-{os.getpid()}.log")
        self.addCleanup(os.unlink, path)
        with open(path, "w", encoding="utf-8"):
            os.chmod(path, 0o666)
        self.closed("<&- >&- 2>&-", "--access-log", path)
        self.assert_serves_and_ends()
        with open(path, encoding="utf-8") as f:
            self.assertRegex(f.read(), r'"GET /16KiB-1 HTTP/2.0" 200')

    def test_an_access_log_on_standard_output(self):
        """Its lines are lost: they are not written to what else has the number 1."""
        errors = self.output(pipe)
        self.start("--access-log", "-", stderr=errors.fd,
                   command=["sh", "-c", 'exec "$@" >&-', "sh"])
        self.assertEqual("/dev/null", self.targets()[1])
        errors.read_until(rb"warning: --access-log -: standard output is closed")
        self.load(100)
        self.assert_serves_and_ends()


if __name__ == "__main__":
    unittest.main()
