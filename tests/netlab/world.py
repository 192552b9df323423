# SPDX-License-Identifier: BSD-3-Clause
"""
A server and its clients in network namespaces.

    with World("tap") as world:
        world.client("curl", "--http2-prior-knowledge", world.url("/"))

On "tap" the server and the clients share one namespace. The server's driver creates the tap nj0,
and the clients' address is on its kernel side. On "veth" there are two namespaces, connected by a
veth pair, and the server uses its end with net_af_packet. On "null" there is no connection. With
`vlan` the clients are in that VLAN.

reaper.py removes all namespaces, processes and folders, also when this process is killed. Each wait
has a deadline.
"""
import contextlib
import ctypes
import glob
import itertools
import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time
import tty

from tests.netlab.certificates import make_certificate
from tests.netlab.limits import SECONDS, time_limit
from tests.netlab.programs import BUILD, REPO, program
from tests.netlab.reaper import Reaper
from tests.netlab.vlan import Tagger

SANITIZED = os.environ.get("NJ_SANITIZED") == "1"

SERVER_ADDR, CLIENT_ADDR, PREFIX_BITS = "198.18.0.2", "198.18.0.1", 24
SERVER_ADDR6, CLIENT_ADDR6, PREFIX_BITS6 = "2001:db8::2", "2001:db8::1", 64
CLONE_NEWNET = 0x40000000
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"  # begins each message of a server
_numbers = itertools.count(1)
_worlds = []  # that are open
_libc = ctypes.CDLL(None, use_errno=True)


class Failed(Exception):
    """
    An error with a message for the user. `status`: the exit status of a program that ends because
    of the error.
    """

    def __init__(self, text, status=1):
        super().__init__(text)
        self.status = status


def exit_text(status):
    """The return code of a process as text."""
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


program("app/nightjar/nightjar")
PROGRAMS = {"nightjar": "app/nightjar", "nightjar-examples": "app/examples",
            "nightjar-test-handlers": "tests/e2e/handlers",
            "nightjar-test-embedded": "tests/e2e/embedded",
            "nightjar-test-metrics": "tests/e2e/metrics", "nj-ewyk-server": "perf/ewyk",
            "nj-attack-server": "perf/tools/attack"}
# Without the option a server listens in /run/nightjar, where no test is to leave anything.
HAVE_MANAGEMENT = set(PROGRAMS) - {"nightjar-test-embedded"}


def server_path(program="nightjar"):
    """The program, or in a test of mutants the one in NJ_SERVER."""
    if program == "nightjar" and "NJ_SERVER" in os.environ:
        return os.environ["NJ_SERVER"]
    return os.path.join(BUILD, PROGRAMS[program], program)


def version():
    """The version that the server prints."""
    done = subprocess.run([server_path(), "--version"], capture_output=True, text=True, check=True)
    return done.stdout.removeprefix("nightjar ").removesuffix("\n")


def server_for_nobody(folder):
    """
    Copies the server to `folder`, because other users may have no access to the build. Returns (the
    path of the copy, environment variables for it).
    """
    for library in glob.glob(f"{BUILD}/lib/libnightjar.so.?"):
        shutil.copy(library, folder)
    os.chmod(folder, 0o755)
    return shutil.copy(server_path(), folder), {"LD_LIBRARY_PATH": folder}


def driver_args(name):
    """The EAL arguments of drivers-config/NAME.args."""
    with open(os.path.join(REPO, "drivers-config", name + ".args")) as lines:
        return shlex.split(lines.read(), comments=True)


def lcore_args(n, from_last=False):
    """
    The EAL arguments for `n` lcores on the CPUs of this process, the last ones with `from_last`.
    Lcores share CPUs if there are fewer than `n`. If `n` is a string, it is the value of --lcores.
    """
    if isinstance(n, str):
        return ["--lcores", n]
    cpus = sorted(os.sched_getaffinity(0), reverse=from_last)
    return ["--lcores", ",".join(f"{i}@{cpus[i % len(cpus)]}" for i in range(n))]


def until(what, condition, seconds=SECONDS):
    """Waits until condition() is true, and returns its value. `what` is a text or a function."""
    give_up = time.monotonic() + time_limit(seconds)
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > give_up:
            raise Failed(f"not within {time_limit(seconds):.0f} s: "
                         f"{what() if callable(what) else what}")
        select.select([], [], [], 0.01)


def ip(*args, **more):
    done = subprocess.run(["ip", *args], capture_output=True, text=True,
                          timeout=time_limit(), **more)
    if done.returncode:
        raise Failed(f"ip {' '.join(args)}: {done.stderr.strip()}")
    return done.stdout


@contextlib.contextmanager
def inside(namespace):
    """
    Moves this thread to another namespace, which has a name or a path. Sockets created there stay
    in that namespace.
    """
    def enter(fd):
        if _libc.setns(fd, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(os.path.join("/run/netns", namespace), os.O_RDONLY)
    try:
        enter(there)
        yield
    finally:
        enter(home)
        os.close(home)
        os.close(there)


def make_namespace(name, ipv6=False):
    """Creates a network namespace. Without IPv6 its kernel sends no unsolicited packets."""
    ip("netns", "add", name)
    with inside(name):
        for which in ("all", "default"):
            with open(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6", "w") as f:
                f.write("01"[not ipv6])


def all_errors():
    """The end of what the servers of all open worlds wrote to standard error."""
    return "\n".join(each.errors() for each in _worlds)


class Server:
    """A running nightjar, or another of PROGRAMS. `ns`: its network namespace; `prefix`: its EAL
    file prefix; `more`: arguments of subprocess.Popen()."""

    def __init__(self, ns, prefix, eal, options, stderr=None, program="nightjar", variables=(),
                 **more):
        self.prefix = prefix
        self.output = ""       # standard output, after the end of the server
        self.stderr_text = ""  # the last 64 KiB of standard error
        self.stderr_changed = threading.Condition()
        self.stderr_ended = False
        env = dict(os.environ) | dict(variables)
        env.setdefault("ASAN_OPTIONS", "exitcode=99")
        env.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1:exitcode=99")
        env.setdefault("LSAN_OPTIONS",
                       f"suppressions={REPO}/tests/lsan.supp:print_suppressions=0")
        env.setdefault("TSAN_OPTIONS",
                       f"suppressions={REPO}/tests/tsan.supp:print_suppressions=0")
        # The server's standard error is a terminal if ours is: some output needs a terminal.
        errors, server_end = pty.openpty() if stderr is None and os.isatty(2) else os.pipe()
        if os.isatty(server_end):
            tty.setraw(server_end)
        command = self.command(program, options, [*eal, "--file-prefix", prefix])
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", ns, *command], stdout=subprocess.PIPE, stderr=server_end,
            env=env, start_new_session=True, **{"stdin": subprocess.DEVNULL} | more)
        os.close(server_end)
        self.stderr_thread = threading.Thread(
            target=self.copy_stderr, daemon=True,
            args=(errors, os.dup(stderr.fileno() if stderr else 2)))
        self.stderr_thread.start()

    def command(self, program, options, eal):
        """The command line, as a list of words."""
        return [server_path(program), *eal, "--", *options]

    def copy_stderr(self, errors, to):
        """In a thread: copies the server's standard error to the file descriptor `to`."""
        while True:
            try:
                chunk = os.read(errors, 65536)
            except OSError:  # the other end of a terminal was closed
                chunk = b""
            if chunk:
                os.write(to, chunk)
            with self.stderr_changed:
                self.stderr_text = (self.stderr_text + chunk.decode(errors="replace"))[-65536:]
                self.stderr_ended = not chunk
                self.stderr_changed.notify_all()
            if not chunk:
                os.close(errors)
                os.close(to)
                return

    def wait_ready(self):
        """Waits for the line `nightjar: info: ready`, and returns it."""
        def ready():
            return re.search(r"^\S+ nightjar: info: ready.*\n", self.stderr_text, re.M)
        with self.stderr_changed:
            self.stderr_changed.wait_for(lambda: ready() or self.stderr_ended, time_limit())
            line = ready()
        if line:
            return line.group().rstrip("\n")
        if not self.stderr_ended:
            raise Failed(f"the server was not ready within {time_limit():.0f} s")
        status = self.process.wait(time_limit())
        raise Failed(f"the server ended before it was ready: {exit_text(status)}",
                     2 if status == 2 else 1)  # 2: an option or the policy file is wrong

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self):
        """Waits for the exit status. Reads standard output, so that the pipe does not fill up."""
        try:
            out, _ = self.process.communicate(timeout=time_limit())
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(time_limit())
            raise Failed(f"the server did not end within {time_limit():.0f} s") from None
        self.output += out.decode(errors="replace")
        self.stderr_thread.join(10)
        return self.process.returncode

    def telemetry(self, command):
        """The answer of DPDK's telemetry socket to `command`."""
        path = f"/var/run/dpdk/{self.prefix}/dpdk_telemetry.v2"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(time_limit())
            try:
                s.connect(path)
            except ConnectionRefusedError:
                raise Failed(f"no listener at {path}: the server has ended, "
                             f"status {self.process.poll()}") from None
            answer_bytes_max = json.loads(s.recv(4096))["max_output_len"]
            s.send(command.encode())
            return json.loads(s.recv(answer_bytes_max + 1024))[command.split(",")[0]]

    def stats(self):
        """All counters, summed over the shards."""
        return self.telemetry("/nightjar/stats")

    def ewyk(self):
        """Counts of handlers by mode of execution, with "by_route": {name: counts}."""
        answer = self.telemetry("/nightjar/ewyk")
        routes = (value for value in answer.values() if isinstance(value, dict))
        return answer | {"by_route": {route["route"]: route for route in routes}}

    def addresses(self):
        """{"ADDRESS/PREFIX": state}"""
        return dict(line.split() for line in self.telemetry("/nightjar/addresses"))

    def shards(self):
        """A list with one dict per shard."""
        answer = self.telemetry("/nightjar/shards")
        return [value for name, value in answer.items() if re.fullmatch(r"shard\d+", name)]


class World:
    server_class = Server

    def __init__(self, link="tap", lcores=2, root=None, options=(), eal=(), ipv6=False,
                 vlan=None, program="nightjar"):
        number = next(_numbers)
        self.name = f"njt-{os.getpid()}-{number}"
        self.link = link
        self.server_ns = self.name + "s"
        self.client_ns = self.name + "c" if link == "veth" else self.server_ns
        self.root, self.options, self.ipv6 = root, list(options), ipv6
        self.vlan = vlan
        self.program, self.variables = program, {}
        self.client_dev = f"nj0.{vlan}" if vlan else "nj0"
        self.eal = driver_args({"veth": "af_packet"}.get(link, link)) + lcore_args(lcores)
        self.eal += eal
        self.server = None
        self.tagger = None
        self.reaper = Reaper()
        self.scheme, self.certificate = "http", None
        self.scratch = f"/run/{self.name}"
        self.reaper.will_make("folder", self.scratch)
        os.mkdir(self.scratch)
        os.chmod(self.scratch, 0o777)  # the server writes its logs there, as user nobody
        self.management = f"{self.scratch}/management"  # of the programs with nightjar's options
        if program in HAVE_MANAGEMENT and "--management-socket" not in self.options:
            self.options = ["--management-socket", self.management, *self.options]
        self.server_errors = open(f"{self.scratch}/stderr", "ab")
        _worlds.append(self)

    def __enter__(self):
        try:
            self.make_namespaces()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind, *_):
        try:
            if self.server and self.server.process.poll() is None:
                status = self.stop()
                if status and kind is None:
                    raise Failed(f"exit status {status} after SIGTERM\n{self.errors()}")
        finally:
            self.close()

    def make_namespaces(self):
        for ns in dict.fromkeys((self.server_ns, self.client_ns)):
            self.reaper.will_make("namespace", ns)
            make_namespace(ns, self.ipv6 and ns == self.client_ns)
            ip("-n", ns, "link", "set", "lo", "up")
        if self.link == "veth":
            ip("-n", self.server_ns, "link", "add", "nj0", "type", "veth",
               "peer", "name", "nj0", "netns", self.client_ns)
            for ns in (self.server_ns, self.client_ns):
                self.run_in(ns, "ethtool", "-K", "nj0", "rx", "off", "tx", "off", "tso", "off",
                            "gso", "off", "gro", "off")
            ip("-n", self.server_ns, "link", "set", "nj0", "up")
            self.address_client()

    def address_client(self):
        if self.vlan:
            ip("-n", self.client_ns, "link", "set", "nj0", "up")
            self.make_vlan()
        ip("-n", self.client_ns, "addr", "add", f"{CLIENT_ADDR}/{PREFIX_BITS}",
           "dev", self.client_dev)
        if self.ipv6:
            ip("-n", self.client_ns, "addr", "add", f"{CLIENT_ADDR6}/{PREFIX_BITS6}",
               "dev", self.client_dev, "nodad")
        ip("-n", self.client_ns, "link", "set", self.client_dev, "up")

    def more_addresses(self, n):
        """Adds `n` addresses to the clients, and returns them."""
        more = [f"198.18.0.{100 + i}" for i in range(n)]
        for address in more:
            ip("-n", self.client_ns, "addr", "add", f"{address}/{PREFIX_BITS}", "dev",
               self.client_dev)
        return more

    def make_vlan(self):
        made = self.run_in(self.client_ns, "ip", "link", "add", "link", "nj0", "name",
                           self.client_dev, "type", "vlan", "id", str(self.vlan))
        if made.returncode:
            with inside(self.client_ns):
                self.tagger = Tagger("nj0", self.client_dev, self.vlan)

    def start(self):
        self.reaper.will_make("prefix", self.name)
        options = ["--addr", f"{SERVER_ADDR}/{PREFIX_BITS}", *self.options]
        if self.vlan:
            options += ["--vlan", str(self.vlan)]
        if self.root:
            options += ["--root", self.root]
        self.server = self.server_class(self.server_ns, self.name, self.eal, options,
                                        self.server_errors, self.program, self.variables)
        self.wait_ready()

    def wait_ready(self):
        try:
            self.server.wait_ready()
        except Failed as failed:
            raise Failed(f"{failed}\n{self.errors()}") from None
        if self.link == "tap":
            self.address_client()

    def stop(self):
        self.server.signal()
        return self.server.wait()

    def close(self):
        if self.tagger:
            self.tagger.close()
            self.tagger = None
        if self in _worlds:
            _worlds.remove(self)
        self.server_errors.close()
        self.reaper.finish()

    def errors(self):
        """The end of the server's standard error."""
        with open(self.server_errors.name, "rb") as f:
            return f.read().decode(errors="replace")[-8000:]

    def run_in(self, ns, *command, seconds=SECONDS, **more):
        more = {"capture_output": True, "text": True} | more
        return subprocess.run(["ip", "netns", "exec", ns, *command],
                              timeout=time_limit(seconds), **more)

    def client(self, *command, **more):
        """Runs a command in the clients' namespace."""
        return self.run_in(self.client_ns, *command, **more)

    def client_popen(self, *command, **more):
        return subprocess.Popen(["ip", "netns", "exec", self.client_ns, *command], **more)

    def connect(self, source=None, port=80, source_port=0):
        """A TCP connection from the clients' namespace to the server. `source`, `source_port`: its
        own address and port."""
        with inside(self.client_ns):
            s = socket.socket()
        s.settimeout(time_limit())
        if source or source_port:
            s.bind((source or CLIENT_ADDR, source_port))
        s.connect((SERVER_ADDR, port))
        return s

    def raw_socket(self):
        """A socket that sends Ethernet frames to the server."""
        with inside(self.client_ns):
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        s.bind(("nj0", 0))
        return s

    def server_mac(self):
        self.client("ping", "-c1", "-W5", SERVER_ADDR)
        line = ip("-n", self.client_ns, "neigh", "show", SERVER_ADDR, "dev", self.client_dev)
        return bytes.fromhex(line.split("lladdr ")[1].split()[0].replace(":", ""))

    def url(self, path):
        return f"{self.scheme}://{SERVER_ADDR}{path}"

    def serve_tls(self):
        """From here on url() is of TLS. For nightjar adds the options; other servers use
        `certificate`."""
        self.scheme = "https"
        self.certificate = make_certificate(self.scratch, "server", f"IP:{SERVER_ADDR}")
        cert, key = self.certificate
        self.options += ["--tls-cert", cert, "--tls-key", key]
