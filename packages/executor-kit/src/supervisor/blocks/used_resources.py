"""What a shepherd says of the resources that its block has used. Python 3.8 or later, standard library only.

The kernel tells a process what those of its children have used that have ended, with everything that they have waited for. Code
cannot change that; but what it starts may go on after its end, or end without anybody waiting for it.
"""

import struct

resource = None


def load():
    """Call this once, when nobody waits for it."""
    global resource
    try:
        import resource
    except ImportError:
        # Some systems install Python in parts.
        pass


def used():
    """Of everything below a shepherd that has ended: processor time in microseconds, and the memory of the largest process in bytes;
    -1 if that is not known."""
    if resource is None:
        return struct.pack(">qq", -1, -1)
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Some systems do not measure memory.
    return struct.pack(">qq", round((found.ru_utime + found.ru_stime) * 1000000), found.ru_maxrss * 1024 or -1)
