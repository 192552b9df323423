# SPDX-License-Identifier: BSD-3-Clause
"""
One case of tests/http1: bytes of a client of HTTP/1, and what nightjar answers (RFC 9112).

The marker follows the bytes of each case on the same connection, in the same or a later segment.
Its response shows that the server knows where the case ends: a server that takes a part of the case
for a request answers once more, and one that takes the marker for a part of a body does not answer
it.
"""
import collections

HOST = b"Host: nightjar.test"
CHUNKED = b"Transfer-Encoding: chunked"
FIVE = b"Content-Length: 5"

# `raw`: bytes. `answers`: for each request in `raw` its final status, or the body of a request for
# /digest, whose response has the length and the checksum of what the server took for the body.
# `closes`: the server ends the connection after the last of them, and does not answer the marker.
# `counter`: of the reason, or None. `clause`: number of the RFC and section.
Case = collections.namedtuple("Case", "group name raw answers closes counter clause")


def head(line, *fields):
    """A head: the request line, and lines of fields."""
    return b"\r\n".join((line, *fields)) + b"\r\n\r\n"


def get(*fields, line=b"GET /one HTTP/1.1"):
    return head(line, HOST, *fields)


def post(*fields, body=b"hello", line=b"POST /digest HTTP/1.1"):
    return head(line, HOST, *fields) + body


def chunked(body, *fields):
    return post(CHUNKED, *fields, body=body)


MARKER = get(b"Connection: close", line=b"GET /marker HTTP/1.1")
SMUGGLED = get(line=b"GET /smuggled HTTP/1.1")  # 404, if it is taken for a request


class Group:
    """Collects the cases of a group."""

    def __init__(self, name):
        self.name, self.cases = name, []

    def refused(self, name, raw, counter, clause, status=400, before=()):
        """`before`: answers of the requests before the one that is refused."""
        self.cases.append(
            Case(self.name, name, raw, (*before, status), True, counter, clause))

    def served(self, name, raw, clause, *answers, closes=False):
        self.cases.append(Case(self.name, name, raw, answers or (200,), closes, None, clause))
