# SPDX-License-Identifier: BSD-3-Clause
"""
nightjar.service and instances of nightjar@.service, started by systemd: as their user, in their
sandbox, on a tap. systemd runs in namespaces (systemd.sh).
"""
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import unittest

from tests.netlab.certificates import make_certificate
from tests.netlab.h2client import Client
from tests.netlab.reaper import Reaper
from tests.netlab.units import SCRIPT, SYSTEMD, UID, enter, write_files
from tests.netlab.limits import time_limit
from tests.netlab.world import Failed, inside, until

WITHOUT_SANITIZERS = True  # the address space that they need
NET_ADMIN, NET_RAW = 1 << 12, 1 << 13
LARGE = "x" * (1 << 20)
OPTIONS = "--addr 198.18.0.2/24 --root /srv/www --access-log /var/log/nightjar/access.log"
FILES = {"srv/www/index.html": "hello\n", "srv/www/large": LARGE}


def cgroup2():
    """Where the host mounts cgroup2, writable; None: nowhere."""
    with open("/proc/mounts", encoding="utf-8") as f:
        found = re.search(r"^\S+ (\S+) cgroup2 rw", f.read(), re.M)
    return found and os.path.exists(found[1] + "/cgroup.procs") and found[1]


CAN_BOOT = unittest.skipUnless(os.path.exists(SYSTEMD) and cgroup2(),
                               "no systemd, or no cgroup2 that can be written")


class Booted:
    """Units of the build, run by systemd."""
    unit = "nightjar"

    def boot(self, options=OPTIONS, tls=False, **settings):
        """
        Runs systemd with the units, whose [Service] gets more settings. `tls`: with a certificate
        in /etc.
        """
        name = f"njt-{os.getpid()}-systemd"
        self.cgroup, scratch = os.path.join(cgroup2(), name), f"/run/{name}"
        cpu = min(os.sched_getaffinity(0))
        reaper = Reaper()
        self.addCleanup(reaper.finish)
        reaper.will_make("cgroup", self.cgroup)
        reaper.will_make("folder", scratch)
        os.makedirs(f"{scratch}/root")
        files = f"{scratch}/files"
        write_files(files, f"--lcores 0@{cpu} --preset tap,iface=nj0", options, FILES, settings)
        if tls:
            cert, key = make_certificate(scratch, "server", "IP:198.18.0.2")
            shutil.copy(cert, f"{files}/etc/server.pem")
            shutil.copy(key, f"{files}/etc/server.key")
            os.chmod(f"{files}/etc/server.key", 0o600)
        os.mkdir(self.cgroup)
        self.log = open(f"{scratch}/log", "w+", encoding="utf-8")
        self.addCleanup(self.log.close)
        subprocess.Popen(["sh", SCRIPT, self.cgroup, f"{scratch}/root", files,
                          f"{self.unit}.service"], start_new_session=True,
                         stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.first = until("systemd runs", self.pid_of_systemd)
        until("systemd answers", lambda: self.inside("systemctl", "is-system-running")
              .stdout.strip() not in ("", "offline", "unknown"), 60)

    def pid_of_systemd(self):
        for path in glob.glob(f"{self.cgroup}/init.scope/cgroup.procs"):
            with open(path, encoding="utf-8") as f:
                return f.readline().strip()

    def inside(self, *command):
        return subprocess.run([*enter(self.first), *command], capture_output=True, text=True,
                              timeout=time_limit())

    def show(self, name, unit=None):
        return self.inside("systemctl", "show", unit or self.unit, "-p", name,
                           "--value").stdout.strip()

    def until_state(self, state, unit=None):
        try:
            until(state, lambda: self.show("ActiveState", unit) == state)
        except Failed:
            self.fail(self.inside("systemctl", "status", unit or self.unit).stdout + self.errors())

    def errors(self):
        return self.inside("cat", "/run/errors").stdout

    def check_a_request(self):
        self.inside("ip", "addr", "add", "198.18.0.1/24", "dev", "nj0")
        done = self.inside("curl", "-sS", "--http2-prior-knowledge", "http://198.18.0.2/")
        self.assertEqual("hello\n", done.stdout, done.stderr + self.errors())

    def check_rights(self):
        pid, n_checked = self.show("MainPID"), 0
        for path in self.inside("sh", "-c", f"echo /proc/{pid}/task/*/status").stdout.split():
            status = dict(re.findall(r"^(\w+):\s+(.*)$", self.inside("cat", path).stdout, re.M))
            if not status:  # a worker of io_uring, which has ended
                continue
            self.assertEqual([str(UID)] * 4, status["Uid"].split())
            self.assertEqual(("1", "2"), (status["NoNewPrivs"], status["Seccomp"]))
            for name in "CapEff", "CapPrm", "CapBnd", "CapAmb":
                self.assertEqual(0, int(status[name], 16) & ~(NET_ADMIN | NET_RAW), name)
            n_checked += 1
        self.assertGreater(n_checked, 1)  # the main thread, and others


@CAN_BOOT
class Service(Booted, unittest.TestCase):
    def test_life(self):
        """Start, a request, reload, stop."""
        self.boot(OPTIONS + " --config /etc/nightjar/nightjar.conf")
        self.until_state("active")
        self.assertEqual("ready: http://198.18.0.2:80/ serves /srv/www", self.show("StatusText"))
        self.check_a_request()
        self.check_rights()
        self.assertEqual(0, self.inside("systemctl", "reload", "nightjar").returncode)
        until("the policy is read again", lambda: "policy 2: " in self.errors())
        self.until_state("active")
        self.check_a_request()
        self.assertEqual(0, self.inside("systemctl", "stop", "nightjar").returncode)
        self.assertEqual(("inactive", "success"), (self.show("ActiveState"), self.show("Result")))
        self.assertIn("GET / HTTP/2", self.inside("cat", "/var/log/nightjar/access.log").stdout)
        self.assertNotRegex(self.errors(), r" nightjar: (warning|error): (?!every CPU)")

    def test_a_reload_of_a_broken_file(self):
        """It fails, with the line of the file, and the policy in force stays."""
        self.boot(OPTIONS + " --config /etc/nightjar/nightjar.conf")
        self.until_state("active")
        self.check_reloads("keeping the current policy")

    def test_a_reload_without_a_socket(self):
        """--check and a signal do what `nightjar ctl reload` does with one."""
        self.boot(OPTIONS + " --config /etc/nightjar/nightjar.conf --management-socket none")
        self.until_state("active")
        self.check_reloads("no socket of process")
        self.assertNotIn("keeping the current policy", self.errors())  # it got no signal

    def check_reloads(self, said):
        self.inside("sh", "-c", "echo '[server' >/etc/nightjar/nightjar.conf")
        done = self.inside("systemctl", "reload", "nightjar")
        self.assertNotEqual(0, done.returncode, self.errors())
        self.assertIn("nightjar.conf:1: unterminated section header", self.errors())
        self.assertIn(said, self.errors())
        self.assertNotIn("Landlock)", self.errors())
        self.assertEqual("active", self.show("ActiveState"))
        self.check_a_request()
        self.inside("sh", "-c", "echo '[server]' >/etc/nightjar/nightjar.conf")
        self.assertEqual(0, self.inside("systemctl", "reload", "nightjar").returncode)
        until("the policy is read again", lambda: "policy 2: " in self.errors())

    def test_a_key_as_a_credential(self):
        """Of a file that only root can read."""
        credential = "/run/credentials/nightjar.service/key.pem"
        self.boot(f"{OPTIONS} --tls-cert /etc/server.pem --tls-key {credential}",
                  tls=True, LoadCredential="key.pem:/etc/server.key")
        self.until_state("active")
        self.inside("ip", "addr", "add", "198.18.0.1/24", "dev", "nj0")
        done = self.inside("curl", "-sS", "--http2", "--cacert", "/etc/server.pem",
                           "https://198.18.0.2/")
        self.assertEqual("hello\n", done.stdout, done.stderr + self.errors())
        done = self.inside("systemctl", "reload", "nightjar")
        self.assertEqual(0, done.returncode, self.errors())
        until("it is read again", lambda: "certificates were read again" in self.errors())
        self.assertEqual("600 root", self.inside("stat", "-c", "%a %U", "/etc/server.key")
                         .stdout.strip())

    def test_a_silent_server_is_restarted(self):
        self.boot(WatchdogSec="3s")
        self.until_state("active")
        pid = self.show("MainPID")
        self.inside("kill", f"-{signal.SIGSTOP.value}", pid)
        until("a restart", lambda: self.show("NRestarts") == "1")
        self.until_state("active")
        self.assertNotEqual(pid, self.show("MainPID"))
        self.check_a_request()

    def test_invalid_options_are_not_tried_again(self):
        self.boot("--addr 198.18.0.2/24 --root /srv/www --mtu 1")
        self.until_state("failed")
        self.assertEqual(("2", "0"), (self.show("ExecMainStatus"), self.show("NRestarts")))
        self.assertIn("--mtu 1: expected", self.errors())


@CAN_BOOT
class Instances(Booted, unittest.TestCase):
    unit = "nightjar@a"

    def client(self):
        with inside(f"/proc/{self.first}/ns/net"):
            sock = socket.socket()
        sock.settimeout(time_limit())
        sock.connect(("198.18.0.2", 80))
        client = Client(sock)
        self.addCleanup(client.close)
        return client

    def test_upgrades(self):
        """Instances of the template take over from each other, during downloads."""
        self.boot(OPTIONS + " --upgrade-socket /run/nightjar/upgrade")
        self.until_state("active")
        self.check_a_request()
        for former, following in ("a", "b"), ("b", "a"):
            former, following = f"nightjar@{former}", f"nightjar@{following}"
            client = self.client()
            stream = client.request("/large")
            client.read()
            self.check_a_request()
            done = self.inside("systemctl", "start", following)
            self.assertEqual(0, done.returncode, done.stderr + self.errors())
            self.check_a_request()
            self.assertEqual(("active", "another process takes new connections: 1 connection open"),
                             (self.show("ActiveState", former), self.show("StatusText", former)))
            status, _, body = client.response(stream)
            self.assertEqual((200, LARGE), (status, body.decode()))
            client.close()
            self.until_state("inactive", former)
            self.assertEqual("success", self.show("Result", former))
            self.check_a_request()
        self.assertEqual("active", self.show("ActiveState"))
        self.assertNotRegex(self.errors(), r" nightjar: (warning|error): (?!every CPU)")


if __name__ == "__main__":
    unittest.main()
