"""Packets between a program and the session that it is connected to. Python 3.8 or later, standard library only.

A packet is its length (4 bytes, of the rest), its place in this connection's sequence (8), its kind (1), the number of bytes that the
sender has received so far (8), its payload, and the first 16 bytes of an HMAC-SHA-256 of all but the length.
"""

import struct
from _operator import _compare_digest as same

try:
    from _hashlib import hmac_digest as digest
except ImportError:
    from hmac import digest

MAGIC = b"FENCED-LINK1\n"
# Before the magic of the first connection: the key, and how many milliseconds the session waits for a program.
START = b"FENCED-START\n"
KEY, NONCE, PROOF, MAC = 32, 16, 32, 16
# What follows the magic from the program: which program it is, a nonce, flags, and how much it has received.
HELLO = struct.Struct(">16s16sBQ")
TAKE_OVER, KNOWN = 1, 2
HEAD = struct.Struct(">QBQ")
PIECE = 262144
LONGEST = HEAD.size + PIECE + MAC

DATA, ACK, PING, PONG, VERDICT, GONE, DETACH, END = 1, 2, 3, 4, 5, 6, 7, 8
# Verdicts: the connection is accepted; another program uses the session; another program has taken it over; what the program has
# received is not what was sent to it.
ACCEPTED, IN_USE, REPLACED, UNKNOWN = 0, 1, 2, 3


def prove(key, label, hello, nonce):
    return digest(key, label + hello + nonce, "sha256")


class Writer:
    """Makes packets."""

    def __init__(self, key):
        self.key = key
        self.count = 0

    def packet(self, kind, received, payload=b""):
        body = HEAD.pack(self.count, kind, received) + payload
        self.count += 1
        return struct.pack(">I", len(body) + MAC) + body + digest(self.key, body, "sha256")[:MAC]


class Reader:
    """Takes packets out of a stream."""

    def __init__(self, key, rest=b""):
        self.key = key
        self.count = 0
        self.incoming = bytearray(rest)

    def read(self):
        """Returns the complete packets that have arrived: kind, received, payload. Raises `ValueError` if something else has written
        one."""
        packets, at = [], 0
        while len(self.incoming) - at >= 4:
            length = struct.unpack_from(">I", self.incoming, at)[0]
            if not HEAD.size + MAC <= length <= LONGEST:
                raise ValueError("length")
            if len(self.incoming) - at < length + 4:
                break
            body = bytes(self.incoming[at + 4 : at + 4 + length - MAC])
            proof = bytes(self.incoming[at + 4 + length - MAC : at + 4 + length])
            count, kind, received = HEAD.unpack_from(body)
            if count != self.count or not same(digest(self.key, body, "sha256")[:MAC], proof):
                raise ValueError("proof")
            self.count += 1
            at += 4 + length
            packets.append((kind, received, body[HEAD.size :]))
        del self.incoming[:at]
        return packets
