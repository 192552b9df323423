# SPDX-License-Identifier: BSD-3-Clause
"""
The servers and clients of ./dev bench disk: nightjar over memif to nightjar-load; nightjar, nginx
and h2o over a veth pair to nj-downloads; fio without a network. Each server has a process of its
own for each turn, on the last CPU; the client is on the first.

A window of a server gives

    bytes        of bodies per second, as the client counted
    cpu_gb       CPU seconds of all its threads per GB of bodies. Of nightjar's lcore only cycles
                 of steps that found work (lcore_gb); of its other threads what the kernel
                 accounted to them (others_gb)
    all_gb       of nginx and h2o: seconds in which their CPU was not idle, per GB: their threads,
                 and the kernel's TCP where it runs on nobody's behalf
    from_disk    bytes that it read from the disk, by bytes of bodies
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
FILLED = 0.002  # of what is asked for, still read from the disk: all is in memory
GROWS = 0.8     # of what the pass before read from the disk: the cache still fills
# Past the page cache, by threads of nginx's own, in as large reads as nightjar's.
NGINX_AIO = "aio threads; directio 4m; output_buffers 2 256k;"


# --- files ----------------------------------------------------------------------------------------

class Site:
    """Files below $NJ_BENCH_DIR or /tmp. reaper.py takes them away, also when we are killed."""

    def __init__(self, folders):
        """`folders`: {name: (files, bytes of each)}"""
        self.reaper = Reaper()
        base = os.environ.get("NJ_BENCH_DIR", tempfile.gettempdir())
        self.root = os.path.join(os.path.abspath(base), f"njt-{os.getpid()}-disk")
        self.folders = folders
        self.n_bytes = sum(n * size for n, size in folders.values())
        free = shutil.disk_usage(base).free
        if free < self.n_bytes + 2 * GIB:
            raise Failed(f"{base} has {free / GIB:.1f} GiB free, the files take "
                         f"{self.n_bytes / GIB:.1f}; NJ_BENCH_DIR names another folder")

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
        """Extents that the file system writes at once are as large as it can make them."""
        with open(path, "wb", buffering=0) as f:
            os.posix_fallocate(f.fileno(), 0, n_bytes)
            for at in range(0, n_bytes, len(block)):
                f.write(memoryview(block)[:n_bytes - at])
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def paths(self, folder, n=None):
        """As in a URL."""
        return [f"/{folder}/{i}" for i in range(n or self.folders[folder][0])]

    def bytes_each(self, path):
        return self.folders[path.split("/")[1]][1]

    def forget(self, paths):
        """The page cache has nothing of them any more."""
        for path in paths:
            with open(self.root + path, "rb") as f:
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def remember(self, paths):
        """The page cache has all of them."""
        buffer = memoryview(bytearray(4 * MIB))
        for path in paths:
            with open(self.root + path, "rb", buffering=0) as f:
                while f.readinto(buffer):
                    pass


def memory_free():
    with open("/proc/meminfo", encoding="ascii") as f:
        found = dict(line.split()[:2] for line in f)
    return int(found["MemAvailable:"]) * KIB


# --- what threads did -----------------------------------------------------------------------------

def thread_seconds(pid, tid):
    """Of one that has ended meanwhile: none."""
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
    """That its threads have had read, readahead included, past the page cache or into it."""
    with open(f"/proc/{pid}/io", encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("read_bytes")).split()[1])


class Line:
    """A connection to DPDK's telemetry that stays: each has a thread of the server's, and to make
    one costs it more than to answer."""

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
    """Looks every now and then how many reads are under way, and where the reader's thread is."""

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
            except OSError:  # it has ended: who waits for its answers finds out
                return

    def told(self):
        self.over.set()
        self.join()
        found = {}
        if self.depths:
            found["depth"] = statistics.mean(self.depths)
        if self.cpus:
            found["reader_on_client"] = self.cpus.count(cpus()[0]) / len(self.cpus)
        return found


# --- nightjar's counters, and those of the others -------------------------------------------------

class Ours:
    """What nightjar says of itself."""

    def start(self):
        super().start()
        self.line = Line(self.server)

    def watch(self):
        return Watch(self)

    def look(self):
        """Its one lcore is left out, and so are the threads that answer us."""
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
        """By the bodies' bytes that the server counted."""
        d = {name: after[name] - before[name] for name in after}
        gb = d["bodies"] / 1e9
        if not gb:
            raise Failed("nothing was served")
        return {"cpu_gb": (d["lcore"] + d["others"]) / gb, "lcore_gb": d["lcore"] / gb,
                "others_gb": d["others"] / gb, "from_disk": d["disk"] / d["bodies"],
                "unused": d["unused"] / d["bodies"], "lcore_busy": d["lcore"] / d["at"]}


class NoWatch:
    def told(self):
        return {}


class Theirs:
    """What the kernel says of them."""

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
        """`n_bytes` of bodies came to the client."""
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
        """(what it says, what of it is told)"""
        found = generator.finish(process, TURN_SECONDS)
        of = found["in_all"]
        if any(of[how] for how in ("broken", "reset", "timeout", "refused")) or \
                of["status_2"] != of["done"]:
            raise Failed(f"not all requests were answered: {of}")
        return found, {"client_busy": found["client_busy"],
                       "first_p99": found["first_byte_ns"]["p99"]}

    def steady(self, paths, seconds):
        """Read again and again, in turn: a window of so long."""
        asked = self.server.stats()["requests"]
        process = self.popen(paths, "--in-turn", "-w", 0, "-d", f"{TURN_SECONDS}s")
        try:
            until("each connection has had an answer, and asked again",
                  lambda: self.server.stats()["requests"] - asked >= 2 * CONNECTIONS,
                  TURN_SECONDS)
            watch, before = self.watch(), self.look()
            time.sleep(seconds)
            after, seen = self.look(), watch.told()
            process.terminate()
            _, values = self.ended(process)
        finally:
            kill(process)
        values["bytes"] = (after["bodies"] - before["bodies"]) / (after["at"] - before["at"])
        return values | seen | self.cost(before, after)

    def once(self, paths):
        """Each path once. Where all are asked for at once the rate counts from then on."""
        return self.requests(paths, len(paths), "--in-turn")

    def requests(self, paths, n, *options):
        process, before = self.popen(paths, "-n", n, *options), self.look()
        watch = self.watch()
        try:
            found, values = self.ended(process)
        finally:
            seen = watch.told()
            kill(process)
        if n <= CONNECTIONS:
            took = found["latency_ns"]["max"] / 1e9
            values["bytes"] = found["in_all"]["body_bytes"] / took
        return values | seen | self.cost(before, self.look())

    def fill(self, paths, passes):
        """Until a pass reads next to nothing from the disk, or hardly less than the one before."""
        before = float("inf")
        for _ in range(passes):
            share = self.once(paths)["from_disk"]
            if share < FILLED or share > before * GROWS:
                break
            before = share


# --- over a veth pair -----------------------------------------------------------------------------

class OverVeth:
    """Of a World with the veth pair of its own; nj-downloads reads."""
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
                **watch.told(),
                **self.cost(before, after, result["window_total"])}

    def once(self, paths):
        """Each path once."""
        watch, before = self.watch(), self.look()
        with self.popen(paths, "--settle", 0, "--hold", TURN_SECONDS, "--repeat", 1) as d:
            result = d.end(TURN_SECONDS)
        after = self.look()
        self.check(result)
        rows = result.rows
        if len(rows) != len(paths) or any(row.how != "done" for row in rows):
            raise Failed(f"{len(rows)} of {len(paths)} files came")
        took = max(row.asked + row.total for row in rows) - min(row.asked for row in rows)
        n_bytes = sum(row.n_bytes for row in rows)
        firsts = sorted(row.ttfb for row in rows)
        return {"bytes": n_bytes / took, "first_p99": firsts[int(len(firsts) * 0.99)] * 1e9,
                "client_busy": result["cpu_seconds"] / result["seconds"],
                **watch.told(), **self.cost(before, after, n_bytes)}


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
            self.take_packets_on(ns, cpu)

    def take_packets_on(self, ns, cpu):
        """As a NIC whose interrupts go to that CPU. Otherwise a packet's receiver is worked for on
        the CPU that sent it, in the time of the thread there: ACKs, and so most of what the server
        sends, in the client's."""
        mask = f"{1 << cpu % 32:x}" + ",0" * (cpu // 32)  # in words of 32 bits, the lowest last
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

# A virtual disk takes a read into large pages in one piece, and into others in 64.
PAGES = {"4 KiB": "glibc.malloc.hugetlb=0", "THP": "glibc.malloc.hugetlb=1"}


def fio(site, paths, depth, pages):
    """Reads all of it, each file from its beginning, in turns, into memory of such pages. In a
    namespace, which ends it when we are killed."""
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
