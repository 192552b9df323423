# SPDX-License-Identifier: BSD-3-Clause
"""
Servers to compare with, each in a World like nightjar's: the same veth pair, the same addresses,
the same CPU. The only difference: the server's end of the link also belongs to the kernel's TCP.
The settings are in perf/peers/.

All offloads are off on both sides, as in lab.py, so that all servers send packets of the MTU with
their checksums. offloads(True) turns on the offloads of a good network card. RPS charges the
receiving of a packet to the receiver's CPU: without RPS the CPU that sends into a veth pair also
runs the other side's TCP, unlike with a real link.
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
OFFLOADS = ("rx", "tx", "tso", "gso")  # as in World, which also describes the veth's GRO


def receive_on(world, ns, cpu):
    """Makes `cpu` process the packets that this end of the veth pair receives."""
    done = world.run_in(ns, "sh", "-c",
                        f"echo {1 << cpu:x} > /sys/class/net/nj0/queues/rx-0/rps_cpus")
    if done.returncode:
        raise Failed(f"rps_cpus: {done.stderr.strip()}")


def family(pid):
    """A process and all its descendants."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [pid, *(p for child in f.read().split() for p in family(int(child)))]


def cpu_seconds(pid):
    """CPU time of a process and all its descendants, including ended threads. The clocks of
    clock_getcpuclockid(3) count nanoseconds, /proc/PID/stat only hundredths of a second."""
    return sum(time.clock_gettime((~p << 3) | 2) for p in family(pid))


def connections_of(pid):
    """Connections in the process's network namespace that are not closed on its side."""
    with open(f"/proc/{pid}/net/tcp") as f:
        return sum(line.split()[3] in ("01", "08") for line in f)  # ESTABLISHED, CLOSE_WAIT


class Nightjar(World):
    """One lcore on a CPU of its own. It never sleeps: its wake-up would delay a lone client."""

    def __init__(self, options=(), root=None, tls=False):
        super().__init__("veth", lcores=f"0@{cpus()[1]}", options=("--busy-poll", *options))
        if tls:
            self.serve_tls()
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
        """Share of its CPU that the lcore used."""
        busy, idle = (b - a for a, b in zip(before["share"], after["share"]))
        return busy / (busy + idle)


class KernelServer:
    """The part of world.Server that a World needs."""

    def __init__(self, world, command):
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", world.server_ns, "taskset", "-c", str(cpus()[1]), *command],
            stdin=subprocess.DEVNULL, stderr=world.server_errors, stdout=subprocess.DEVNULL,
            cwd=world.scratch, **FIRST)

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self, seconds=20):
        """Ignores the exit status, which after SIGTERM differs between the peers."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(seconds)
        return 0


class Kernel(World):
    """A server on the kernel's TCP, on the CPU of nightjar's lcore in the other worlds."""

    def __init__(self, root=None, first=True, tls=False, http1=False):
        super().__init__("veth", lcores=1)
        self.first, self.http1 = first, http1
        if tls:
            self.serve_tls()
        os.chmod(self.scratch, 0o755)
        self.root = root or os.path.join(self.scratch, "site")
        os.makedirs(self.root, exist_ok=True)

    listen = tls_listen = ""  # for the settings, of cleartext and of TLS

    def command(self):
        raise NotImplementedError

    def settings(self, name, **values):
        """The path of a copy of perf/peers/NAME with the values filled in."""
        with open(os.path.join(SETTINGS, name)) as f:
            text = f.read()
        listen = self.tls_listen if self.certificate else self.listen
        if self.http1:
            listen = listen.replace(" http2", "")
        cert, key = self.certificate or ("", "")
        for key, value in {"listen": listen, "cert": cert, "key": key, "scratch": self.scratch,
                           "addr": SERVER_ADDR, "root": self.root, **values}.items():
            text = text.replace(f"@{key}@", str(value))
        path = os.path.join(self.scratch, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def start(self):
        ip("-n", self.server_ns, "addr", "add", f"{SERVER_ADDR}/{PREFIX_BITS}", "dev", "nj0")
        sysctls(self.server_ns, {"net.core.somaxconn": "16384",
                                 "net.ipv4.tcp_max_syn_backlog": "16384"})
        # With BBR as the default the peers would pace packets with timers. As in lab.py.
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
        port = 443 if self.certificate else 80
        return f"{SERVER_ADDR}:{port}" in self.run_in(self.server_ns, "ss", "-tlnH").stdout

    def offloads(self, on):
        """Turns TSO and checksum offload on or off. With them a packet of 64 KiB reaches the client
        whole, without a checksum, and GRO has no packets to merge."""
        for ns in (self.server_ns, self.client_ns):
            done = self.run_in(ns, "ethtool", "-K", "nj0",
                               *(word for o in OFFLOADS for word in (o, "off" if not on else "on")))
            if done.returncode:
                raise Failed(f"ethtool: {done.stderr.strip()}")

    def look(self):
        """CPU time of its processes, and the time. It includes the kernel's TCP in system calls and
        in interrupts of these processes, and excludes packets that arrive while they sleep."""
        return {"stats": {}, "share": (cpu_seconds(self.server.process.pid), time.monotonic())}

    @staticmethod
    def busy(before, after):
        used, passed = (b - a for a, b in zip(before["share"], after["share"]))
        return used / passed


class Nginx(Kernel):
    listen = "listen @addr@:80 http2 backlog=16384;"
    tls_listen = ("listen @addr@:443 ssl http2 backlog=16384; ssl_certificate @cert@; "
                  "ssl_certificate_key @key@; ssl_protocols TLSv1.3;")

    def __init__(self, options="", root=None, tls=False, http1=False):
        super().__init__(root, tls=tls, http1=http1)
        self.nginx_options = options

    def command(self):
        path = self.settings("nginx.conf", options=self.nginx_options)
        return ["nginx", "-e", "stderr", "-p", self.scratch, "-c", path]


class H2o(Kernel):
    listen = "port: 80"
    tls_listen = ("port: 443\n  ssl:\n    certificate-file: @cert@\n    key-file: @key@\n"
                  "    minimum-version: TLSv1.3")

    def command(self):
        return ["h2o", "-m", "worker", "-c", self.settings("h2o.yaml")]


class Nghttpd(Kernel):
    """By default nghttpd has one thread, keeps files open, and writes no log."""

    def command(self):
        common = ["nghttpd", "-a", SERVER_ADDR, "-m", "128", "-n", "1", "-d", self.root]
        if self.certificate:
            cert, key = self.certificate
            return [*common, "443", key, cert]
        return [*common, "--no-tls", "80"]


class Haproxy(Kernel):
    ORIGIN_PORT = 8080

    def command(self):
        return ["haproxy", "-db", "-f", self.settings("haproxy.cfg", origin=self.ORIGIN_PORT,
                                                      proto="h1" if self.http1 else "h2")]

    def start(self):
        """HAProxy serves from its cache; an origin provides the large files at first."""
        super().start()
        handler = partial(Quiet, directory=self.root)
        with inside(self.server_ns):
            origin = http.server.ThreadingHTTPServer(("127.0.0.1", self.ORIGIN_PORT), handler)
        threading.Thread(target=origin.serve_forever, daemon=True).start()
        for name in os.listdir(self.root):
            self.client("curl", "-sf", "--http1.1" if self.http1 else "--http2-prior-knowledge",
                        "-o", "/dev/null", self.url("/" + name), seconds=20)
        origin.shutdown()
        origin.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Jetty(Kernel):
    """The benchmark compiles the server. Settings as for a server: a heap of fixed size, allocated
    at the start. On one CPU the serial collector has the lowest cost."""

    JAVA = ("java", "-server", "-Xms512m", "-Xmx512m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC")

    def command(self):
        done = subprocess.run(["javac", "-cp", CLASSPATH, "-d", self.scratch,
                               os.path.join(SETTINGS, "FileServer.java")], capture_output=True,
                              text=True, timeout=120)
        if done.returncode:
            raise Failed(f"javac: {done.stderr.strip()[-2000:]}")
        return [*self.JAVA, "-cp", f"{self.scratch}:{CLASSPATH}", "FileServer", SERVER_ADDR,
                self.root]


TLS_PEERS = ("h2o", "nginx", "nghttpd")
HTTP1_PEERS = ("h2o", "nginx", "haproxy")
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
    """The version is in the versioned file name of the jar."""
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
    """Version of the installed HAProxy, if any, and whether it can limit bandwidth (since 2.7)."""
    try:
        done = subprocess.run(["haproxy", "-vv"], capture_output=True, text=True)
    except FileNotFoundError:
        return "not installed"
    version = re.search(r"version ([\d.]+)", done.stdout)[1]
    return f"{version}: {'has' if 'bwlim' in done.stdout.lower() else 'without'} bwlim"
