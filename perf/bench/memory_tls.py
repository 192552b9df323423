# SPDX-License-Identifier: BSD-3-Clause
"""
./dev bench memory --tls [--connections N] [--json FILE]

Memory of an idle TLS connection, compared with one in cleartext: nightjar, h2o and nginx, a server
process each, with the same clients (perf/tools/handshakes) over a veth pair. Each server gets 1,000
connections, and then the others up to N (100,000). The growth of its anonymous memory in between,
per connection, is the value. Sockets in the kernel of h2o and nginx are not included.

  silent    nothing was sent after connect(), with TLS after the handshake; of nightjar only,
            because the others close such connections
  request   one request was answered

Handshakes are resumed ones, because they are quicker. Where the limit of open files of a
process is below N (ulimit -Hn), h2o and nginx have as many connections as it permits.
"""
import json
import os
import resource
import subprocess
import sys

from perf.bench import record
from perf.bench.handshakes import PROGRAM, verdict
from perf.bench.lab import cpus, sysctls
from perf.bench.peers_worlds import H2o, Nginx, Nightjar, family
from tests.netlab.world import SERVER_ADDR, Failed

FIRST_CONNECTIONS = 1000
TLS_BYTES_MAX = 700
EACH = 15_000  # connections of a process of clients; the open files of a process are limited
SPARE_FILES = 500  # open files of a peer that are not connections
LIMIT = ("65536", "262144")  # of connections, in the settings of the peers
# (server, state)
ROWS = (("nightjar", "silent"), ("nightjar", "request"), ("h2o", "request"), ("nginx", "request"))


class Large:
    """A peer for more connections than in other benchmarks."""

    def settings(self, name, **values):
        path = super().settings(name, **values)
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(text.replace(*LIMIT).replace("131072", LIMIT[1]))
        return path


class LargeH2o(Large, H2o):
    pass


class LargeNginx(Large, Nginx):
    pass


def make(server, n, tls):
    """nightjar's table of connections is less than half full: no client has to yield."""
    if server == "nightjar":
        return Nightjar(tls=tls, options=["--max-connections", str(2 * n),
                                          "--preface-timeout", "60m", "--idle-timeout", "60m"])
    world = {"h2o": LargeH2o, "nginx": LargeNginx}[server]
    return world(tls=tls)


def anonymous(world):
    """Bytes of anonymous memory of the server's processes."""
    total = 0
    for pid in family(world.server.process.pid):
        for line in record.read_text(f"/proc/{pid}/smaps_rollup").split("\n"):
            if line.startswith("Anonymous:"):
                total += int(line.split()[1]) << 10
    return total


class Clients:
    """`n` connections that stay open until close(). A process of clients has at most EACH, from an
    address of its own."""

    def __init__(self, world, state, tls, addresses):
        self.world, self.state, self.tls, self.addresses = world, state, tls, addresses
        self.running = []

    def open(self, n):
        for part in [EACH] * (n // EACH) + [n % EACH] * (n % EACH > 0):
            options = ["--connections", part, "--open", 64, "--source",
                       self.addresses[len(self.running)]]
            options += ["--request"] if self.state == "request" else ["--silent"]
            options += ["--resumed"] if self.tls else ["--clear"]
            process = self.world.client_popen(
                "taskset", "-c", str(cpus()[0]), PROGRAM, "hold", *map(str, options),
                f"{SERVER_ADDR}:{443 if self.tls else 80}", stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True)
            self.running.append(process)
            line = process.stdout.readline()
            if not line or json.loads(line)["failed"]:
                raise Failed(f"nj-handshakes: {line or process.wait(10)}")

    def close(self):
        for process in self.running:
            process.stdin.close()
        for process in self.running:
            process.stdout.close()
            process.wait(120)


def measure(server, state, tls, n):
    """Bytes per connection."""
    with make(server, n, tls) as world:
        with open(os.path.join(world.root, "index.html"), "w") as f:
            f.write("x" * 128)
        sysctls(world.client_ns, {"net.ipv4.ip_local_port_range": "1024 65535"})
        addresses = world.more_addresses(n // EACH + 2)
        clients = Clients(world, state, tls, addresses)
        try:
            clients.open(FIRST_CONNECTIONS)
            before = anonymous(world)
            clients.open(n - FIRST_CONNECTIONS)
            grown = anonymous(world) - before
            check_open(world, server, n)
        finally:
            clients.close()
    return grown / (n - FIRST_CONNECTIONS)


def check_open(world, server, n):
    """All connections are open on the server's side, too."""
    if server == "nightjar":
        is_open = world.server.stats()["connections"]
    else:
        done = world.run_in(world.server_ns, "sh", "-c",
                            "grep -c ' 01 ' /proc/net/tcp")
        is_open = int(done.stdout)
    if is_open < n:
        raise Failed(f"{server}: {is_open:,} of {n:,} connections are open")


def bench(n, json_file):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    n_peers = n if most == resource.RLIM_INFINITY else min(n, most - SPARE_FILES)
    found = []
    for server, state in ROWS:
        row = {"server": server, "state": state,
               "connections": n if server == "nightjar" else n_peers}
        for tls, name in ((False, "clear"), (True, "tls")):
            print(f"\r{server}, {state}, {name}\033[K", end="", file=sys.stderr, flush=True)
            row[name] = measure(server, state, tls, row["connections"])
        found.append(row)
    print("\r\033[K", end="", file=sys.stderr)
    if json_file:
        record.dump(json_file, {"connections": n, "rows": found})
    print(f"bytes per connection\n\n{'server':<10}{'state':<10}{'connections':>12}{'cleartext':>12}"
          f"{'TLS':>12}{'more':>12}")
    for row in found:
        print(f"{row['server']:<10}{row['state']:<10}{row['connections']:>12,}"
              f"{row['clear']:>12,.0f}{row['tls']:>12,.0f}{row['tls'] - row['clear']:>12,.0f}")
    if n_peers < n:
        print(f"\nh2o and nginx have {n_peers:,} connections: a process may have {most:,} open "
              "files")
    print("\ntargets:")
    for row in found:
        if row["server"] == "nightjar":
            more = row["tls"] - row["clear"]
            verdict(f"TLS on top of cleartext, {row['state']}", f"<= {TLS_BYTES_MAX} B",
                    f"{more:.0f} B", more <= TLS_BYTES_MAX)
