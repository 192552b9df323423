# SPDX-License-Identifier: BSD-3-Clause
"""h2load: 50,000 requests without a failure on tap and on af_packet."""
import contextlib
import ctypes
import os
import re
import socket

from tests.netlab.case import ServerCase

REQUESTS = 50_000
SYS_PIDFD_GETFD = 438
LIBC = ctypes.CDLL(None)


@contextlib.contextmanager
def sockets_of(pid, family):
    """The sockets of a process."""
    with contextlib.ExitStack() as stack:
        process = os.pidfd_open(pid)
        stack.callback(os.close, process)
        found = []
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:"):
                    own = LIBC.syscall(SYS_PIDFD_GETFD, process, int(fd), 0)
                    if own >= 0:
                        found.append(stack.enter_context(socket.socket(fileno=own)))
        yield [s for s in found if s.family == family]


class LoadOnTap(ServerCase):
    def test_h2load(self):
        done = self.world.client("h2load", "-c", "100", "-m", "32", "-n", str(REQUESTS),
                                 self.world.url("/one"))
        self.assertEqual(0, done.returncode, done.stderr)
        counts = dict((name, int(n)) for n, name in re.findall(
            r"(\d+) (\w+)", re.search(r"^requests: .*", done.stdout, re.M).group()))
        self.assertEqual(REQUESTS, counts["succeeded"], done.stdout)
        self.assertEqual((0, 0, 0), (counts["failed"], counts["errored"], counts["timeout"]))
        self.assertEqual(REQUESTS, self.counted("requests"))


class LoadOnAfPacket(LoadOnTap):
    link = "veth"

    def test_download(self):
        done = self.world.client("sh", "-c", "curl -sS --http2-prior-knowledge "
                                 f"{self.world.url('/10MiB')} | sha256sum")
        self.assertEqual(self.sums["10MiB"], done.stdout.split()[0])

    def test_room_to_send(self):
        """The send buffer of the socket is twice the size of the ring: the kernel counts bytes
        twice. Frames beyond the send buffer would stay in the ring until the next transmission."""
        with sockets_of(self.server.process.pid, socket.AF_PACKET) as sockets:
            room = [s.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) for s in sockets]
        self.assertEqual([32 << 20], room)
