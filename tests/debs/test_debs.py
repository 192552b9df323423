# SPDX-License-Identifier: BSD-3-Clause
"""
What a minimal Debian system does with our packages: tests/debs/test.sh made the systems NJ_CHROOT,
with all dependencies, and NJ_BUILDER, with a compiler, and runs this in a network namespace. The
packages are in /packages of both, those of a lower version in /packages/before.
"""
import glob
import os
import re
import signal
import subprocess
import unittest

from tests.netlab.world import until

ROOT, BUILDER = os.environ.get("NJ_CHROOT", ""), os.environ.get("NJ_BUILDER", "")
KERNEL, SERVER = "198.18.0.1/24", "198.18.0.2/24"
URL = "http://" + SERVER.split("/")[0]
BEFORE = "0~before-1"
POLICY, ROTATION = "/etc/nightjar/nightjar.conf", "/etc/logrotate.d/nightjar"
LOG = "/var/log/nightjar/access.log"
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
               "DEBIAN_FRONTEND": "noninteractive"}
# Written by apt, dpkg, adduser and logrotate, or mounted.
VOLATILE = re.compile(r"/(?:dev|packages|proc|run|sys|tmp|var/cache)/"
                      r"|/var/lib/(?:apt|dpkg|logrotate)/"
                      r"|/var/log/(?:apt/|dpkg\.log|alternatives\.log)"
                      r"|/etc/(?:(?:passwd|group|shadow|gshadow|subuid|subgid)-|\.pwd\.lock)$")


def inside(*command, root=ROOT, statuses=(0,)):
    """Runs a command in the chroot. Returns its standard output and error."""
    done = subprocess.run(("chroot", root, *command), env=ENVIRONMENT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
    if done.returncode not in statuses:
        raise AssertionError(f"{command}: status {done.returncode}: {done.stdout}")
    return done.stdout


def read(path):
    with open(ROOT + path, "rb") as f:
        return f.read()


def write(path, data, mode="wb"):
    os.makedirs(os.path.dirname(ROOT + path), exist_ok=True)
    with open(ROOT + path, mode) as f:
        f.write(data)


def files():
    """The paths of the system."""
    found = set()
    for folder, folders, names in os.walk(ROOT):
        folder = folder.removeprefix(ROOT)
        found.update(path for name in (*folders, *names)
                     if not VOLATILE.match((path := f"{folder}/{name}") + "/")
                     and not VOLATILE.match(path))
    return found


def packages(folder, root=ROOT, but="-dbgsym_"):
    """The paths of the .deb files in the system."""
    return [path.removeprefix(root) for path in sorted(glob.glob(f"{root}{folder}/*.deb"))
            if but not in path]


def install(paths, root=ROOT):
    return inside("apt-get", "install", "-y", "--no-install-recommends",
                  "--allow-downgrades", "-o", "Dpkg::Options::=--force-confdef", "-o",
                  "Dpkg::Options::=--force-confold", *paths, root=root)


def installed():
    """
    Returns the version of each package of nightjar that dpkg knows, by name. dpkg also knows a
    removed package until its configuration files are purged.
    """
    lines = inside("dpkg-query", "-W", "-f", "${Package} ${Version}\n").splitlines()
    return {name: version for name, version in map(str.split, filter(None, lines))
            if "nightjar" in name}


def ip(*arguments):
    subprocess.run(("ip", *arguments), check=True)


def fetched(path):
    return subprocess.run(("curl", "-sS", "--fail", "--max-time", "30", "--http2-prior-knowledge",
                           URL + path), check=True, capture_output=True).stdout


class Server:
    """nightjar of the package, on a tap."""

    def __init__(self):
        command = ("chroot", ROOT, "nightjar", "-l", "0", "--preset", "tap,iface=nj0", "--",
                   "--addr", SERVER, "--root", "/srv/www", "--config", POLICY,
                   "--access-log", LOG)
        self.said = []
        self.process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            self.said.append(line)
            if "ready:" in line:
                break
        else:
            raise AssertionError(f"status {self.process.wait()}: {''.join(self.said)}")
        ip("addr", "add", KERNEL, "dev", "nj0")
        ip("link", "set", "nj0", "up")

    def pending(self):
        """The set of pending signals, as a number."""
        with open(f"{ROOT}/proc/{self.process.pid}/status", encoding="ascii") as f:
            return int(re.search(r"^ShdPnd:\s*(\w+)", f.read(), re.M)[1], 16)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        with self.process.stderr as stderr:
            rest = stderr.read()
        if self.process.wait():
            raise AssertionError(f"status {self.process.returncode}: {self.said}{rest}")


@unittest.skipUnless(ROOT, "./dev package --test runs it")
class Packages(unittest.TestCase):
    maxDiff = None

    def tearDown(self):
        if getattr(self, "server", None) and self.server.process.poll() is None:
            self.server.process.kill()
            self.server.process.wait()

    def start(self):
        self.server = Server()
        return self.server

    def test_install_upgrade_purge(self):
        """Installs the version before, upgrades it while it serves, purges it."""
        before = files()
        install(packages("/packages/before"))
        self.assertEqual({BEFORE}, set(installed().values()))
        self.assertEqual(f"nightjar {BEFORE}\n", inside("nightjar", "--version"))
        self.assertIn("limits = none\n", inside("nightjar", "--check", "--config", POLICY))
        self.assertRegex(inside("nightjar", "doctor", statuses=(0, 1)), r"(?m)^\d+ errors?")
        self.assertRegex(inside("id", "nightjar"), r"uid=[1-9]\d*\(nightjar\)")
        self.assertIn(b"\nExecStart=/usr/bin/nightjar ",
                      read("/lib/systemd/system/nightjar.service"))

        write("/srv/www/index.html", page := os.urandom(200_000))
        server = self.start()
        self.assertEqual(page, fetched("/"))

        rotation = read(ROTATION)
        self.assertIn(b"version before", rotation)
        write(POLICY, b"[class edited]\npath = /edited/\nrate = 5MiB/s\n")
        write("/etc/nightjar/private.pem", b"of the administrator")
        kept = {path: read(path) for path in (POLICY, "/etc/nightjar/private.pem",
                                              "/srv/www/index.html")}
        until("the line of the first request", lambda: b"GET" in read(LOG))
        line = read(LOG)
        install(packages("/packages"))
        versions = set(installed().values())
        self.assertEqual(1, len(versions), versions)
        self.assertNotIn(BEFORE, versions)
        self.assertEqual(f"nightjar {versions.pop()}\n", inside("nightjar", "--version"))
        self.assertEqual(kept, {path: read(path) for path in kept})
        self.assertNotIn(b"version before", read(ROTATION), "not edited: replaced")
        self.assertTrue(read(LOG).startswith(line))
        self.assertEqual(page, fetched("/"), "the process of the version before")
        server.stop()

        server = self.start()
        self.assertIn("edited", "".join(server.said) + inside("nightjar", "--check", "--config",
                                                              POLICY))
        self.assertEqual(page, fetched("/"))
        self.rotate()
        server.stop()

        self.assertEqual("", inside("dpkg", "--verify", *installed()).replace(
            f"??5?????? c {POLICY}\n", ""), "files differ from their packages")
        inside("apt-get", "purge", "-y", *installed())
        self.assertEqual({}, installed())
        left = files() - before - {"/srv/www", "/srv/www/index.html"}
        self.assertEqual({"/etc/nightjar", "/etc/nightjar/private.pem"}, left)
        self.assertEqual(set(), before - files(), "files of other packages are missing")

    def rotate(self):
        """
        logrotate renames the log and sends a signal, which stays pending while the server is
        stopped. The server then opens the log again.
        """
        old = read(LOG)
        self.server.process.send_signal(signal.SIGSTOP)
        self.assertEqual("", inside("logrotate", "--force", ROTATION))
        self.assertTrue(self.server.pending() & 1 << signal.SIGUSR1 - 1)
        self.server.process.send_signal(signal.SIGCONT)
        until("the log is opened again", lambda: os.path.exists(ROOT + LOG))
        fetched("/index.html")
        until("the line of a request", lambda: b"/index.html" in read(LOG))
        self.assertTrue(read(LOG + ".1").startswith(old))

    def test_examples(self):
        """The examples are built with the packages alone, and find the library."""
        install([path for path in packages("/packages", BUILDER) if "/libnightjar" in path],
                BUILDER)
        inside("cp", "-r", "/usr/share/doc/libnightjar-dev/examples", "/tmp/examples",
               root=BUILDER)
        inside("make", "-C", "/tmp/examples", root=BUILDER)
        for name in ("hello", "json_api", "paced", "events", "reference"):
            self.assertRegex(inside("ldd", f"/tmp/examples/{name}", root=BUILDER),
                             r"libnightjar\.so\.\d+ => /(?:usr/)?lib/")
        inside("sh", "-c", "cc -o /tmp/examples/static /tmp/examples/hello.c "
               "$(pkg-config --cflags --libs nightjar-static)", root=BUILDER)
        self.assertNotIn("libnightjar", inside("ldd", "/tmp/examples/static", root=BUILDER))

    def test_documents(self):
        """Each link between the pages of nightjar-doc has its file, if it is of the package."""
        folder = inside("mktemp", "-d").strip()
        page, = [path for path in packages("/packages") if "/nightjar-doc_" in path]
        inside("dpkg-deb", "-x", page, folder)
        top = f"{ROOT}{folder}/usr/share/doc/nightjar-doc"
        for name in ("README.md", "docs/deploy.md", "docs/changes.md", "docs/releases.md",
                     "docs/abi/libnightjar.abi", "html/index.html"):
            self.assertTrue(os.path.isfile(f"{top}/{name}"), name)
        pages = glob.glob(f"{top}/**/*.md", recursive=True)
        self.assertGreater(len(pages), 20)
        missing = set()
        for path in pages:
            with open(path, encoding="utf-8") as f:
                text = f.read()
            for link in re.findall(r"\]\((?!https?:)([^)#\s]+)", text):
                target = os.path.normpath(os.path.join(os.path.dirname(path), link))
                if target.startswith((f"{top}/docs", f"{top}/README")) and \
                        not os.path.exists(target):
                    missing.add(f"{path.removeprefix(top)}: {link}")
        self.assertEqual(set(), missing)


if __name__ == "__main__":
    unittest.main()
