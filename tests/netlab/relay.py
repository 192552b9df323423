# SPDX-License-Identifier: BSD-3-Clause
"""
Carries TCP connections from a socket of the ordinary machine into a namespace.

Accepting happens out here; connecting happens with a socket made inside, which stays inside. Two
threads per connection, one for each way, block in the kernel and hold only a buffer. They are
daemons of the calling process and end with it.
"""
import socket
import threading

from tests.netlab.world import inside

BUFFER_BYTES = 256 * 1024
CONNECTIONS_MAX = 1000


def _pump(source, sink):
    """Everything from one to the other, then the end of the stream, too."""
    buffer = bytearray(BUFFER_BYTES)
    view = memoryview(buffer)
    try:
        while n := source.recv_into(buffer):
            sink.sendall(view[:n])
        sink.shutdown(socket.SHUT_WR)
    except OSError:  # one end is gone: so is the connection
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def _carry(outer, namespace, address, slots):
    try:
        with inside(namespace):
            inner = socket.socket()
        with outer, inner:
            inner.connect(address)
            for s in (outer, inner):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=_pump, args=(inner, outer), daemon=True)
            back.start()
            _pump(outer, inner)
            back.join()
    except OSError:  # nobody listens inside: the caller sees its connection close
        pass
    finally:
        slots.release()


def relay(listener, namespace, address):
    """Serves `listener` from a thread of its own."""
    slots = threading.BoundedSemaphore(CONNECTIONS_MAX)

    def accept():
        while True:
            slots.acquire()
            outer, _ = listener.accept()
            threading.Thread(target=_carry, args=(outer, namespace, address, slots),
                             daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
