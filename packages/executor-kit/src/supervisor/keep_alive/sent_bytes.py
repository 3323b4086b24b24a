"""The bytes that were sent to a program and that it may not have received yet. Python 3.8 or later, standard library only."""

# The supervisor waits while there are more.
MOST = 4194304


class SentBytes:
    def __init__(self):
        self.kept = bytearray()
        # How many bytes there were before the first one that is kept.
        self.start = 0

    @property
    def end(self):
        return self.start + len(self.kept)

    @property
    def full(self):
        return len(self.kept) >= MOST

    def add(self, piece):
        self.kept += piece

    def received(self, count):
        """Forgets what has arrived. Returns false for a number that cannot be true."""
        if not self.start <= count <= self.end:
            # An older acknowledgement may arrive after a newer one, with a connection that replaces another.
            return 0 <= count < self.start
        del self.kept[: count - self.start]
        self.start = count
        return True

    def piece(self, at, most):
        """Without a copy: release it before anything else is added."""
        with memoryview(self.kept) as memory:
            return memory[at - self.start : at - self.start + most]
