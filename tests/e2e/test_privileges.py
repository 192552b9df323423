# SPDX-License-Identifier: BSD-3-Clause
"""What a server has given up when it is ready: its user, capabilities, system calls, files."""
import contextlib
import glob
import os
import re
import shutil
import signal
import socket
import tempfile
import unittest

from tests.netlab.case import ServerCase, fill_site
from tests.netlab.certificates import make_certificate
from tests.netlab.handlers_case import HandlersCase
from tests.netlab.limits import time_limit
from tests.netlab.world import (SANITIZED, Failed, Server, World, inside, server_for_nobody,
                                server_path, until)

PLAIN_BUILD = "rights"
NOBODY = 65534
GROUP = 12345  # of no other user, and without a name
NONE = {name: 0 for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
# Threads with the list of allowed calls; the supervisor and the main thread have the same name.
CONFINED = re.compile(r"nj-lcore-main|rte-worker-|lcore-worker-|nj-reader|nj-pages|nj-access|"
                      r"nj-management|nj-mgmt-slow")


def threads_of(pid):
    """A list of dicts of /proc/PID/task/*/status. Workers of io_uring may end meanwhile."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(path) as f:
            found.append(dict(re.findall(r"^(\w+):\s*(.*)$", f.read(), re.M)))
    return found


def capabilities(thread):
    return {name: int(thread[name], 16) for name in NONE}


class Status:
    """A part of the tests below: the status of each thread of a server."""

    def check_threads(self, pid, user=NOBODY, group=NOBODY, left=NONE, is_confined=not SANITIZED):
        threads = threads_of(pid)
        self.assertGreater(len(threads), 8)
        for thread in threads:
            with self.subTest(thread=thread["Name"]):
                self.assertEqual([str(user)] * 4, thread["Uid"].split())
                self.assertEqual([str(group)] * 4, thread["Gid"].split())
                self.assertEqual(left, capabilities(thread))
                self.assertEqual(("1", "2"), (thread["NoNewPrivs"], thread["Seccomp"]))
                if CONFINED.match(thread["Name"]):
                    self.assertEqual(1 + is_confined, int(thread["Seccomp_filters"]))
        self.assertGreater(len([t for t in threads if CONFINED.match(t["Name"])]), 1)


class Tap(Status, ServerCase):
    link = "tap"
    policy = "[list local]\nfile = networks\n\n[server]\nallow = local\n"

    @classmethod
    def prepare(cls):
        cls.elsewhere = os.path.join(cls.world.scratch, "lists")
        os.mkdir(cls.elsewhere)
        cls.write_list("198.18.0.0/24")
        cls.write_policy(cls.policy.replace("networks", f"{cls.elsewhere}/networks"))
        cls.log = os.path.join(cls.world.scratch, "access.log")
        cls.world.options += ["--access-log", cls.log]
        cls.world.serve_tls()
        cls.world.scheme = "http"

    @classmethod
    def write_list(cls, text):
        """As an editor does, under another name first."""
        path = f"{cls.elsewhere}/networks"
        with open(f"{path}.new", "w") as f:
            f.write(text + "\n")
        os.rename(f"{path}.new", path)

    def said(self, text):
        return text in self.world.errors()

    def test_each_thread(self):
        self.curl(self.world.url("/10MiB"), "-o", "/dev/null")
        self.check_threads(self.server.process.pid)
        self.assertTrue(self.said("runs as user nobody, group nogroup, without capabilities"))

    def test_a_core_dump_is_possible(self):
        """The kernel owns files of /proc/PID by root if the process cannot be dumped."""
        self.assertEqual(NOBODY, os.stat(f"/proc/{self.server.process.pid}/mem").st_uid)

    def test_a_private_file_of_another_user(self):
        client = self.client()
        for mode, status in ((0o600, 403), (0o640, 403), (0o644, 200)):
            path = f"{self.root}/mode-{mode:o}"
            with open(path, "w") as f:
                f.write("text\n")
            os.chmod(path, mode)
            with self.subTest(mode=oct(mode)):
                self.assertEqual(status, client.get(f"/mode-{mode:o}")[0])
        client.close()

    def test_a_reload(self):
        """The policy, a list in another folder and the certificate are replaced."""
        version = self.limits()["version"]
        self.write_list("198.18.0.0/25")
        make_certificate(self.world.scratch, "server", "IP:198.18.0.2")
        self.server.signal(signal.SIGHUP)
        until("the policy is in force", lambda: self.limits()["version"] > version)
        until("the certificates are read", lambda: self.said("certificates were read again"))
        self.assertFalse(self.said("error:"), self.world.errors())

    def test_a_rotated_log(self):
        self.curl(self.world.url("/one"), "-o", "/dev/null")
        until("a line", lambda: os.path.getsize(self.log) > 0)
        os.rename(self.log, self.log + ".1")
        self.server.signal(signal.SIGUSR1)
        until("a new log", lambda: os.path.exists(self.log))
        self.assertEqual(NOBODY, os.stat(self.log).st_uid)

    def test_the_root_names_another_folder(self):
        """A folder beside the former one is served. One elsewhere needs a restart (Landlock)."""
        has_landlock = self.said("seccomp, Landlock")
        kept = f"{self.root}-kept"
        os.rename(self.root, kept)
        self.addCleanup(os.rename, kept, self.root)
        self.addCleanup(os.remove, self.root)
        client = self.client()
        with tempfile.TemporaryDirectory(dir="/var/tmp") as far:
            os.chmod(far, 0o755)
            near = os.path.join(self.world.scratch, "near")
            os.makedirs(near, exist_ok=True)
            for folder in (near, far):
                with open(f"{folder}/one", "w") as f:
                    f.write(folder)
                os.symlink(folder, f"{self.root}.new")
                os.rename(f"{self.root}.new", self.root)
                expected = near if has_landlock else folder
                until(f"{expected} is served",
                      lambda: client.get("/one")[2] == expected.encode())
            self.server.signal(signal.SIGHUP)
            if has_landlock:
                until("a message", lambda: self.said("it names a folder now that this server may "
                                                     "not read"))
                self.assertEqual(near.encode(), client.get("/one")[2])
        client.close()

    def test_the_root_is_closed(self):
        """It is the same folder, so that the message names no other one."""
        self.addCleanup(os.chmod, self.root, 0o755)
        os.chmod(self.root, 0o700)
        client = self.client()
        self.assertEqual(403, client.get("/closed")[0])
        self.server.signal(signal.SIGHUP)
        until("a message", lambda: self.said(f"--root {self.root}: the server's user may not read "
                                             "it any more: requests get 403"))
        client.close()

    def test_the_root_is_renamed(self):
        kept = f"{self.root}-renamed"
        os.rename(self.root, kept)
        self.addCleanup(os.rename, kept, self.root)
        self.server.signal(signal.SIGHUP)
        until("a message", lambda: self.said(f"--root {self.root}: it does not exist: the folder "
                                             "that had this name is served"))
        client = self.client()
        self.assertEqual(200, client.get("/one")[0])
        client.close()


class Reloads(unittest.TestCase):
    """SIGHUP, when a file is outside the folders that were named at the start."""

    def test_a_list_elsewhere(self):
        world = World("tap")
        self.addCleanup(world.close)
        world.root = os.path.join(world.scratch, "site")
        os.mkdir(world.root)
        policy = os.path.join(world.scratch, "nightjar.conf")
        world.options += ["--config", policy]
        with tempfile.TemporaryDirectory(dir="/var/tmp") as far:
            os.chmod(far, 0o755)
            with open(f"{far}/networks", "w", encoding="ascii") as f:
                f.write("198.18.0.0/24\n")
            with open(policy, "w", encoding="utf-8") as f:
                f.write("[limits]\nmax_headers = 64\n")
            world.make_namespaces()
            world.start()
            with open(policy, "w", encoding="utf-8") as f:
                f.write(f"[list local]\nfile = {far}/networks\n\n[server]\nallow = local\n")
            world.server.signal(signal.SIGHUP)
            if "seccomp, Landlock" in world.errors():
                until("the cause", lambda: f"{far}/networks: cannot be read: Permission denied, "
                      "though its mode permits it: outside of the folders" in world.errors())
            else:
                until("the policy", lambda: "policy 2" in world.errors())
        self.assertEqual(0, world.stop())


    def test_an_error_of_the_file(self):
        """Nothing is said about Landlock, which has no part in it."""
        world = World("tap", root="/run")
        self.addCleanup(world.close)
        policy = os.path.join(world.scratch, "nightjar.conf")
        world.options += ["--config", policy]
        world.serve_tls()
        with open(policy, "w", encoding="utf-8") as f:
            f.write("[server]\n")
        world.make_namespaces()
        world.start()
        with open(policy, "w", encoding="utf-8") as f:
            f.write("[server\n")
        os.chmod(world.certificate[1], 0o600)
        world.server.signal(signal.SIGHUP)
        until("the cause", lambda: "unterminated section header" in world.errors())
        until("the other cause", lambda: f"{world.certificate[1]}: cannot be used as private key: "
              "Permission denied: it must be readable by the server's user" in world.errors())
        self.assertEqual(0, world.stop())
        self.assertNotIn("(Landlock", world.errors())


class Releases(unittest.TestCase):
    """A release is deployed by replacing a link above the files of the configuration."""

    def deploy(self, number):
        os.symlink(f"releases/{number}", f"{self.base}/current.new")
        os.rename(f"{self.base}/current.new", f"{self.base}/current")

    def make_release(self, number):
        folder = f"{self.base}/releases/{number}"
        for name in "public", "etc", "log":
            os.makedirs(f"{folder}/{name}")
        os.chmod(f"{folder}/log", 0o777)
        with open(f"{folder}/public/one", "w", encoding="ascii") as f:
            f.write(f"release {number}")
        with open(f"{folder}/etc/networks", "w", encoding="ascii") as f:
            f.write(f"198.18.0.0/{24 + number}\n")
        with open(f"{folder}/etc/nightjar.conf", "w", encoding="ascii") as f:
            f.write("[list local]\nfile = networks\n\n[server]\nallow = local\n")
        make_certificate(f"{folder}/etc", "server", "IP:198.18.0.2")

    def start(self, at):
        """`at`: a path to the current release, which may have links."""
        world = self.world
        cert, key = f"{at}/etc/server.crt", f"{at}/etc/server.key"
        world.root = f"{at}/public"
        world.options += ["--access-log", f"{at}/log/access.log", "--config",
                          f"{at}/etc/nightjar.conf", "--tls-cert", cert, "--tls-key", key,
                          "--upgrade-socket", f"{at}/log/upgrade"]
        world.make_namespaces()
        world.start()

    def setUp(self):
        self.world = World("tap")
        self.addCleanup(self.world.close)
        self.base = tempfile.mkdtemp(dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.base)
        os.chmod(self.base, 0o755)
        for number in 1, 2:
            self.make_release(number)
        self.deploy(1)

    def said(self, text):
        return text in self.world.errors()

    def get(self):
        done = self.world.client("curl", "-sS", "--http2-prior-knowledge", self.world.url("/one"))
        return done.stdout

    def check_a_deployment(self):
        self.assertEqual("release 1", self.get())
        self.deploy(2)
        shutil.rmtree(f"{self.base}/releases/1")
        until("the next release is served", lambda: self.get() == "release 2")
        self.world.server.signal(signal.SIGHUP)
        until("the policy is in force", lambda: self.said("policy 2: "))
        until("the certificates are read", lambda: self.said("certificates were read again"))
        # The thread of the log opens the new file some time after the signal.
        log = f"{self.base}/releases/2/log/access.log"
        until("a line in the next log",
              lambda: self.get() and os.path.exists(log) and os.path.getsize(log) > 0)
        # The next process does not find this server. What it may have made there stays.
        until("a warning", lambda: self.said("log/upgrade: this path leads no longer to the socket "
                                             "of this server"))
        upgrade = f"{self.base}/releases/2/log/upgrade"
        other = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(other.close)
        other.bind(upgrade)
        self.assertFalse(self.said("error:"), self.world.errors())
        self.assertEqual(0, self.world.stop(), self.world.errors())
        self.assertTrue(os.path.exists(upgrade))

    def test_a_link_above_the_files(self):
        self.start(f"{self.base}/current")
        self.check_a_deployment()

    def test_a_link_to_a_link(self):
        """Of another folder, to the one that is replaced."""
        os.makedirs(f"{self.base}/sites/links")
        os.symlink("links/site", f"{self.base}/sites/site")
        os.symlink("../../current", f"{self.base}/sites/links/site")
        self.start(f"{self.base}/sites/site")
        self.check_a_deployment()

    def test_a_folder_that_cannot_be_served(self):
        """A line says so, without SIGHUP, and another one when it is over."""
        self.start(f"{self.base}/current")
        os.remove(f"{self.base}/current")
        until("a message", lambda: self.said("it does not exist: the folder that had this name"))
        self.assertEqual("release 1", self.get())
        self.deploy(2)
        until("a message", lambda: self.said("the folder that has this name now is served"))
        self.assertEqual("release 2", self.get())
        if not self.said("seccomp, Landlock"):
            return
        with tempfile.TemporaryDirectory(dir="/var/tmp") as far:
            os.chmod(far, 0o755)
            os.mkdir(f"{far}/public")
            self.deploy(os.path.relpath(far, f"{self.base}/releases"))
            until("a message", lambda: self.said("it names a folder now that this server may not "
                                                 "read"))
            self.assertEqual("release 2", self.get())
        self.deploy(2)
        until("the next message", lambda: self.world.errors().count("has this name now is") == 2)
        for message in "it does not exist", "it names a folder now":
            self.assertEqual(1, self.world.errors().count(message), self.world.errors())


class AfPacket(Tap):
    link = "veth"


class Handlers(Status, HandlersCase):
    def test_each_thread(self):
        """Lcores run handlers, too, so that no thread has the list of allowed calls."""
        self.check_threads(self.server.process.pid, is_confined=False)

    def test_a_program(self):
        with inside(self.world.server_ns):
            listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        listener.settimeout(time_limit())
        client = self.client()
        stream = client.request(f"/run-program?port={listener.getsockname()[1]}")
        with listener.accept()[0] as connection, connection.makefile() as lines:
            self.assertEqual("from a program\n", lines.read())
        self.assertEqual((200, b"it ran\n"), client.response(stream)[::2])

    def test_refused_calls(self):
        client = self.client()
        for path in ("/privileged", "/privileged-on-lcore"):
            for which in range(SANITIZED, 6):  # ptrace() is the first
                with self.subTest(path=path, which=which):
                    self.assertEqual((200, b"EPERM"), client.get(f"{path}?n={which}")[::2])


class OwnUserServer(Server):
    def command(self, program, options, eal):
        program, *wrapper = program
        return [*wrapper, program, *eal, "--", *options]


class OwnUserWorld(World):
    """Started by another user, with ambient capabilities."""

    def start_as(self, program, variables, *capabilities):
        self.reaper.will_make("prefix", self.name)
        sets = ",".join(f"+{name}" for name in capabilities)
        wrapper = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                   f"--inh-caps={sets}", f"--ambient-caps={sets}", f"--bounding-set=-all,{sets}",
                   "env", *(f"{name}={value}" for name, value in variables.items())]
        self.server = OwnUserServer(
            self.server_ns, self.name, self.eal,
            ["--addr", "198.18.0.2/24", "--root", self.root, *self.options], self.server_errors,
            (program, *wrapper))
        self.wait_ready()


class AnotherUser(Status, unittest.TestCase):
    """Servers that are not started as root, or not as they should."""

    def make_world(self, *options, kind=World, link="tap"):
        self.world = kind(link, options=options)
        self.addCleanup(self.world.close)
        self.world.root = os.path.join(self.world.scratch, "site")
        os.mkdir(self.world.root)
        self.sums = fill_site(self.world.root)
        self.world.make_namespaces()

    def get(self):
        done = self.world.client("curl", "-sS", "--http2-prior-knowledge", self.world.url("/"))
        self.assertEqual((0, "<title>nightjar</title>\n"), (done.returncode, done.stdout))

    def refuse(self, status, *words):
        with self.assertRaises(Failed) as refused:
            self.world.start()
        self.assertEqual(status, self.world.server.process.returncode)
        for word in words:
            self.assertIn(word, str(refused.exception))

    def test_ambient_capabilities(self):
        """A server gives them up, with CAP_SETPCAP also those of the bounding set."""
        for link, names, left in (
                ("tap", ("net_admin",), 1 << 12),
                ("tap", ("net_admin", "setpcap"), 0),
                ("veth", ("net_admin", "net_raw", "ipc_lock", "setpcap"), 0)):
            with self.subTest(link=link, names=names):
                self.make_world(kind=OwnUserWorld, link=link)
                program, variables = server_for_nobody(self.world.scratch)
                os.chmod(self.world.scratch, 0o777)
                self.world.start_as(program, variables, *names)
                self.get()
                self.check_threads(self.world.server.process.pid, left=NONE | {"CapBnd": left})
                self.assertEqual(0, self.world.stop())

    def test_links_in_the_run_time_folder(self):
        """The folder belonged to another user, whose links the EAL of root must not follow."""
        self.make_world()
        self.world.eal.remove("--no-shconf")  # then the EAL writes to the file `config`
        victim = os.path.join(self.world.scratch, "victim")
        with open(victim, "w", encoding="ascii") as f:
            f.write("a file of root")
        folder = f"/var/run/dpdk/{self.world.name}"
        os.makedirs(folder)
        os.symlink(victim, os.path.join(folder, "config"))
        os.chown(folder, NOBODY, NOBODY)
        self.world.start()
        self.get()
        with open(victim, encoding="ascii") as f:
            self.assertEqual("a file of root", f.read())
        self.assertEqual(0, self.world.stop())

    def test_a_group_reads_the_key(self):
        self.make_world("--user", f"{NOBODY}:{GROUP}")
        self.world.serve_tls()
        cert, key = self.world.certificate
        os.chown(key, 0, GROUP)
        os.chmod(key, 0o640)
        self.world.start()
        done = self.world.client("curl", "-sS", "--cacert", cert, self.world.url("/"))
        self.assertEqual((0, "<title>nightjar</title>\n"), (done.returncode, done.stdout))
        self.check_threads(self.world.server.process.pid, group=GROUP)
        self.assertEqual(0, self.world.stop())

    def test_root(self):
        self.make_world("--user", "root")
        self.world.start()
        self.get()
        self.assertIn("warning: --user root: the server keeps all privileges", self.world.errors())
        for thread in threads_of(self.world.server.process.pid):
            self.assertEqual(("0", "0"), (thread["Uid"].split()[0], thread["Seccomp"]))
        self.assertEqual(0, self.world.stop())

    def test_unreadable_files(self):
        """The message names the option, the file and the user."""
        def key():
            self.world.serve_tls()
            os.chmod(self.world.certificate[1], 0o600)
            return "--tls-key", self.world.certificate[1]

        def root():
            os.chmod(self.world.root, 0o700)
            return "--root", self.world.root

        def config():
            path = f"{self.world.scratch}/closed.conf"
            with open(path, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as f:
                f.write("[server]\n")
            self.world.options += ["--config", path]
            return "--config", path

        def log():
            folder = f"{self.world.scratch}/log"
            os.mkdir(folder)
            self.world.options += ["--access-log", f"{folder}/access"]
            return "access log", f"{folder}/access"

        def keylog():
            self.world.serve_tls()
            folder = f"{self.world.scratch}/secrets"
            os.mkdir(folder)
            self.world.options += ["--insecure-keylog", "--keylog", f"{folder}/log"]
            return "--keylog", f"{folder}/log"

        for prepare in (key, root, config, log, keylog):
            with self.subTest(prepare.__name__):
                self.make_world()
                option, path = prepare()
                self.refuse(1, f"{option} {path}", "user nobody", "--user")

    def test_an_access_log_that_no_user_can_write(self):
        """Another owner of the folder would not help."""
        for path, cause in (("", "Is a directory"), ("link", "it is a symbolic link"),
                            ("missing/log", "No such file or directory")):
            with self.subTest(path=path):
                self.make_world()
                path = os.path.join(self.world.scratch, path)
                if path.endswith("link"):
                    os.symlink("target", path)
                self.world.options += ["--access-log", path]
                self.refuse(1, f"the access log {path} can't be written: {cause}")
                self.assertNotIn("chown", self.world.errors())

    def test_wrong_users(self):
        for user, words in (("no-such-user", ("there is no user no-such-user", "useradd")),
                            ("nobody:no-such-group", ("there is no group no-such-group",)),
                            ("4294967294:", ("expected NAME or NAME:GROUP",)),
                            ("54321", ("54321:GROUP",)),
                            ("root:nogroup", ("--user root", "takes no group"))):
            with self.subTest(user=user):
                self.make_world("--user", user)
                self.refuse(2, *words)

    def test_another_user_without_root(self):
        self.make_world()
        program, variables = server_for_nobody(self.world.scratch)
        done = self.world.run_in(
            self.world.server_ns, "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
            "--clear-groups", "env", *(f"{name}={value}" for name, value in variables.items()),
            program, *self.world.eal, "--", "--addr", "198.18.0.2/24", "--root", self.world.root,
            "--user", "root")
        self.assertEqual(2, done.returncode)
        self.assertIn("--user root: only root can become another user", done.stderr)

    def test_check(self):
        """--check looks up the user, and becomes nobody."""
        self.make_world()
        for user, status in (("root", 0), ("nobody", 0), ("no-such-user", 2)):
            done = self.world.run_in(self.world.server_ns, server_path(), "--", "--check", "--root",
                                     self.world.root, "--user", user)
            self.assertEqual(status, done.returncode, done.stderr)
