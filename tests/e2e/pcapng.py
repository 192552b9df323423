# SPDX-License-Identifier: BSD-3-Clause
"""Reads pcapng files as nightjar writes them: strictly, in the byte order of this machine."""
import struct

SECTION, INTERFACE, STATISTICS, PACKET = 0x0A0D0D0A, 1, 5, 6
INBOUND, OUTBOUND = 1, 2


def options(data):
    found, at = {}, 0
    while True:
        code, n = struct.unpack_from("=HH", data, at)
        if code == 0:
            assert n == 0 and at + 4 == len(data), "the options end with the block"
            return found
        found[code] = data[at + 4:at + 4 + n]
        at += 4 + (n + 3) // 4 * 4


def padded(n):
    return (n + 3) // 4 * 4


class Packet:
    def __init__(self, body):
        self.interface, high, low, n_kept, self.n_bytes = struct.unpack_from("=5I", body)
        self.utc_ns = high << 32 | low
        self.data = body[20:20 + n_kept]
        flags, = struct.unpack("=I", options(body[20 + padded(n_kept):])[2])
        self.is_sent = flags == OUTBOUND
        assert flags in (INBOUND, OUTBOUND) and n_kept <= self.n_bytes


class File:
    """interfaces: their names; dropped: by interface, None without statistics."""

    def __init__(self, data):
        self.interfaces, self.packets, self.statistics = [], [], {}
        at = 0
        while at < len(data):
            kind, n = struct.unpack_from("=II", data, at)
            assert n % 4 == 0 and n >= 12 and at + n <= len(data), "whole blocks"
            assert struct.unpack_from("=I", data, at + n - 4) == (n,)
            assert (kind == SECTION) == (at == 0), "one section"
            self.add(kind, data[at + 8:at + n - 4])
            at += n

    def add(self, kind, body):
        if kind == SECTION:
            assert struct.unpack_from("=IHHq", body) == (0x1A2B3C4D, 1, 0, -1)
        elif kind == INTERFACE:
            found = options(body[8:])
            assert struct.unpack_from("=HH", body) == (1, 0), "Ethernet"
            assert found[9] == b"\x09", "nanoseconds"
            self.interfaces.append(found[2].decode())
        elif kind == PACKET:
            self.packets.append(Packet(body))
        elif kind == STATISTICS:
            found = options(body[12:])
            self.statistics[struct.unpack_from("=I", body)[0]] = {
                "received": struct.unpack("=Q", found[4])[0],
                "dropped": struct.unpack("=Q", found[5])[0],
                "captured": struct.unpack("=Q", found[8])[0]}
        else:
            raise AssertionError(f"block {kind}")
