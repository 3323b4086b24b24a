"""Packets between a program and the session that it is connected to. Python 3.8 or later, standard library only.

A packet is its length (4 bytes, of the rest), its place in this connection's sequence (8), its kind (1), the number of bytes that the
sender has received so far (8), its payload, and the first 16 bytes of an HMAC-SHA-256 of all but the length.
"""

import struct
from _operator import _compare_digest as same

try:
    from _hashlib import hmac_digest as digest
    from _hashlib import hmac_new
except ImportError:
    from hmac import digest
    from hmac import new as hmac_new

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

    def add(self, outgoing, kind, received, payload=b""):
        """Adds a packet to a `bytearray`, which copies the payload once."""
        head = HEAD.pack(self.count, kind, received)
        self.count += 1
        signer = hmac_new(self.key, head, "sha256")
        signer.update(payload)
        outgoing += struct.pack(">I", len(head) + len(payload) + MAC) + head
        outgoing += payload
        outgoing += signer.digest()[:MAC]


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
            end = at + 4 + length
            if len(self.incoming) < end:
                break
            with memoryview(self.incoming) as memory, memory[at + 4 : end - MAC] as body:
                count, kind, received = HEAD.unpack_from(body)
                proof = digest(self.key, body, "sha256")[:MAC]
                payload = bytes(body[HEAD.size :])
            if count != self.count or not same(proof, bytes(self.incoming[end - MAC : end])):
                raise ValueError("proof")
            self.count += 1
            at = end
            packets.append((kind, received, payload))
        del self.incoming[:at]
        return packets
