# SPDX-License-Identifier: BSD-3-Clause
"""
`./dev run`: nightjar on up to two lcores, with a tap in a network namespace. The host reaches it at
127.0.0.1:8080. It needs no NIC, no hugepages and no configuration. Nothing is left afterwards.

The path of a byte: curl -> 127.0.0.1:8080 -> relay.py (accepts on the host, connects in the
namespace) -> the kernel's TCP -> the tap -> DPDK -> nightjar's own TCP.
"""
import argparse
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys

from tests.netlab import world
from tests.netlab.certificates import make_certificate
from tests.netlab.reaper import Reaper
from tests.netlab.relay import relay
from tests.netlab.limits import time_limit
from tests.netlab.world import Failed, REPO, Server, ip

TAP, SERVER_ADDR, KERNEL_SIDE = "nj0", "198.18.0.2", "198.18.0.1/24"
EXAMPLES = ("hello", "slow?ms=500", "events?n=5", "lookup/localhost")
BIG_FILES = {"10MiB.bin": 10 << 20, "1GiB.bin": 1 << 30}


class Ended(BaseException):
    """A signal ended the run."""


def end(*_):
    raise Ended


def options():
    p = argparse.ArgumentParser(prog="./dev run", description=(
        "Build nightjar and serve a folder over HTTP/2 on 127.0.0.1. Ctrl-C ends it."))
    p.add_argument("--root", metavar="DIR", help="the folder to serve (default: a sample site)")
    p.add_argument("--examples", action="store_true",
                   help="with the handlers of app/examples (nightjar-examples)")
    p.add_argument("--port", type=int, default=8080, help="port on 127.0.0.1 (default: 8080)")
    p.add_argument("--tls", action="store_true",
                   help="serve HTTPS, too, with a certificate made for this run")
    p.add_argument("--tls-port", type=int, default=8443,
                   help="port of HTTPS on 127.0.0.1 (default: 8443)")
    p.add_argument("--lcores", type=int, metavar="N",
                   help="number of lcores, which may exceed the number of CPUs (default: 2, or "
                        "fewer if that leaves a CPU for other programs)")
    p.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # for ./dev
    p.add_argument("options", nargs="*", metavar="-- OPTION",
                   help="options of nightjar, e.g. -- --rate-per-request 2MiB/s; "
                        "nightjar --help lists them")
    chosen = p.parse_args()
    if chosen.options and "--" not in sys.argv:
        p.error(f"unrecognized arguments: {' '.join(chosen.options)}")
    for option, port in (("--port", chosen.port), ("--tls-port", chosen.tls_port)):
        if not 1 <= port <= 65535:
            p.error(f"{option} takes 1 to 65535")
    if chosen.tls and chosen.port == chosen.tls_port:
        p.error("--port and --tls-port must differ")
    if chosen.lcores is not None and not 1 <= chosen.lcores <= 64:
        p.error("--lcores takes 1 to 64")
    if chosen.root is not None and not os.path.isdir(chosen.root):
        p.error(f"--root {chosen.root}: no such folder")
    return chosen


def sample_site(folder):
    """Makes a copy of app/site with two large sparse files for downloads."""
    shutil.copytree(os.path.join(REPO, "app", "site"), folder)
    for name, n_bytes in BIG_FILES.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.truncate(n_bytes)
    return folder


def listen(port, option="--port"):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        s.bind(("127.0.0.1", port))
    except OSError as why:
        raise Failed(f"port {port}: {why.strerror}; choose another with {option}") from None
    s.listen(512)
    return s


def lcores_for(n):
    """
    Returns (EAL arguments for `n` lcores, their number); `n` is None: up to two. The lcores are on
    the CPUs of `--print-placement`, if there are `n` of them.
    """
    done = subprocess.run([world.server_path(), "--print-placement"], capture_output=True,
                          text=True, timeout=time_limit())
    found = re.search(r"^EAL arguments: -l ([\d,]+)", done.stdout, re.M)
    best = found[1].split(",") if found else []
    n = n or max(1, min(2, len(best)))
    if n > len(best):
        return world.lcore_args(n), n
    return ["--lcores", ",".join(f"{i}@{cpu}" for i, cpu in enumerate(best[:n]))], n


def user_of(root):
    """
    The option --user for a server of `root`: the user who called sudo, or else the owner of the
    folder. Both can read it. Without both, the server's default: all can read the sample site.
    """
    uid = int(os.environ.get("SUDO_UID", 0)) or (os.stat(root).st_uid if root else 0)
    try:
        return ["--user", pwd.getpwuid(uid).pw_name] if uid else []
    except KeyError:
        return ["--user", f"{uid}:{uid}"]


def serve(chosen, reaper):
    name = f"njrun-{os.getpid()}"
    listener = listen(chosen.port)
    for kind, what in (("namespace", name), ("prefix", name), ("folder", f"/run/{name}")):
        reaper.will_make(kind, what)
    os.mkdir(f"/run/{name}")
    root = chosen.root or sample_site(f"/run/{name}/site")
    world.make_namespace(name)
    lcores, n = lcores_for(chosen.lcores)
    tls = ()
    if chosen.tls:
        tls_listener = listen(chosen.tls_port, "--tls-port")
        cert, key = make_certificate(f"/run/{name}", "localhost", "DNS:localhost,IP:127.0.0.1")
        tls = ("--tls-cert", cert, "--tls-key", key)
    # The server makes this folder for its user.
    management = f"/run/{name}/management/nightjar.sock"
    live = ["--live"] if os.isatty(2) else []  # --live needs a terminal
    server = Server(name, name, world.driver_args("tap") + lcores,
                    ["--addr", f"{SERVER_ADDR}/24", "--root", root,
                     "--management-socket", management, *tls, *live, *user_of(chosen.root),
                     *chosen.options],
                    program="nightjar-examples" if chosen.examples else "nightjar")
    server.wait_ready()
    ip("-n", name, "addr", "add", KERNEL_SIDE, "dev", TAP)
    ip("-n", name, "link", "set", TAP, "up")
    relay(listener, name, (SERVER_ADDR, 80))
    if chosen.tls:
        relay(tls_listener, name, (SERVER_ADDR, 443))

    url = f"http://127.0.0.1:{chosen.port}/"
    tls_url = f"https://localhost:{chosen.tls_port}/"
    https = (f"\n  {tls_url}    (the browser warns: nobody vouches for this certificate)\n"
             f"  curl --cacert {cert} {tls_url}\n\n") if chosen.tls else ""
    lcores = "1 lcore" if n == 1 else f"{n} lcores"
    paths = ("", *(EXAMPLES if chosen.examples else ()))
    print(f"\nnightjar serves {chosen.root or 'a sample site'} on {lcores}. "
          f"Ctrl-C ends it.\n\n  {url}\n" +
          "".join(f"  curl {shlex.quote(url + path)}\n" for path in paths)
          + https + f"  dpdk-telemetry.py -f {name}    (as root: counters and limits)\n"
          + f"  {shlex.quote(os.path.relpath(world.server_path()))} top --socket "
          f"{os.path.dirname(management)}    (as root; ctl in place of top: commands)\n",
          flush=True)
    try:
        status = server.process.wait()  # the server writes nothing to standard output
    except Ended:
        print("\nstopping: open downloads have 10 s; Ctrl-C again aborts them", flush=True)
        server.signal()
        return server.wait()
    raise Failed(f"the server ended by itself: {world.exit_text(status)}")


def main():
    os.chdir(os.environ.get("NJ_CALLER", "."))  # the base of the user's relative paths
    chosen = options()
    if chosen.check:
        try:
            listen(chosen.port).close()
            if chosen.tls:
                listen(chosen.tls_port, "--tls-port").close()
        except Failed as why:
            print(f"dev: {why}", file=sys.stderr)
            return 1
        return 0
    reaper = Reaper()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    status = 1
    try:
        status = serve(chosen, reaper)
    except Failed as why:
        print(f"dev: {why}", file=sys.stderr)
        status = why.status
    except Ended:
        pass
    finally:
        reaper.finish()
    return status


if __name__ == "__main__":
    sys.exit(main())
