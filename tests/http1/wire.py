# SPDX-License-Identifier: BSD-3-Clause
"""A client of HTTP/1 that sends bytes as given, on many connections at once."""
import collections
import re
import select
import socket
import time

from tests.netlab.limits import time_limit
from tests.netlab.world import Failed

# `fields`, `trailers`: {lower case name: [values]}
Response = collections.namedtuple("Response", "status fields body trailers", defaults=({},))
CHUNK = re.compile(rb"([0-9a-f]+)\r\n", re.I)
TRAILERS = re.compile(rb"((?:[^\r\n]+\r\n)*)\r\n")
HEAD = re.compile(rb"HTTP/1\.[01] (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n")


def parse(data, closed=True):
    """
    The responses in `data`, which may be incomplete if not `closed`. A body that is not there and
    is followed by a response was not to be sent: the request was HEAD, whose bodies are not known
    here. Raises ValueError for bytes that are no response.
    """
    found, at = [], 0
    while at < len(data):
        head = HEAD.match(data, at)
        if not head:
            if closed:
                raise ValueError(f"no response: {data[at:at + 200]}")
            break
        fields = fields_of(head[2])
        body, at, *trailers = body_of(data, head.end(), int(head[1]), fields)
        if at is None:
            if closed:
                raise ValueError(f"incomplete: {data[head.start():][:200]}")
            break
        found.append(Response(int(head[1]), fields, body, *trailers))
    return found


def fields_of(lines):
    found = collections.defaultdict(list)
    for line in lines.decode("latin-1").split("\r\n")[:-1]:
        name, _, value = line.partition(":")
        found[name.lower()].append(value.strip())
    return dict(found)


def body_of(data, at, status, fields):
    """(body, offset of what follows[, trailers]); the offset is None if the body is incomplete."""
    if status < 200 or status in (204, 304) or data.startswith(b"HTTP/1.", at):
        return b"", at
    if "transfer-encoding" in fields:
        return unchunked(data, at)
    if "content-length" not in fields:
        return data[at:], len(data)
    n = int(fields["content-length"][0])
    if at == len(data):  # of HEAD, if it is the last response
        return b"", at
    return data[at:at + n], at + n if at + n <= len(data) else None


def unchunked(data, at):
    body = b""
    while size := CHUNK.match(data, at):
        n = int(size[1], 16)
        if n == 0:
            trailers = TRAILERS.match(data, size.end())
            return (body, trailers.end(), fields_of(trailers[1])) if trailers else (body, None)
        at = size.end() + n + 2
        if data[at - 2:at] != b"\r\n":
            break
        body += data[size.end():at - 2]
    return body, None


class Exchange:
    """A connection that sends `parts`, each in a segment of its own or more, and reads to the end.
    `about`: of the owner."""

    def __init__(self, sock, parts, about=None):
        self.sock, self.about = sock, about
        self.parts = collections.deque(part for part in parts if part)
        self.received, self.ended, self.reset = b"", False, False
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        self.port = sock.getsockname()[1]

    def send(self):
        """Sends what the socket accepts of one part."""
        part = self.parts.popleft()
        try:
            n = self.sock.send(part)
        except BlockingIOError:
            n = 0
        except (BrokenPipeError, ConnectionResetError):  # an early response is still read
            self.parts.clear()
            return
        if n < len(part):
            self.parts.appendleft(part[n:])

    def receive(self):
        try:
            data = self.sock.recv(1 << 18)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data, self.reset = b"", True
        self.received += data
        if not data:
            self.ended = True
            self.sock.close()

    def responses(self):
        return parse(self.received)


def run(exchanges, seconds=None):
    """Sends one part on each connection in turn until all of them have ended. Raises Failed if that
    takes longer than a test waits; returns those that are open after `seconds`, if given."""
    give_up = time.monotonic() + (seconds or time_limit())
    running = {each.sock.fileno(): each for each in exchanges}
    poll = select.poll()
    for fd in running:
        poll.register(fd, select.POLLIN | select.POLLOUT)
    while running:
        if time.monotonic() > give_up:
            if seconds:
                return list(running.values())
            raise Failed("no end of " + ", ".join(
                f"{each.about} {each.received[:40]}" for each in running.values()))
        for fd, events in poll.poll(100):
            each = running[fd]
            if events & select.POLLOUT and each.parts:
                each.send()
                if not each.parts:
                    poll.modify(fd, select.POLLIN)
            if events & ~select.POLLOUT:
                each.receive()
            if each.ended:
                del running[fd]
                poll.unregister(fd)
    return []
