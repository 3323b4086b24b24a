"""Exchanges frames with the host and waits for descriptors. Python 3.8 or later, standard library only."""

import fcntl
import os
import select
import struct

from _fenced_wire import TUNNEL_WRITE

try:
    from _collections import deque
except ImportError:
    from collections import deque

MAGIC = b"FENCED-HOST\n"
GREETING = b"FENCED1\n"
HEADER = 9
READ = 262144
CAPACITY = 1048576

# `events`: starts, ends and requests. `data`: the output of blocks, which is not read while the host does not accept it. `apart`: that
# of submitted runs, which never wait for the host.
events, data, apart = select.epoll(), select.epoll(), select.epoll()


class Channel:
    """The connection to the host: the standard streams, or a socket that replaces them. Blocks are not read while output waits
    here."""

    def __init__(self):
        self.source, self.sink = 0, 1
        self.waiting = deque()
        # What has arrived is between `start` and `end`.
        self.incoming = bytearray(2 * READ)
        self.start = self.end = 0
        self.synced = False
        # True while nobody wants to know what is sent.
        self.muted = False

    def begin(self):
        os.set_blocking(1, False)
        widen(1, CAPACITY)
        events.register(0, select.EPOLLIN)
        events.register(data.fileno(), select.EPOLLIN)
        events.register(apart.fileno(), select.EPOLLIN)

    def switch(self, descriptor):
        self.source = self.sink = descriptor
        events.register(descriptor, select.EPOLLIN)

    def replace(self, descriptor):
        """Continues with another host, to which nothing is sent until it is greeted; what was for the one before it is dropped."""
        if self.waiting:
            self.waiting.clear()
            events.register(data.fileno(), select.EPOLLIN)
            if self.sink != self.source:
                events.unregister(self.sink)
        events.unregister(self.source)
        if self.source == 0:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, 0)
            os.dup2(nothing, 1)
            os.close(nothing)
        else:
            os.close(self.source)
        self.start = self.end = 0
        self.synced, self.muted = False, True
        os.set_blocking(descriptor, False)
        self.switch(descriptor)

    def greet(self, kind, payload):
        self.muted = False
        os.write(self.sink, GREETING)
        self.send(kind, 0, payload)

    def send(self, kind, block, payload=b""):
        if self.muted:
            return
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
            # The sender may reuse the payload's memory.
            self.waiting.append(bytes(payload[sent - len(header) :]))
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
        """Returns the complete frames that have arrived; `None` if the host is gone. What is for a tunnel is in memory that the next
        call uses again; it would otherwise be copied twice more."""
        self.make_room()
        with memoryview(self.incoming) as memory, memory[self.end :] as free:
            count = os.readv(self.source, [free])
        if not count:
            return None
        self.end += count
        if not self.synced:
            # Podman passes the body of the attach request on to the container's main process.
            start = self.incoming.find(MAGIC, self.start, self.end)
            if start < 0:
                # Its beginning may have arrived.
                self.start = max(self.start, self.end - len(MAGIC))
                return []
            self.start = start + len(MAGIC)
            self.synced = True
        frames = []
        memory = memoryview(self.incoming)
        while self.end - self.start >= HEADER:
            length, kind, number = struct.unpack_from(">IBI", memory, self.start)
            if self.end - self.start < length + 4:
                break
            payload = memory[self.start + HEADER : self.start + length + 4]
            frames.append((kind, number, payload if kind == TUNNEL_WRITE else bytes(payload)))
            self.start += length + 4
        return frames

    def make_room(self):
        """Makes room for the next read, and for all of a frame whose beginning has arrived."""
        count = self.end - self.start
        needed = READ
        if count >= 4 and self.synced:
            needed = max(READ, struct.unpack_from(">I", self.incoming, self.start)[0] + 4 - count)
        if count and len(self.incoming) - self.end >= needed:
            return
        if len(self.incoming) < count + needed:
            # A new buffer, because parts of the old one may still be in use.
            self.incoming = self.incoming[self.start : self.end] + bytes(max(needed, 2 * READ - count))
        elif count:
            self.incoming[:count] = self.incoming[self.start : self.end]
        self.start, self.end = 0, count


def widen(pipe, size):
    """Enlarges a pipe, so that programs that write a lot wake up less often. It does not matter if the kernel refuses."""
    try:
        fcntl.fcntl(pipe, 1031, size)
    except OSError:
        pass


channel = Channel()
