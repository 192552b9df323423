# SPDX-License-Identifier: BSD-3-Clause
"""
The servers and clients of ./dev bench disk: nightjar over memif to nightjar-load; nightjar, nginx
and h2o over a veth pair to nj-downloads; fio without a network. Each server has a process of its
own for each turn, on the last CPU; the client is on the first.

The values of a measured window of a server:

    bytes        of bodies per second, as the client counted
    cpu_gb       CPU seconds of all its threads per GB of bodies. Of nightjar's lcore only cycles
                 of steps that found work (lcore_gb); of its other threads the CPU time that the
                 kernel accounted to them (others_gb)
    all_gb       of nginx and h2o: seconds in which their CPU was not idle, per GB: their threads,
                 and the kernel's TCP work that is accounted to no process
    from_disk    bytes that the server read from the disk, divided by bytes of bodies
    client_busy  share of the client's CPU
"""
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time

from perf.bench.lab import cpus
from perf.bench.peers_contenders import idle_seconds
from perf.bench.peers_worlds import H2o, Nginx, Nightjar, cpu_seconds
from tests.netlab import generator
from tests.netlab.downloader import Downloads
from tests.netlab.priority import FIRST, first, first_of
from tests.netlab.reaper import Reaper
from tests.netlab.world import Failed, make_namespace, until

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
CONNECTIONS, BLOCK = 16, 256 * KIB
OPTIONS = ("--idle-timeout", "10m", "--send-timeout", "10m")
WARM_SECONDS, LOOK_SECONDS, TURN_SECONDS = 0.5, 0.05, 600
FILLED = 0.002  # share of requested bytes read from the disk: below, all files are in memory
GROWS = 0.8     # that share divided by the pass before's: below, the cache still fills
# nginx's own threads read without the page cache, in reads as large as nightjar's.
NGINX_AIO = "aio threads; directio 4m; output_buffers 2 256k;"


# --- files ----------------------------------------------------------------------------------------

class Site:
    """Files below $NJ_BENCH_DIR or /tmp. reaper.py removes them, also after SIGKILL."""

    def __init__(self, folders):
        """`folders`: {name: (files, bytes of each)}"""
        self.reaper = Reaper()
        base = os.environ.get("NJ_BENCH_DIR", tempfile.gettempdir())
        self.root = os.path.join(os.path.abspath(base), f"njt-{os.getpid()}-disk")
        self.folders = folders
        self.n_bytes = sum(n * size for n, size in folders.values())
        free = shutil.disk_usage(base).free
        if free < self.n_bytes + 2 * GIB:
            raise Failed(f"{base} has {free / GIB:.1f} GiB free, the files need "
                         f"{self.n_bytes / GIB:.1f}: set NJ_BENCH_DIR to another folder")

    def __enter__(self):
        try:
            self.reaper.will_make("folder", self.root)
            os.mkdir(self.root, 0o755)
            block = random.Random(1).randbytes(16 * MIB)
            for folder, (n, size) in self.folders.items():
                os.mkdir(os.path.join(self.root, folder), 0o755)
                for i in range(n):
                    self.write(os.path.join(self.root, folder, str(i)), size, block)
        except BaseException:
            self.reaper.finish()
            raise
        return self

    def __exit__(self, *_):
        self.reaper.finish(60)

    @staticmethod
    def write(path, n_bytes, block):
        """Allocates the whole file first, so that the file system makes large extents."""
        with open(path, "wb", buffering=0) as f:
            os.posix_fallocate(f.fileno(), 0, n_bytes)
            for at in range(0, n_bytes, len(block)):
                f.write(memoryview(block)[:n_bytes - at])
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def paths(self, folder, n=None):
        """The paths of the files in a URL."""
        return [f"/{folder}/{i}" for i in range(n or self.folders[folder][0])]

    def bytes_each(self, path):
        return self.folders[path.split("/")[1]][1]

    def forget(self, paths):
        """Removes the files from the page cache."""
        for path in paths:
            with open(self.root + path, "rb") as f:
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def remember(self, paths):
        """Reads the files into the page cache."""
        buffer = memoryview(bytearray(4 * MIB))
        for path in paths:
            with open(self.root + path, "rb", buffering=0) as f:
                while f.readinto(buffer):
                    pass


def memory_free():
    with open("/proc/meminfo", encoding="ascii") as f:
        found = dict(line.split()[:2] for line in f)
    return int(found["MemAvailable:"]) * KIB


# --- accounting of threads ------------------------------------------------------------------------

def thread_seconds(pid, tid):
    """CPU time of a thread; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
            return int(f.read().split()[0]) / 1e9
    except (FileNotFoundError, ProcessLookupError):
        return 0


def threads_named(pid, name):
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/comm", encoding="ascii") as f:
                if f.read().strip() == name:
                    found.append(int(tid))
        except FileNotFoundError:
            pass
    return found


def disk_bytes(pid):
    """Bytes that its threads read from the disk, with readahead, with or without the page cache."""
    with open(f"/proc/{pid}/io", encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("read_bytes")).split()[1])


class Line:
    """A persistent connection to DPDK's telemetry. The server starts a thread for each connection,
    which costs more than an answer."""

    def __init__(self, server):
        self.lock = threading.Lock()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(20)
        self.socket.connect(f"/var/run/dpdk/{server.prefix}/dpdk_telemetry.v2")
        self.n_max = json.loads(self.socket.recv(4096))["max_output_len"] + 1024

    def ask(self, command):
        with self.lock:
            self.socket.send(command.encode())
            return json.loads(self.socket.recv(self.n_max))[command]


class Watch(threading.Thread):
    """Samples the number of reads in flight, and the CPU of the reader's thread."""

    def __init__(self, world):
        super().__init__(daemon=True)
        self.line, self.pid = world.line, world.server.process.pid
        self.depths, self.cpus = [], []
        self.readers = threads_named(self.pid, "nj-reader")
        self.over = threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(LOOK_SECONDS):
            try:
                self.depths.append(self.line.ask("/nightjar/files").get("reads_under_way", 0))
                for tid in self.readers:
                    with open(f"/proc/{self.pid}/task/{tid}/stat", encoding="ascii") as f:
                        self.cpus.append(int(f.read().rsplit(")", 1)[1].split()[36]))
            except OSError:  # the server has ended, which the client of the run reports
                return

    def values(self):
        self.over.set()
        self.join()
        found = {}
        if self.depths:
            found["depth"] = statistics.mean(self.depths)
        if self.cpus:
            found["reader_on_client"] = self.cpus.count(cpus()[0]) / len(self.cpus)
        return found


# --- counters of nightjar and of the peers --------------------------------------------------------

class Ours:
    """Counters of nightjar, from its telemetry."""

    def start(self):
        super().start()
        self.line = Line(self.server)

    def watch(self):
        return Watch(self)

    def look(self):
        """`others` excludes the only lcore and the threads that answer telemetry."""
        pid = self.server.process.pid
        left_out = [tid for name in ("nj-lcore-main", "telemetry-v2")
                    for tid in threads_named(pid, name)]
        stages, files = self.line.ask("/nightjar/stages"), self.line.ask("/nightjar/files")
        return {"at": time.monotonic(), "bodies": self.line.ask("/nightjar/stats")["body_bytes"],
                "lcore": stages["cycles_busy"] / stages["tsc_hz"],
                "others": cpu_seconds(pid) - sum(thread_seconds(pid, tid) for tid in left_out),
                "disk": files["read_bytes"], "unused": files["unused_bytes"],
                "reads": files["reads"], "ahead": files["reads_ahead"]}

    @staticmethod
    def cost(before, after, _n_bytes=0):
        """Costs per body byte, by the server's count."""
        d = {name: after[name] - before[name] for name in after}
        gb = d["bodies"] / 1e9
        if not gb:
            raise Failed("nothing was served")
        return {"cpu_gb": (d["lcore"] + d["others"]) / gb, "lcore_gb": d["lcore"] / gb,
                "others_gb": d["others"] / gb, "from_disk": d["disk"] / d["bodies"],
                "unused": d["unused"] / d["bodies"], "lcore_busy": d["lcore"] / d["at"]}


class NoWatch:
    def values(self):
        return {}


class Theirs:
    """Counters of a peer, from the kernel."""

    def watch(self):
        return NoWatch()

    def look(self):
        pid = self.server.process.pid
        disk = sum(disk_bytes(p) for p in self.workers())
        return {"at": time.monotonic(), "cpu": cpu_seconds(pid), "disk": disk,
                "idle": idle_seconds(cpus()[1])}

    def workers(self):
        pid = self.server.process.pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [pid, *map(int, f.read().split())]

    @staticmethod
    def cost(before, after, n_bytes):
        """Costs per body byte; the client received `n_bytes`."""
        d = {name: after[name] - before[name] for name in after}
        if not n_bytes:
            raise Failed("nothing was served")
        return {"cpu_gb": d["cpu"] / n_bytes * 1e9, "from_disk": d["disk"] / n_bytes,
                "all_gb": max(0, d["at"] - d["idle"]) / n_bytes * 1e9}


# --- over memif -----------------------------------------------------------------------------------

def kill(process):
    if process.poll() is None:
        process.kill()
    process.communicate()


class OverMemif(Ours, generator.Pair):
    name, link = "nightjar", "memif"

    def __init__(self, site, options=()):
        super().__init__(lcores=f"0@{cpus()[1]}", options=["--busy-poll", *OPTIONS, *options])
        self.root = site.root

    def start(self):
        super().start()
        first_of(self.server_ns)

    def popen(self, paths, *options):
        until("the connections of the run before have ended",
              lambda: not self.server.stats()["connections"], 60)
        process = self.load_popen("-q", "-c", CONNECTIONS, "--timeout", f"{TURN_SECONDS}s",
                                  *options, urls=paths, lcores=f"0@{cpus()[0]}")
        first(process.pid)
        return process

    @staticmethod
    def ended(process):
        """(the generator's report, the values that the benchmark takes from it)"""
        found = generator.finish(process, TURN_SECONDS)
        of = found["in_all"]
        if any(of[how] for how in ("broken", "reset", "timeout", "refused")) or \
                of["status_2"] != of["done"]:
            raise Failed(f"not all requests were answered: {of}")
        return found, {"client_busy": found["client_busy"],
                       "first_p99": found["first_byte_ns"]["p99"]}

    def steady(self, paths, seconds):
        """Reads the paths in turn, repeatedly, and measures a window of `seconds`."""
        asked = self.server.stats()["requests"]
        process = self.popen(paths, "--in-turn", "-w", 0, "-d", f"{TURN_SECONDS}s")
        try:
            until("each connection has had a response, and sent a second request",
                  lambda: self.server.stats()["requests"] - asked >= 2 * CONNECTIONS,
                  TURN_SECONDS)
            watch, before = self.watch(), self.look()
            time.sleep(seconds)
            after, seen = self.look(), watch.values()
            process.terminate()
            _, values = self.ended(process)
        finally:
            kill(process)
        values["bytes"] = (after["bodies"] - before["bodies"]) / (after["at"] - before["at"])
        return values | seen | self.cost(before, after)

    def once(self, paths):
        """Reads each path once. If all requests start at once, the rate counts from that time."""
        return self.requests(paths, len(paths), "--in-turn")

    def requests(self, paths, n, *options):
        process, before = self.popen(paths, "-n", n, *options), self.look()
        watch = self.watch()
        try:
            found, values = self.ended(process)
        finally:
            seen = watch.values()
            kill(process)
        if n <= CONNECTIONS:
            took = found["latency_ns"]["max"] / 1e9
            values["bytes"] = found["in_all"]["body_bytes"] / took
        return values | seen | self.cost(before, self.look())

    def fill(self, paths, passes):
        """Reads all paths until a pass reads next to nothing from the disk, or hardly less than the
        pass before."""
        before = float("inf")
        for _ in range(passes):
            share = self.once(paths)["from_disk"]
            if share < FILLED or share > before * GROWS:
                break
            before = share


# --- over a veth pair -----------------------------------------------------------------------------

class OverVeth:
    """For a World with a veth pair of its own; the client is nj-downloads."""
    link = "veth"

    def popen(self, paths, *options, connections=CONNECTIONS, downloads=None):
        n = downloads or max(len(paths), connections)
        return Downloads(self, "--downloads", n, "--connections", connections, "--window",
                         16 * MIB, "--bin", 1000, *options, paths=paths, cpu=cpus()[0], **FIRST)

    @staticmethod
    def check(result):
        if result["other_status"] or result["reset"] or result["gone"] or result["refused"]:
            raise Failed("not all requests were answered: " + ", ".join(
                f"{name} {result[name]}" for name in ("other_status", "reset", "gone", "refused")))

    def steady(self, paths, seconds, downloads=None):
        with self.popen(paths, "--settle", WARM_SECONDS, "--hold", seconds,
                        downloads=downloads) as d:
            d.steady(60)
            watch, before = self.watch(), self.look()
            result = d.end(TURN_SECONDS)
            after = self.look()
        self.check(result)
        return {"bytes": result.rate(), "client_busy": result["cpu_seconds"] / result["seconds"],
                **watch.values(),
                **self.cost(before, after, result["window_total"])}

    def once(self, paths):
        """Reads each path once."""
        watch, before = self.watch(), self.look()
        with self.popen(paths, "--settle", 0, "--hold", TURN_SECONDS, "--repeat", 1) as d:
            result = d.end(TURN_SECONDS)
        after = self.look()
        self.check(result)
        rows = result.rows
        if len(rows) != len(paths) or any(row.how != "done" for row in rows):
            raise Failed(f"only {len(rows)} of {len(paths)} files were received completely")
        took = max(row.asked + row.total for row in rows) - min(row.asked for row in rows)
        n_bytes = sum(row.n_bytes for row in rows)
        firsts = sorted(row.ttfb for row in rows)
        return {"bytes": n_bytes / took, "first_p99": firsts[int(len(firsts) * 0.99)] * 1e9,
                "client_busy": result["cpu_seconds"] / result["seconds"],
                **watch.values(), **self.cost(before, after, n_bytes)}


class NightjarVeth(Ours, OverVeth, Nightjar):
    name = "nightjar"

    def __init__(self, site, options=()):
        super().__init__(options=(*OPTIONS, *options), root=site.root)

    fill = OverMemif.fill


class Peer(Theirs, OverVeth):
    """The veth pair passes packets of up to 64 KiB, neither segmented nor with checksums: the best
    case for a server on the kernel's TCP."""
    link = "veth+tso"

    def start(self):
        super().start()
        self.offloads(True)
        for ns, cpu in ((self.client_ns, cpus()[0]), (self.server_ns, cpus()[1])):
            self.receive_on(ns, cpu)

    def receive_on(self, ns, cpu):
        """Acts like a NIC whose interrupts go to `cpu`. Without RPS the sender's CPU processes a
        received packet in the time of the sending thread: ACKs, and with them most of the server's
        sending, would run in the client's time."""
        mask = f"{1 << cpu % 32:x}" + ",0" * (cpu // 32)  # words of 32 bits, the lowest is the last
        done = self.run_in(ns, "sh", "-c",
                           f"echo {mask} > /sys/class/net/nj0/queues/rx-0/rps_cpus")
        if done.returncode:
            raise Failed(f"receive packet steering: {done.stderr.strip()}")


class NginxSendfile(Peer, Nginx):
    name = "nginx"

    def __init__(self, site, options=""):
        super().__init__(root=site.root, options=options)


class NginxAio(NginxSendfile):
    name = "nginx aio"

    def __init__(self, site, options=""):
        super().__init__(site, f"{NGINX_AIO} {options}")


class H2oFiles(Peer, H2o):
    name = "h2o"

    def __init__(self, site):
        super().__init__(root=site.root)


# --- fio ------------------------------------------------------------------------------------------

# A virtual disk reads 256 KiB into large pages in one segment, and into small pages in 64.
PAGES = {"4 KiB": "glibc.malloc.hugetlb=0", "THP": "glibc.malloc.hugetlb=1"}


def fio(site, paths, depth, pages):
    """Reads all files, each from its beginning, in turn, into memory of this kind of pages. fio
    runs in a namespace, so that the reaper ends it after SIGKILL."""
    reaper, name = Reaper(), f"njt-{os.getpid()}-fio"
    reaper.will_make("namespace", name)
    try:
        make_namespace(name)
        done = subprocess.run(
            ["ip", "netns", "exec", name, "taskset", "-c", str(cpus()[1]), "fio", "--name=cold",
             "--readonly", "--rw=read", "--direct=1", "--ioengine=io_uring", f"--bs={BLOCK}",
             f"--iodepth={depth}", f"--openfiles={len(paths)}", "--file_service_type=roundrobin",
             "--filename=" + ":".join(site.root + path for path in paths),
             "--output-format=json"], capture_output=True, text=True, timeout=TURN_SECONDS,
            env=os.environ | {"GLIBC_TUNABLES": PAGES[pages]}, **FIRST)
    finally:
        reaper.finish()
    if done.returncode:
        raise Failed(f"fio: {done.stderr.strip()[-500:]}")
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    read = job["read"]
    cpu = (job["usr_cpu"] + job["sys_cpu"]) / 100 * read["runtime"] / 1e3
    return {"bytes": read["io_bytes"] / read["runtime"] * 1e3,
            "cpu_gb": cpu / read["io_bytes"] * 1e9, "from_disk": 1.0,
            "read_p99": read["clat_ns"]["percentile"]["99.000000"]}
