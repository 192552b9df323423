# SPDX-License-Identifier: BSD-3-Clause
"""
Relays TCP connections from a socket into a network namespace, and can cut them.

The relay accepts in the namespace of the socket, and connects with a socket created in the other
namespace. Each connection has two threads, one per direction, which block in the kernel and have
one buffer each. They are daemon threads, so they end with the process.
"""
import socket
import struct
import threading

from tests.netlab.world import inside

BUFFER_BYTES = 256 * 1024
CONNECTIONS_MAX = 1000
RESETS = struct.pack("ii", 1, 0)  # SO_LINGER: close() sends RST


def _pump(source, sink, n_bytes=None):
    """Copies all bytes from `source` to `sink`, then the end of the stream. With `n_bytes`: so many
    bytes at most, then both connections are reset."""
    buffer = bytearray(BUFFER_BYTES)
    view = memoryview(buffer)
    try:
        while n := source.recv_into(buffer):
            sink.sendall(view[:n if n_bytes is None else min(n, n_bytes)])
            if n_bytes is not None and (n_bytes := n_bytes - n) <= 0:
                for s in (source, sink):
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
                sink.shutdown(socket.SHUT_RD)  # the other pump ends, and the sockets are closed
                return
        sink.shutdown(socket.SHUT_WR)
    except OSError:  # one end is closed: close the other
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def _carry(outer, namespace, address, slots, n_bytes):
    try:
        with inside(namespace):
            inner = socket.socket()
        with outer, inner:
            inner.connect(address)
            for s in (outer, inner):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=_pump, args=(inner, outer, n_bytes), daemon=True)
            back.start()
            _pump(outer, inner)
            back.join()
    except OSError:  # no listener in the namespace: the outer connection closes
        pass
    finally:
        slots.release()


def relay(listener, namespace, address, cuts=()):
    """Accepts the connections of `listener` in a thread. The first ones are reset after so many
    bytes from the other end as `cuts` says."""
    cuts = iter(cuts)
    slots = threading.BoundedSemaphore(CONNECTIONS_MAX)

    def accept():
        while True:
            slots.acquire()
            outer, _ = listener.accept()
            threading.Thread(target=_carry, daemon=True,
                             args=(outer, namespace, address, slots, next(cuts, None))).start()

    threading.Thread(target=accept, daemon=True).start()
