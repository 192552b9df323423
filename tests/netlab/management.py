# SPDX-License-Identifier: BSD-3-Clause
"""A client of a server's management listener."""
import contextlib
import http.client
import json
import socket

from tests.netlab.limits import time_limit
from tests.netlab.world import inside, until


class Answer:
    """A response. `text`: its body."""

    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.text = response.read().decode()

    def json(self):
        return json.loads(self.text)


def connects(s, at):
    try:
        s.connect(at)
    except BlockingIOError:  # too many connections of a Unix socket wait to be accepted
        return False
    return True


def connect(at, namespace=None):
    """A socket. `at`: the path of a Unix socket, or (address, port) in the network namespace."""
    if isinstance(at, str):
        s = socket.socket(socket.AF_UNIX)
    else:
        with inside(namespace):
            s = socket.socket(socket.AF_INET6 if ":" in at[0] else socket.AF_INET)
    s.settimeout(time_limit())
    until("there is room", lambda: connects(s, at))
    return s


def ask(at, method, path, body=None, namespace=None, **headers):
    """Sends one request on a connection of its own. Returns the Answer. `token`: of the field
    Authorization; other keyword arguments are fields."""
    if "token" in headers:
        headers["Authorization"] = f"Bearer {headers.pop('token')}"
    connection = http.client.HTTPConnection("localhost")
    connection.sock = connect(at, namespace)
    try:
        with contextlib.suppress(BrokenPipeError):  # it was answered before the end of its body
            connection.request(method, path, body, headers)
        return Answer(connection.getresponse())
    finally:
        connection.close()
