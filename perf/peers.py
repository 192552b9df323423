# SPDX-License-Identifier: BSD-3-Clause
"""
Servers to compare with, each in a world like nightjar's: the same veth pair, the same addresses,
the same CPU, only that the kernel has the server's end, too.

All offloads are off on both sides, as in lab.py, so that everybody sends packets of the MTU with
their checksums. What a packet costs its receiver is the receiver's: without RPS the CPU that sends
into a veth pair also does the other side's TCP, which no wire does.
"""
import os
import re
import subprocess
import time

from lab import cpus, sysctls  # cpus: (the client's, the server's)
from priority import FIRST, first_of
from world import SERVER_ADDR, PREFIX_BITS, Failed, World, ip, until

NGINX = """
daemon off;
worker_processes 1;
worker_rlimit_nofile 131072;
pid {scratch}/nginx.pid;
error_log stderr error;
events {{ worker_connections 65536; }}
http {{
    access_log off;
    sendfile on;
    tcp_nodelay on;
    keepalive_requests 1000000000;
    http2_max_concurrent_streams 128;
    open_file_cache max=1000;
    client_body_temp_path {scratch}/t1;
    proxy_temp_path {scratch}/t2;
    fastcgi_temp_path {scratch}/t3;
    uwsgi_temp_path {scratch}/t4;
    scgi_temp_path {scratch}/t5;
    server {{
        listen {addr}:80 http2 backlog=16384;
        root {root};
        {options}
    }}
}}
"""


def receive_on(world, ns, cpu):
    """What comes out of the veth pair there is handled by this CPU."""
    done = world.run_in(ns, "sh", "-c",
                        f"echo {1 << cpu:x} > /sys/class/net/nj0/queues/rx-0/rps_cpus")
    if done.returncode:
        raise Failed(f"rps_cpus: {done.stderr.strip()}")


class Nightjar(World):
    """One lcore on a CPU of its own. It never sleeps: one client alone would see that."""

    def __init__(self, options=()):
        super().__init__("veth", lcores=f"0@{cpus()[1]}", options=("--busy-poll", *options))
        self.root = os.path.join(self.scratch, "site")
        os.mkdir(self.root)

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


class NginxServer:
    """As much of world.Server as a World needs."""

    def __init__(self, world, options, errors):
        path = os.path.join(world.scratch, "nginx.conf")
        with open(path, "w") as f:
            f.write(NGINX.format(scratch=world.scratch, addr=SERVER_ADDR, root=world.root,
                                 options=options))
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", world.server_ns, "taskset", "-c", str(cpus()[1]), "nginx", "-e",
             "stderr", "-p", world.scratch, "-c", path], stdin=subprocess.DEVNULL, stderr=errors,
            stdout=subprocess.DEVNULL, **FIRST)

    def signal(self):
        self.process.terminate()

    def wait(self, seconds=20):
        return self.process.wait(seconds)


class Nginx(World):
    """One worker on the CPU that nightjar's lcore has otherwise."""

    def __init__(self, options=""):
        super().__init__("veth", lcores=1)
        self.root = os.path.join(self.scratch, "site")
        os.mkdir(self.root)
        os.chmod(self.scratch, 0o755)
        self.nginx_options = options

    def start(self):
        ip("-n", self.server_ns, "addr", "add", f"{SERVER_ADDR}/{PREFIX_BITS}", "dev", "nj0")
        sysctls(self.server_ns, {"net.core.somaxconn": "16384",
                                 "net.ipv4.tcp_max_syn_backlog": "16384"})
        self.server = NginxServer(self, self.nginx_options, self.server_errors)
        until(lambda: f"nginx listens; {self.errors()}",
              lambda: self.run_in(self.server_ns, "ss", "-tlnH").stdout.strip())
        first_of(self.server_ns)
        receive_on(self, self.client_ns, cpus()[0])
        receive_on(self, self.server_ns, cpus()[1])

    def look(self):
        """CPU time of its processes, and when that was: the kernel's TCP counts where it runs on
        their behalf, not where packets come in."""
        ticks, pid = 0, self.server.process.pid
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            workers = f.read().split()
        for pid in workers:
            with open(f"/proc/{pid}/stat") as f:
                ticks += sum(int(n) for n in f.read().rsplit(")", 1)[1].split()[11:13])
        return {"stats": {}, "share": (ticks / os.sysconf("SC_CLK_TCK"), time.monotonic())}

    @staticmethod
    def busy(before, after):
        used, passed = (b - a for a, b in zip(before["share"], after["share"]))
        return used / passed


def nginx_version():
    done = subprocess.run(["nginx", "-v"], capture_output=True, text=True)
    return re.search(r"nginx/([\d.]+)", done.stderr)[1]


def haproxy_can():
    """Whether the HAProxy that is here, if one is, can limit bandwidth (2.7 brought it)."""
    try:
        done = subprocess.run(["haproxy", "-vv"], capture_output=True, text=True)
    except FileNotFoundError:
        return "not installed"
    version = re.search(r"version ([\d.]+)", done.stdout)[1]
    return f"{version}: {'has' if 'bwlim' in done.stdout.lower() else 'without'} bwlim"
