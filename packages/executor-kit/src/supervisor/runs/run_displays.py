"""Puts the displays of a run's blocks together. Python 3.8 or later, standard library only."""

import struct

from _fenced_run_log import RICH

# How many displays one run keeps; the longest one, as in `display-messages.ts`.
MOST, LONGEST = 10000, 33554432
ENDLESS = 1 << 62


class Displays:
    """A display arrives in parts, with its length first, and becomes one entry of the run's log."""

    def __init__(self, log):
        self.log = log
        # A display that has not arrived completely, and how many bytes to leave out.
        self.part, self.skipping = bytearray(), 0
        self.kept = self.count = 0

    @property
    def size(self):
        return self.kept + len(self.part)

    def begin_block(self):
        self.part, self.skipping = bytearray(), 0

    def take(self, data, has_room):
        """Takes parts; returns whether they can be displays. `has_room` says whether one of this size can be kept."""
        is_valid = True
        while len(data):
            if self.skipping:
                count = min(self.skipping, len(data))
                self.skipping -= count
                data = data[count:]
                continue
            wanted = 4 if len(self.part) < 4 else 4 + struct.unpack_from(">I", self.part)[0]
            count = min(wanted - len(self.part), len(data))
            self.part += data[:count]
            data = data[count:]
            if len(self.part) < 4:
                break
            size = struct.unpack_from(">I", self.part)[0]
            if size > LONGEST:
                # The host finds that out, too.
                self.add(bytes(self.part))
                self.skipping, self.part = ENDLESS, bytearray()
                is_valid = False
            elif len(self.part) == 4 and size and not has_room(size):
                self.skipping, self.part = size, bytearray()
                self.add(b"")
            elif len(self.part) == 4 + size:
                self.kept += size
                self.add(bytes(self.part))
                self.part = bytearray()
        return is_valid

    def add(self, message):
        self.count += 1
        if self.count <= MOST:
            self.log.add(RICH, message)
        else:
            self.log.skip(RICH)
