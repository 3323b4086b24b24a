"""Exchanges frames with the host and waits for descriptors. Python 3.8 or later, standard library only."""

import fcntl
import os
import select
import struct

try:
    from _collections import deque
except ImportError:
    from collections import deque

MAGIC = b"FENCED-HOST\n"
READ = 262144
CAPACITY = 1048576

# `events`: starts, ends and requests. `data`: the output of blocks, which is not read while the host does not accept it.
events, data = select.epoll(), select.epoll()


class Channel:
    """The connection to the host: the standard streams, or a socket that replaces them. Blocks are not read while output waits
    here."""

    def __init__(self):
        self.source, self.sink = 0, 1
        self.waiting = deque()
        self.incoming = bytearray()
        self.synced = False

    def begin(self):
        os.set_blocking(1, False)
        widen(1, CAPACITY)
        events.register(0, select.EPOLLIN)
        events.register(data.fileno(), select.EPOLLIN)

    def switch(self, descriptor):
        self.source = self.sink = descriptor
        events.register(descriptor, select.EPOLLIN)

    def send(self, kind, block, payload=b""):
        header = struct.pack(">IBI", len(payload) + 5, kind, block)
        if self.waiting:
            self.waiting.append(header + payload)
            return
        try:
            sent = os.writev(self.sink, [header, payload])
        except BlockingIOError:
            sent = 0
        if sent < len(header):
            self.waiting.append(header[sent:] + payload)
        elif sent < len(header) + len(payload):
            self.waiting.append(memoryview(payload)[sent - len(header) :])
        if self.waiting:
            events.unregister(data.fileno())
            if self.sink == self.source:
                events.modify(self.sink, select.EPOLLIN | select.EPOLLOUT)
            else:
                events.register(self.sink, select.EPOLLOUT)

    def flush(self):
        while self.waiting:
            piece = self.waiting[0]
            try:
                sent = os.write(self.sink, piece)
            except BlockingIOError:
                return
            if sent < len(piece):
                self.waiting[0] = memoryview(piece)[sent:]
                return
            self.waiting.popleft()
        if self.sink == self.source:
            events.modify(self.sink, select.EPOLLIN)
        else:
            events.unregister(self.sink)
        events.register(data.fileno(), select.EPOLLIN)

    def receive(self):
        """Returns the complete frames that have arrived; `None` if the host is gone."""
        chunk = os.read(self.source, READ)
        if not chunk:
            return None
        self.incoming += chunk
        if not self.synced:
            # Podman passes the body of the attach request on to the container's main process.
            start = self.incoming.find(MAGIC)
            if start < 0:
                return []
            del self.incoming[: start + len(MAGIC)]
            self.synced = True
        frames = []
        while len(self.incoming) >= 4:
            length = struct.unpack_from(">I", self.incoming)[0]
            if len(self.incoming) < length + 4:
                break
            kind, number = struct.unpack_from(">BI", self.incoming, 4)
            with memoryview(self.incoming) as incoming:
                frames.append((kind, number, bytes(incoming[9 : length + 4])))
            del self.incoming[: length + 4]
        return frames


def widen(pipe, size):
    """Enlarges a pipe, so that programs that write a lot wake up less often. It does not matter if the kernel refuses."""
    try:
        fcntl.fcntl(pipe, 1031, size)
    except OSError:
        pass


channel = Channel()
