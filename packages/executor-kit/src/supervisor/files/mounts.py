"""Finds and detaches what is mounted below a directory, so that a removal never goes through a mount to other files of the machine.
Code that runs as root can mount any of them, even `/`. Python 3.8 or later, Linux, standard library only."""

import os

try:
    import ctypes

    umount = ctypes.CDLL(None).umount2
except Exception:
    umount = None

# MNT_DETACH | UMOUNT_NOFOLLOW
FLAGS = 2 | 8
# How the kernel writes these in a path.
ESCAPES = ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\"))


def below(directory):
    """Returns what is mounted at a directory, whose path contains no links, or below it, outermost first."""
    top = os.fsencode(directory)
    found = []
    try:
        with open("/proc/self/mountinfo", "rb") as lines:
            for line in lines:
                place = line.split(b" ")[4]
                for escape, character in ESCAPES:
                    place = place.replace(escape, character)
                if place == top or place.startswith(top + b"/"):
                    found.append(place)
    except OSError:
        pass
    return found


def detach(directory):
    """Unmounts what is mounted at a directory or below it. Returns whether nothing is left."""
    above, name = os.path.split(os.path.abspath(directory))
    directory = os.path.join(os.path.realpath(above), name)
    for place in reversed(below(directory)):
        if umount is not None:
            umount(place, FLAGS)
    return not below(directory)
