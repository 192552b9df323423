# SPDX-License-Identifier: BSD-3-Clause
"""
Relays TCP connections from a socket of the host into a network namespace.

The relay accepts in the host's namespace, and connects with a socket created in the other
namespace. Each connection has two threads, one per direction, which block in the kernel and have
one buffer each. They are daemon threads, so they end with the process.
"""
import socket
import threading

from tests.netlab.world import inside

BUFFER_BYTES = 256 * 1024
CONNECTIONS_MAX = 1000


def _pump(source, sink):
    """Copies all bytes from `source` to `sink`, then the end of the stream."""
    buffer = bytearray(BUFFER_BYTES)
    view = memoryview(buffer)
    try:
        while n := source.recv_into(buffer):
            sink.sendall(view[:n])
        sink.shutdown(socket.SHUT_WR)
    except OSError:  # one end is closed: close the other
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
    except OSError:  # no listener in the namespace: the outer connection closes
        pass
    finally:
        slots.release()


def relay(listener, namespace, address):
    """Accepts the connections of `listener` in a thread."""
    slots = threading.BoundedSemaphore(CONNECTIONS_MAX)

    def accept():
        while True:
            slots.acquire()
            outer, _ = listener.accept()
            threading.Thread(target=_carry, args=(outer, namespace, address, slots),
                             daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
