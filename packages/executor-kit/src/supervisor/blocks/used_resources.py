"""What a shepherd says of the resources that its block has used. Python 3.8 or later, standard library only.

The kernel tells a process what those of its children have used that have ended, with everything that they have waited for. Code
cannot change that; but what it starts may go on after its end, or end without anybody waiting for it.

A shepherd is a fork, which the kernel makes pay for each page of memory that it is the first to write to. So it passes on what the
kernel has written, and the supervisor reads it: the module `resource` would delay the end of each block by milliseconds.
"""

import struct

# struct rusage of 64-bit Linux: user and system time in seconds and microseconds, the memory of the largest process in KiB, and more.
SIZE = 144
UNKNOWN = struct.pack(">qq", -1, -1)

getrusage = children = None
# The kernel writes here. Nothing else refers to it.
memory = bytes(SIZE)


def prepare(function, number):
    """`function`: that of the C library; `number`: -1 as it takes it (RUSAGE_CHILDREN)."""
    global getrusage, children
    if struct.calcsize("l") == 8:
        getrusage, children = function, number


def used():
    """Of everything below this process that has ended."""
    if getrusage is None or getrusage(children, memory) != 0:
        return b"\xff" * SIZE
    return memory


def read(said):
    """Returns processor time in microseconds and memory in bytes, each -1 if it is not known."""
    if len(said) != SIZE:
        return UNKNOWN
    user, user_rest, system, system_rest, kibibytes = struct.unpack_from("=5q", said)
    if user < 0:
        return UNKNOWN
    # Some systems do not measure memory.
    return struct.pack(">qq", (user + system) * 1000000 + user_rest + system_rest, kibibytes * 1024 or -1)
