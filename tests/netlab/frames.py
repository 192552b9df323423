# SPDX-License-Identifier: BSD-3-Clause
"""
Ethernet frames that are valid, nearly valid or random, from a generator of random numbers.

Each frame begins as a valid frame of a peer or as random bytes. Then some bytes change. Half of the
frames get correct checksums afterwards, so that the code after the check processes the changes.
"""
import socket
import struct

PEER_MAC = bytes.fromhex("02c0ffee0001")
ARP_TO = (b"\xff" * 6, None)
FRAME_MIN, FRAME_MAX = 14, 1514  # lengths that a raw socket accepts


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def icmp6(src_mac, src, dst, message, dst_mac, hop_limit=255):
    """A frame with this ICMPv6 message and its checksum."""
    src, dst = (socket.inet_pton(socket.AF_INET6, a) for a in (src, dst))
    pseudo = src + dst + struct.pack("!II", len(message), 58)
    total = struct.pack("!H", checksum(pseudo + message[:2] + b"\0\0" + message[4:]))
    head = struct.pack("!IHBB", 6 << 28, len(message), 58, hop_limit) + src + dst
    return dst_mac + src_mac + b"\x86\xdd" + head + message[:2] + total + message[4:]


class Frames:
    def __init__(self, rng, server_mac, server_addr, peer_addr):
        self.rng, self.server_mac = rng, server_mac
        self.server, self.peer = map(socket.inet_aton, (server_addr, peer_addr))

    def eth(self, ether_type, payload, dst=None):
        return (dst or self.server_mac) + PEER_MAC + struct.pack("!H", ether_type) + payload

    def ip(self, protocol, payload):
        head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), self.rng.getrandbits(16),
                           0x4000, 64, protocol, 0, self.peer, self.server)
        return self.eth(0x0800, head + payload)

    def arp(self):
        return self.eth(0x0806, struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4,
                                            self.rng.randint(1, 2), PEER_MAC, self.peer,
                                            bytes(6), self.server), self.rng.choice(ARP_TO))

    def icmp(self):
        return self.ip(1, struct.pack("!BBHHH", 8, 0, 0, 1, 1) +
                       self.rng.randbytes(self.rng.randrange(600)))

    def tcp(self):
        rng = self.rng
        mss = b"\x02\x04\x05\xb4"
        options = rng.choice((b"", mss, mss + b"\x01\x03\x03\x07\x04\x02\0\0",
                              b"\x01\x01\x08\x0a" + rng.randbytes(8), rng.randbytes(8)))
        flags = rng.choice((0x02, 0x02, 0x10, 0x18, 0x11, 0x04, 0x12, rng.getrandbits(8)))
        data = rng.choice((b"", b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                           rng.randbytes(rng.randrange(1200))))
        return self.ip(6, struct.pack(
            "!HHIIBBHHH", rng.choice((40000, rng.getrandbits(16))), rng.choice((80, 80, 80, 81)),
            rng.getrandbits(32), rng.getrandbits(32), (5 + len(options) // 4) << 4, flags,
            rng.getrandbits(16), 0, 0) + options + data)

    def syn(self, port):
        """A SYN with correct checksums."""
        frame = self.ip(6, struct.pack("!HHIIBBHHH", port, 80, 1, 0, 5 << 4, 2, 65535, 0, 0))
        return bytes(self.write_checksums(bytearray(frame)))

    def resets(self, frame):
        """Frames that end the connection that `frame` opened at the server, if it is a SYN."""
        at = 14 + (frame[14] & 15) * 4 if len(frame) > 14 else 0
        if frame[12:14] != b"\x08\0" or len(frame) < at + 20 or frame[23] != 6 \
                or not frame[at + 13] & 2:
            return
        seq = struct.unpack_from("!I", frame, at + 4)[0]
        n_data = min(struct.unpack_from("!H", frame, 16)[0], len(frame) - 14) + 14 - at - \
            (frame[at + 12] >> 4) * 4
        for n in {1, max(1, 1 + n_data)}:  # the server may have taken the data of the SYN, or not
            reset = bytearray(self.ip(6, frame[at:at + 4] + struct.pack(
                "!IIBBHHH", seq + n & 0xffffffff, 0, 5 << 4, 4, 0, 0, 0)))
            reset[26:34] = frame[26:34]  # both addresses
            yield bytes(self.write_checksums(reset))

    def noise(self):
        return self.eth(self.rng.choice((0x0800, 0x0806, 0x86dd, 0x8100, self.rng.getrandbits(16))),
                        self.rng.randbytes(self.rng.randrange(FRAME_MAX - 14)))

    def mutate(self, frame):
        """Changes some bytes, most of them in headers, and sometimes the length."""
        frame = bytearray(frame)
        for _ in range(self.rng.choice((0, 1, 1, 2, 8))):
            frame[self.rng.randrange(min(len(frame), 74))] = self.rng.getrandbits(8)
        if self.rng.random() < 0.2:
            frame = frame[:self.rng.randint(FRAME_MIN, len(frame))]
        elif self.rng.random() < 0.1:
            frame += self.rng.randbytes(self.rng.randrange(64))
        return frame

    @staticmethod
    def write_checksums(frame):
        """Writes correct checksums if the lengths in the headers are consistent."""
        if frame[12:14] != b"\x08\0" or len(frame) < 34:
            return frame
        n_head = (frame[14] & 15) * 4
        n_all = min(struct.unpack_from("!H", frame, 16)[0], len(frame) - 14)
        if n_head < 20 or n_all < n_head:
            return frame
        frame[24:26] = b"\0\0"
        frame[24:26] = struct.pack("!H", checksum(bytes(frame[14:14 + n_head])))
        start, end, protocol = 14 + n_head, 14 + n_all, frame[23]
        at = start + {1: 2, 6: 16}.get(protocol, len(frame))
        if at + 2 <= end:
            pseudo = bytes(frame[26:34]) + struct.pack("!BBH", 0, protocol, end - start)
            frame[at:at + 2] = b"\0\0"
            covered = (pseudo if protocol == 6 else b"") + bytes(frame[start:end])
            frame[at:at + 2] = struct.pack("!H", checksum(covered))
        return frame

    def next(self):
        make = self.rng.choice((self.arp, self.icmp, self.tcp, self.tcp, self.tcp, self.noise))
        frame = self.mutate(make())
        if self.rng.random() < 0.5:
            frame = self.write_checksums(frame)
        return bytes(frame[:FRAME_MAX])
