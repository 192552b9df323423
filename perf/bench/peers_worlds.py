# SPDX-License-Identifier: BSD-3-Clause
"""
Servers to compare with, each in a world like nightjar's: the same veth pair, the same addresses,
the same CPU, only that the kernel has the server's end, too. Their settings are in perf/peers/.

All offloads are off on both sides, as in lab.py, so that everybody sends packets of the MTU with
their checksums; offloads(True) gives a kernel's server what it has with a good network card. What a
packet costs its receiver is the receiver's: without RPS the CPU that sends into a veth pair also
does the other side's TCP, which no wire does.
"""
import glob
import http.server
import os
import re
import signal
import subprocess
import threading
import time
from functools import partial

from perf.bench.lab import cpus, sysctls  # cpus: (the client's, the server's)
from tests.netlab.priority import FIRST, first_of
from tests.netlab.world import (SERVER_ADDR, PREFIX_BITS, REPO, Failed, World, inside, ip,
                                until)

SETTINGS = os.path.join(REPO, "perf", "peers")
JARS = "/usr/share/java"
JETTY_PARTS = ("server", "http", "io", "util", "servlet", "security", "http2-server",
               "http2-common", "http2-hpack")
CLASSPATH = ":".join([*(f"{JARS}/jetty9-{part}.jar" for part in JETTY_PARTS),
                      f"{JARS}/servlet-api.jar"])
OFFLOADS = ("rx", "tx", "tso", "gso")  # as World turns them off; of the veth's GRO see there


def receive_on(world, ns, cpu):
    """What comes out of the veth pair there is handled by this CPU."""
    done = world.run_in(ns, "sh", "-c",
                        f"echo {1 << cpu:x} > /sys/class/net/nj0/queues/rx-0/rps_cpus")
    if done.returncode:
        raise Failed(f"rps_cpus: {done.stderr.strip()}")


def family(pid):
    """A process and all below it."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [pid, *(p for child in f.read().split() for p in family(int(child)))]


def cpu_seconds(pid):
    """CPU time of a process and all below it, of ended threads too: what clock_getcpuclockid(3)'s
    clocks tell, to the nanosecond, where /proc/PID/stat has hundredths of a second."""
    return sum(time.clock_gettime((~p << 3) | 2) for p in family(pid))


def connections_of(pid):
    """Connections in the network namespace of that process which are not closed on its side."""
    with open(f"/proc/{pid}/net/tcp") as f:
        return sum(line.split()[3] in ("01", "08") for line in f)  # ESTABLISHED, CLOSE_WAIT


class Nightjar(World):
    """One lcore on a CPU of its own. It never sleeps: one client alone would see that."""

    def __init__(self, options=(), root=None):
        super().__init__("veth", lcores=f"0@{cpus()[1]}", options=("--busy-poll", *options))
        self.root = root or os.path.join(self.scratch, "site")
        os.makedirs(self.root, exist_ok=True)

    def start(self):
        super().start()
        first_of(self.server_ns)
        receive_on(self, self.client_ns, cpus()[0])

    def look(self):
        stats = self.server.stats()
        return {"stats": stats, "share": (stats["cycles_busy"], stats["cycles_idle"])}

    @staticmethod
    def busy(before, after):
        """Share of its CPU that it was busy."""
        busy, idle = (b - a for a, b in zip(before["share"], after["share"]))
        return busy / (busy + idle)


class KernelServer:
    """As much of world.Server as a World needs."""

    def __init__(self, world, command):
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", world.server_ns, "taskset", "-c", str(cpus()[1]), *command],
            stdin=subprocess.DEVNULL, stderr=world.server_errors, stdout=subprocess.DEVNULL,
            cwd=world.scratch, **FIRST)

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self, seconds=20):
        """What their exit statuses say on SIGTERM is that, or nothing."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(seconds)
        return 0


class Kernel(World):
    """A server on the kernel's TCP, on the CPU that nightjar's lcore has otherwise."""

    def __init__(self, root=None, first=True):
        super().__init__("veth", lcores=1)
        self.first = first
        os.chmod(self.scratch, 0o755)
        self.root = root or os.path.join(self.scratch, "site")
        os.makedirs(self.root, exist_ok=True)

    def command(self):
        raise NotImplementedError

    def settings(self, name, **values):
        """The path of a copy of perf/peers/NAME with the values at their places."""
        with open(os.path.join(SETTINGS, name)) as f:
            text = f.read()
        for key, value in {"scratch": self.scratch, "addr": SERVER_ADDR, "root": self.root,
                           **values}.items():
            text = text.replace(f"@{key}@", str(value))
        path = os.path.join(self.scratch, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def start(self):
        ip("-n", self.server_ns, "addr", "add", f"{SERVER_ADDR}/{PREFIX_BITS}", "dev", "nj0")
        sysctls(self.server_ns, {"net.core.somaxconn": "16384",
                                 "net.ipv4.tcp_max_syn_backlog": "16384"})
        # A machine whose default is BBR would have them pace their packets with timers. As lab.py.
        ip("-n", self.server_ns, "route", "replace", "198.18.0.0/24", "dev", "nj0", "src",
           SERVER_ADDR, "congctl", "cubic")
        self.server = KernelServer(self, self.command())
        until(lambda: f"it listens; {self.errors()}", self.listens, 30)
        first_of(self.server_ns)
        receive_on(self, self.client_ns, cpus()[0])
        receive_on(self, self.server_ns, cpus()[1])

    def listens(self):
        if self.server.process.poll() is not None:
            raise Failed(f"it ended by itself: {self.errors()}")
        return f"{SERVER_ADDR}:80" in self.run_in(self.server_ns, "ss", "-tlnH").stdout

    def offloads(self, on):
        """TCP segmentation and checksums are the device's, as far as that goes: a packet of 64 KiB
        passes to the client whole, without a checksum. GRO has nothing to do, then."""
        for ns in (self.server_ns, self.client_ns):
            done = self.run_in(ns, "ethtool", "-K", "nj0",
                               *(word for o in OFFLOADS for word in (o, "off" if not on else "on")))
            if done.returncode:
                raise Failed(f"ethtool: {done.stderr.strip()}")

    def look(self):
        """CPU time of its processes, and when that was: the kernel's TCP counts where it runs on
        their behalf, or in their time, not when packets come in while they sleep."""
        return {"stats": {}, "share": (cpu_seconds(self.server.process.pid), time.monotonic())}

    @staticmethod
    def busy(before, after):
        used, passed = (b - a for a, b in zip(before["share"], after["share"]))
        return used / passed


class Nginx(Kernel):
    def __init__(self, options="", root=None):
        super().__init__(root)
        self.nginx_options = options

    def command(self):
        path = self.settings("nginx.conf", options=self.nginx_options)
        return ["nginx", "-e", "stderr", "-p", self.scratch, "-c", path]


class H2o(Kernel):
    def command(self):
        return ["h2o", "-m", "worker", "-c", self.settings("h2o.yaml")]


class Nghttpd(Kernel):
    """One thread is its default. It keeps open what it serves, and logs nothing unless asked."""

    def command(self):
        return ["nghttpd", "--no-tls", "-a", SERVER_ADDR, "-m", "128", "-n", "1", "-d", self.root,
                "80"]


class Haproxy(Kernel):
    ORIGIN_PORT = 8080

    def command(self):
        return ["haproxy", "-db", "-f", self.settings("haproxy.cfg", origin=self.ORIGIN_PORT)]

    def start(self):
        """Until the large files are in its cache there is an origin that has them."""
        super().start()
        handler = partial(Quiet, directory=self.root)
        with inside(self.server_ns):
            origin = http.server.ThreadingHTTPServer(("127.0.0.1", self.ORIGIN_PORT), handler)
        threading.Thread(target=origin.serve_forever, daemon=True).start()
        for name in os.listdir(self.root):
            self.client("curl", "-sf", "--http2-prior-knowledge", "-o", "/dev/null",
                        self.url("/" + name), seconds=20)
        origin.shutdown()
        origin.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Jetty(Kernel):
    """Compiled where it runs. A server's settings: a heap of fixed size, all of it there from the
    start; on one CPU the serial collector has the least to do."""

    JAVA = ("java", "-server", "-Xms512m", "-Xmx512m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC")

    def command(self):
        done = subprocess.run(["javac", "-cp", CLASSPATH, "-d", self.scratch,
                               os.path.join(SETTINGS, "FileServer.java")], capture_output=True,
                              text=True, timeout=120)
        if done.returncode:
            raise Failed(f"javac: {done.stderr.strip()[-2000:]}")
        return [*self.JAVA, "-cp", f"{self.scratch}:{CLASSPATH}", "FileServer", SERVER_ADDR,
                self.root]


KERNEL_PEERS = {"h2o": H2o, "nginx": Nginx, "nghttpd": Nghttpd, "haproxy": Haproxy,
                "jetty": Jetty}


def version(pattern, *command):
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return "not installed"
    found = re.search(pattern, done.stdout + done.stderr)
    return found[1] if found else "unknown"


def nginx_version():
    return version(r"nginx/([\d.]+)", "nginx", "-v")


def jetty_version():
    """Its jar's other name has it."""
    for path in glob.glob(f"{JARS}/jetty9-server-*.jar"):
        return re.search(r"server-([\w.]+)\.jar", path)[1]
    return "not installed"


def versions():
    return {"nginx": nginx_version(), "h2o": version(r"version ([\d.]+)", "h2o", "-v"),
            "nghttpd": version(r"nghttp2/([\d.]+)", "nghttpd", "--version"),
            "haproxy": version(r"version ([\d.]+)", "haproxy", "-v"),
            "jetty": jetty_version(),
            "java": version(r'version "([^"]+)"', "java", "-version"),
            "h2load": version(r"nghttp2/([\d.]+)", "h2load", "--version")}


def haproxy_can():
    """Whether the HAProxy that is here, if one is, can limit bandwidth (2.7 brought it)."""
    try:
        done = subprocess.run(["haproxy", "-vv"], capture_output=True, text=True)
    except FileNotFoundError:
        return "not installed"
    version = re.search(r"version ([\d.]+)", done.stdout)[1]
    return f"{version}: {'has' if 'bwlim' in done.stdout.lower() else 'without'} bwlim"
