"""Our own descriptors in a process whose code may close or replace any of them. Python 3.8 or later, standard library only."""

import fcntl
import os

# Imported early, because libraries replace some of these for the programs that they run.
from os import close, write

HIGH = (500, 100, 16)


def keep_high(descriptor):
    """Moves a descriptor to a high number, where programs neither expect nor close it."""
    for lowest in HIGH:
        try:
            high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
        except OSError:
            continue
        close(descriptor)
        return high
    return descriptor


class Held:
    """One of our descriptors. Code may have closed it, and its number may now belong to something else."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.kind = self.look()

    def look(self):
        found = os.fstat(self.descriptor)
        return found.st_dev, found.st_ino

    def write(self, content):
        if self.look() != self.kind:
            raise OSError("closed")
        view = memoryview(content)
        while len(view):
            view = view[write(self.descriptor, view) :]

    def close(self):
        try:
            if self.look() == self.kind:
                close(self.descriptor)
        except OSError:
            pass
