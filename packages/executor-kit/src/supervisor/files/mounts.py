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
# MS_PRIVATE | MS_REC, which also reaches what another mount hides.
PRIVATE = 1 << 18 | 1 << 14
# How the kernel writes these in a path.
ESCAPES = ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\"))
# Mounts may be stacked on one place, and one that is hidden can only be changed when it is not.
MOST_LAYERS = 20


def table():
    """Returns all mounts, outermost first: where each is, and the fields that say with which others it shares what is mounted in it."""
    found = []
    try:
        with open("/proc/self/mountinfo", "rb") as lines:
            for line in lines:
                fields = line.split(b" ")
                place = fields[4]
                for escape, character in ESCAPES:
                    place = place.replace(escape, character)
                # A dash ends the optional fields.
                found.append((place, fields[6 : fields.index(b"-", 6)]))
    except OSError:
        pass
    return found


def is_below(place, top):
    return place == top or place.startswith(top + b"/")


def below(directory):
    """Returns what is mounted at a directory, whose path contains no links, or below it, outermost first."""
    top = os.fsencode(directory)
    return [place for place, _ in table() if is_below(place, top)]


def shared_below(directory):
    """Returns where mounts are that share what is mounted in them, and whether they do with one that is elsewhere."""
    top, mounts = os.fsencode(directory), table()
    shared = [(place, field) for place, fields in mounts for field in fields if field.startswith(b"shared:")]
    groups = {field.partition(b":")[2] for place, field in shared if is_below(place, top)}
    outside = {field.partition(b":")[2] for place, fields in mounts if not is_below(place, top) for field in fields}
    return [place for place, _ in shared if is_below(place, top)], not groups.isdisjoint(outside)


def detach(directory):
    """Unmounts what is mounted at a directory or below it. Returns whether nothing is left.

    A shared mount takes what is unmounted below it away from its peers too: with a copy of `/`, that would be the machine's own `/home`
    or `/proc`. So all become private first, and nothing is unmounted if one cannot, as one that another mount hides, and it has peers
    elsewhere."""
    above, name = os.path.split(os.path.abspath(directory))
    directory = os.path.join(os.path.realpath(above), name)
    if mount is None or umount is None:
        return not below(directory)
    for _ in range(MOST_LAYERS):
        for place in shared_below(directory)[0]:
            mount(None, place, None, ctypes.c_ulong(PRIVATE), None)
        places = below(directory)
        if not places or shared_below(directory)[1]:
            break
        for place in reversed(places):
            umount(place, FLAGS)
        if len(below(directory)) >= len(places):
            break
    return not below(directory)
