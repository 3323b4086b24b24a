/** Python: constants, frames to the host, what a block is, small questions to the system. */
export const supervisorBase: string = String.raw`
import errno, fcntl, os, select, struct, sys, time

try:
    import _signal as signal
    from _collections import deque
except ImportError:
    import signal
    from collections import deque

RUN, INPUT, KILL, CREDIT, RESET = 1, 2, 3, 4, 5
HELLO, STDOUT, STDERR, EXIT, DONE = 16, 17, 18, 19, 20
READ = 262144
CAPACITY = 1048576
FAILED = 1 << 31
MAGIC = b"FENCED-HOST\n"
DIRECTORY, PROBE, PATH, ALONE = sys.argv[1:5]
PROGRAMS = sys.argv[5:]
SELF = os.getpid()

try:
    import ctypes
    prctl = ctypes.CDLL(None).prctl
except Exception:
    prctl = None


def set_process(option, value):
    try:
        if prctl is not None:
            prctl(option, value, 0, 0, 0)
    except Exception:
        pass


def adopt_orphans():
    set_process(36, 1)


def protect(dumpable):
    set_process(4, dumpable)


class Channel:
    """To the host: by the standard streams, or by a socket in place of them. While output waits, blocks are not read."""

    def __init__(self):
        self.source, self.sink = 0, 1
        self.waiting = deque()

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
            self.waiting.append(memoryview(payload)[sent - len(header):])
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


class Block:
    def __init__(self, number, mark, credit, shepherd, status, pipes):
        self.number = number
        self.mark = mark
        self.credit = credit
        self.shepherd = shepherd
        self.status = status
        self.pipes = pipes
        self.paused = False
        self.code = None
        self.problem = None
        self.ended = False
        self.killing = False
        self.stopped = set()
        self.empty = 0
        self.oom = oom_kills()


def oom_kills():
    for file in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        try:
            with open(file) as lines:
                for line in lines:
                    if line.startswith("oom_kill "):
                        return int(line.split()[1])
        except OSError:
            pass
    return None


def which(name, path):
    for directory in [""] if "/" in name else path.split(":"):
        candidate = os.path.join(directory, name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None


def widen(pipe, size):
    """Programs that write much are woken less often. A refusal costs nothing but that."""
    try:
        fcntl.fcntl(pipe, 1031, size)
    except OSError:
        pass


def no_process(number):
    return "No process could be started in the container: " + os.strerror(number)


def report(number, code, memory, killed, problem):
    known = 2 if memory is None else int(memory)
    head = struct.pack(">iBB", -1 if code is None else code, known, killed)
    channel.send(EXIT, number, head + (problem or "").encode())
`;
