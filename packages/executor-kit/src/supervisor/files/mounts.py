"""Finds and detaches what is mounted below a directory, so that a removal never goes through a mount to other files of the machine.
Code that runs as root can mount any of them, even `/`. Python 3.8 or later, Linux, standard library only."""

import os

try:
    import ctypes

    system = ctypes.CDLL(None)
    mount, umount = system.mount, system.umount2
except Exception:
    mount = umount = None

# MNT_DETACH | UMOUNT_NOFOLLOW
FLAGS = 2 | 8
MS_PRIVATE = 1 << 18
# How the kernel writes these in a path.
ESCAPES = ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\"))


def below(directory, only_shared=False):
    """Returns what is mounted at a directory, whose path contains no links, or below it, outermost first."""
    top = os.fsencode(directory)
    found = []
    try:
        with open("/proc/self/mountinfo", "rb") as lines:
            for line in lines:
                fields = line.split(b" ")
                # A dash ends the optional fields.
                if only_shared and not any(field.startswith(b"shared:") for field in fields[6 : fields.index(b"-", 6)]):
                    continue
                place = fields[4]
                for escape, character in ESCAPES:
                    place = place.replace(escape, character)
                if place == top or place.startswith(top + b"/"):
                    found.append(place)
    except OSError:
        pass
    return found


def detach(directory):
    """Unmounts what is mounted at a directory or below it. Returns whether nothing is left.

    A shared mount takes what is unmounted below it away from its peers too: with a copy of `/`, that would be the machine's own `/home`
    or `/proc`. So all become private first, and nothing is unmounted if one cannot, as one that another mount hides."""
    above, name = os.path.split(os.path.abspath(directory))
    directory = os.path.join(os.path.realpath(above), name)
    if mount is not None:
        for place in below(directory, only_shared=True):
            mount(None, place, None, ctypes.c_ulong(MS_PRIVATE), None)
    if umount is not None and not below(directory, only_shared=True):
        for place in reversed(below(directory)):
            umount(place, FLAGS)
    return not below(directory)
