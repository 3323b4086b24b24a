"""Runs the cells of one context of the code interpreter: starts its interpreter, gives it one cell after another, and tells the
host what they print, show and raise. Python 3.8 or later, Linux, standard library only.

On standard input and output are frames: the lengths of a JSON text and of the bytes that follow it, both in four bytes, and the
two themselves. The first frame starts the interpreter; `run` gives it a cell; `interrupt` ends the running cell. It ends with its
input.
"""

import fcntl
import json
import os
import re
import selectors
import signal
import socket
import struct
import tempfile
import termios
import time

PIECE = 65_536
# How long a line that is not complete waits for its rest.
PATIENCE = 0.02
# What waits for the host until the interpreter has to wait, and the maximum length of a message from the interpreter.
ROOM, MOST = 1_048_576, 16_000_000
# Pipes of earlier cells that programs may still have.
MOST_PIPES = 32
# The descriptor on which bash reports the end of a cell.
STATUS = 198
CONTROL, MESSAGES = 3, 4
START = 'import sys; exec(compile(sys.argv[1], "<fenced>", "exec"), {"__name__": "_fenced_interpreter"})'


class Host:
    """The other end of standard input and output."""

    def __init__(self):
        self.waiting, self.received = bytearray(), bytearray()

    def tell(self, text, data=b""):
        text = text if isinstance(text, bytes) else json.dumps(text).encode()
        self.waiting += struct.pack(">II", len(text), len(data)) + text + data

    def flush(self):
        try:
            del self.waiting[: os.write(1, self.waiting)]
        except BlockingIOError:
            pass

    def requests(self):
        """Yields what has arrived; `None` at the end."""
        piece = os.read(0, PIECE)
        if not piece:
            yield None
        self.received += piece
        while len(self.received) >= 8:
            text, data = struct.unpack(">II", self.received[:8])
            if len(self.received) < 8 + text + data:
                return
            request = json.loads(self.received[8 : 8 + text].decode("utf-8", "surrogatepass"))
            del self.received[: 8 + text + data]
            yield request


class Output:
    """A pipe into which programs write. Complete lines are passed on at once, so that one line is rarely two messages."""

    def __init__(self, descriptor, name):
        self.descriptor, self.name, self.since = descriptor, name, None
        self.pending = bytearray()

    def take(self):
        """Reads what is there; returns whether there can be more."""
        try:
            piece = os.read(self.descriptor, PIECE)
        except BlockingIOError:
            return True
        if not self.pending:
            self.since = time.monotonic()
        self.pending += piece
        if self.pending.endswith(b"\n") or len(self.pending) >= PIECE:
            self.pass_on()
        return bool(piece)

    def drain(self):
        take_waiting(self)
        self.pass_on()

    def pass_on(self):
        if self.pending and is_running():
            host.tell({"event": self.name}, bytes(self.pending))
        self.pending = bytearray()

    def is_late(self, now):
        return bool(self.pending) and now - self.since >= PATIENCE


class Messages:
    """A pipe on which an interpreter reports: JSON texts, each after its length in four bytes."""

    def __init__(self, descriptor):
        self.descriptor, self.received, self.skip = descriptor, bytearray(), 0

    def take(self):
        try:
            piece = os.read(self.descriptor, PIECE)
        except BlockingIOError:
            return True
        self.received += piece
        while True:
            if self.skip:
                skipped = min(self.skip, len(self.received))
                del self.received[:skipped]
                self.skip -= skipped
            if len(self.received) < 4 or self.skip:
                break
            (length,) = struct.unpack(">I", self.received[:4])
            if length > MOST:
                drain_outputs()
                host.tell({"event": "left_out", "bytes": length})
                del self.received[:4]
                self.skip = length
            elif len(self.received) < 4 + length:
                break
            else:
                text = bytes(self.received[4 : 4 + length])
                del self.received[: 4 + length]
                self.handle(text)
        return bool(piece)

    def drain(self):
        take_waiting(self)

    def handle(self, text):
        drain_outputs()
        if text == b'{"done":true}':
            finish()
        elif is_running():
            host.tell(b'{"event":"message","message":' + text + b"}")


class Lines:
    """What bash reports: a line for each cell, with the exit code."""

    def __init__(self, descriptor):
        self.descriptor, self.received = descriptor, bytearray()

    def take(self):
        try:
            piece = os.read(self.descriptor, PIECE)
        except BlockingIOError:
            return True
        self.received += piece[: PIECE - len(self.received)]
        while b"\n" in self.received:
            line, _, self.received = self.received.partition(b"\n")
            if line == b"ready" and not state["ready"]:
                become_ready()
            elif line.isdigit() and is_running():
                drain_outputs()
                if line != b"0":
                    said = {"error": {"name": "ExitCode", "value": line.decode(), "traceback": ""}}
                    host.tell({"event": "message", "message": said})
                finish()
        return bool(piece)


class Ends:
    """The pipe on which Python reports the end of a cell."""

    def __init__(self, descriptor):
        self.descriptor = descriptor

    def take(self):
        try:
            if os.read(self.descriptor, 4):
                drain_outputs()
                finish()
                return False
        except BlockingIOError:
            return True
        # The interpreter has ended, or code has closed this.
        if is_running():
            end_interpreter()
        return False


class Readiness:
    """The pipe on which Python reports that it can run cells."""

    def __init__(self, descriptor):
        self.descriptor = descriptor

    def take(self):
        try:
            said = os.read(self.descriptor, PIECE)
        except BlockingIOError:
            return True
        if said:
            become_ready()
        return False


class Feed:
    """What an interpreter has yet to read."""

    def __init__(self, descriptor):
        self.descriptor, self.pending = descriptor, bytearray()
        os.set_blocking(descriptor, False)

    def add(self, content):
        self.pending += content
        self.write()

    def write(self):
        try:
            while self.pending:
                del self.pending[: os.write(self.descriptor, self.pending)]
            unwatch(self.descriptor)
        except BlockingIOError:
            watch(self, selectors.EVENT_WRITE)
        except OSError:
            self.pending.clear()
            unwatch(self.descriptor)


host = Host()
selector = selectors.DefaultSelector()
# What is heard even while the host does not read.
urgent = selectors.DefaultSelector()
state = {"interpreter": None, "ready": False, "running": False, "feed": None, "control": None, "kind": None}
# Earlier cells' pipes come first.
outputs, messages = [], []
heard, woken = os.pipe()


def available(descriptor):
    return struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0\0\0\0"))[0]


def take_waiting(source):
    """Reads what is there now, and not what programs go on to write meanwhile, which may never end."""
    for _ in range(-(-available(source.descriptor) // PIECE)):
        if not available(source.descriptor) or not source.take():
            return


def is_running():
    return state["running"]


def watch(source, events=selectors.EVENT_READ):
    try:
        selector.register(source.descriptor, events, source)
    except KeyError:
        selector.modify(source.descriptor, events, source)


def unwatch(descriptor):
    try:
        selector.unregister(descriptor)
    except (KeyError, ValueError):
        pass


def listen(source):
    os.set_blocking(source.descriptor, False)
    watch(source)
    return source


def close(source):
    unwatch(source.descriptor)
    os.close(source.descriptor)


def drain_outputs():
    for each in outputs:
        try:
            each.drain()
        except OSError:
            pass


def become_ready():
    state["ready"] = True
    for each in outputs:
        each.drain()
    host.tell({"event": "ready"})


def finish():
    if is_running():
        for each in messages:
            each.drain()
        drain_outputs()
    # A message that waited may have ended it.
    if is_running():
        state["running"] = False
        host.tell({"event": "done"})


def launch(argv, variables, cwd, descriptors):
    """Starts a program in a session of its own, with these descriptors from 0 on, or as `{number: descriptor}`. Raises OSError."""
    failed, told = os.pipe()
    numbered = descriptors if isinstance(descriptors, dict) else dict(enumerate(descriptors))
    pid = os.fork()
    if pid == 0:
        step = 1
        try:
            os.setsid()
            lowest = max(numbered) + 1
            told = fcntl.fcntl(told, fcntl.F_DUPFD_CLOEXEC, lowest)
            high = {number: fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, lowest) for number, each in numbered.items()}
            for number, each in high.items():
                os.dup2(each, number)
            for each in (signal.SIGPIPE, signal.SIGINT):
                signal.signal(each, signal.SIG_DFL)
            if cwd is not None:
                os.chdir(cwd)
            step = 2
            os.execvpe(argv[0], argv, variables)
        except OSError as error:
            os.write(told, b"%d %d" % (step, error.errno))
        finally:
            os._exit(127)
    os.close(told)
    for each in set(numbered.values()):
        os.close(each)
    said = os.read(failed, 100)
    os.close(failed)
    if said:
        os.waitpid(pid, 0)
        step, number = said.split()
        raise OSError(int(number), "directory" if step == b"1" else "program")
    state["interpreter"] = pid


def start(request):
    kind, cwd = request["kind"], request.get("cwd")
    state["kind"] = kind
    variables = dict(os.environ)
    if cwd is not None:
        cwd = os.path.join(os.getcwd(), os.path.expanduser(cwd))
    try:
        {"python": start_python, "node": start_node, "bash": start_bash}[kind](request, variables, cwd)
    except OSError as error:
        what = "directory" if error.strerror == "directory" else "program"
        host.tell({"event": "failed", "what": what, "reason": os.strerror(error.errno)})


def start_python(request, variables, cwd):
    variables.setdefault("PYTHONSAFEPATH", "fenced")
    ours, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    said = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    # There are no commands that call host functions.
    argv = ["python3", "-u", "-c", START, request["program"], ""]
    launch(argv, variables, cwd, [nothing, nothing, nothing, other.detach(), said[1]])
    state["control"] = ours
    listen(Readiness(said[0]))


def start_node(request, variables, cwd):
    cells, sent = os.pipe()
    reported, reports = os.pipe()
    ends = open_outputs()
    nothing = os.open(os.devnull, os.O_RDONLY)
    launch(["node", "-e", request["program"]], variables, cwd, [nothing, *ends, cells, reports])
    messages.append(listen(Messages(reported)))
    state["feed"] = Feed(sent)
    state["feed"].add(packed(json.dumps(request["files"])))
    become_ready()


def start_bash(request, variables, cwd):
    cells, sent = os.pipe()
    reported, reports = os.pipe()
    ends = open_outputs()
    argv = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
    launch(argv, variables, cwd, {0: cells, 1: ends[0], 2: ends[1], STATUS: reports})
    listen(Lines(reported))
    state["feed"] = Feed(sent)
    # An interactive shell goes on with its next line after an interrupt. It must show no prompts and know no `!`.
    state["feed"].add(b"PS1= PS2= PROMPT_COMMAND=; set +H; unset HISTFILE; echo ready >&%d\n" % STATUS)


def open_outputs():
    """Opens pipes for a program's output and errors; returns the ends for the program."""
    ends = []
    for name in ("stdout", "stderr"):
        reader, writer = os.pipe()
        outputs.append(listen(Output(reader, name)))
        ends.append(writer)
    return ends


def run(request):
    state["running"] = True
    host.tell({"event": "begun"})
    runner = {"python": run_python, "node": run_node, "bash": run_bash}[state["kind"]]
    runner(request["code"], request["env"], request["number"])


def run_python(code, env, number):
    while len(outputs) > MOST_PIPES:
        close(outputs.pop(0))
    ends = open_outputs()
    while len(messages) > MOST_PIPES // 2:
        close(messages.pop(0))
    shown, said = os.pipe(), os.pipe()
    messages.append(listen(Messages(shown[0])))
    listen(Ends(said[0]))
    source = tempfile.TemporaryFile()
    source.write(json.dumps({"code": code, "env": env, "modules": None, "name": "<cell %d>" % number}).encode())
    source.seek(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    given = [source.fileno(), nothing, *ends, shown[1], said[1]]
    rights = struct.pack("=%di" % len(given), *given)
    try:
        state["control"].sendmsg([b"run"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    except OSError:
        end_interpreter()
    source.close()
    for each in [nothing, *ends, shown[1], said[1]]:
        os.close(each)


def run_node(code, env, number):
    state["feed"].add(packed(json.dumps({"code": code, "env": env, "number": number})))


def run_bash(code, env, number):
    names = [name for name in env if re.match(r"[A-Za-z_][A-Za-z0-9_]*$", name)]
    before = "".join("export %s=%s\n" % (name, quoted(env[name])) for name in names)
    known = [(name, os.environ.get(name)) for name in names]
    after = "".join(
        "unset %s\n" % name if value is None else "export %s=%s\n" % (name, quoted(value)) for name, value in known
    )
    # The status is a line of its own, because an interrupt ends the rest of a line.
    line = "eval %s </dev/null %d>&-\necho $? >&%d\n" % (quoted(code), STATUS, STATUS)
    state["feed"].add((before + line + after).encode("utf-8", "surrogateescape"))


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def packed(text):
    content = text.encode("utf-8", "surrogatepass")
    return struct.pack(">I", len(content)) + content


def interrupt():
    if is_running() and state["interpreter"] is not None:
        try:
            os.killpg(state["interpreter"], signal.SIGINT)
        except OSError:
            pass


def end_interpreter():
    if state["interpreter"] is not None:
        try:
            os.killpg(state["interpreter"], signal.SIGKILL)
        except OSError:
            pass


def reap():
    """Returns whether the interpreter has ended, and how."""
    os.read(heard, PIECE)
    pid = state["interpreter"]
    if pid is None:
        return None
    found, status = os.waitpid(pid, os.WNOHANG)
    if found != pid:
        return None
    state["interpreter"] = None
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def handle(request):
    if request["op"] == "start":
        start(request)
    elif request["op"] == "run":
        run(request)
    elif request["op"] == "interrupt":
        interrupt()


def serve():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for descriptor in (woken, heard, 1):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(woken)
    for each in (selector, urgent):
        each.register(0, selectors.EVENT_READ, "requests")
        each.register(heard, selectors.EVENT_READ, "signals")
    urgent.register(1, selectors.EVENT_WRITE, "host")
    is_listed = False
    while True:
        if host.waiting:
            host.flush()
        if is_listed != bool(host.waiting):
            is_listed = not is_listed
            if is_listed:
                selector.register(1, selectors.EVENT_WRITE, "host")
            else:
                selector.unregister(1)
        # Programs wait while the host does not read.
        ready = urgent if len(host.waiting) > ROOM else selector
        for key, mask in ready.select(PATIENCE if any(each.pending for each in outputs) else None):
            if key.data == "requests":
                for request in host.requests():
                    if request is None:
                        return
                    handle(request)
            elif key.data == "signals":
                code = reap()
                if code is not None:
                    end(code)
                    return
            elif key.data == "host":
                continue
            elif mask & selectors.EVENT_WRITE:
                key.data.write()
            elif not key.data.take():
                forget(key.data)
        now = time.monotonic()
        for each in outputs:
            if each.is_late(now):
                each.pass_on()


def forget(source):
    """A pipe that nobody can write into any more."""
    if isinstance(source, Output):
        source.pass_on()
        outputs.remove(source)
    elif isinstance(source, Lines) or (isinstance(source, Messages) and state["kind"] == "node"):
        # The interpreter has ended, or code has closed this.
        end_interpreter()
    if source in messages:
        messages.remove(source)
    close(source)


def end(code):
    for each in messages:
        each.drain()
    drain_outputs()
    host.tell({"event": "ended", "exitCode": code})


try:
    serve()
except BrokenPipeError:
    pass
finally:
    end_interpreter()
    try:
        os.set_blocking(1, True)
        while host.waiting:
            host.flush()
    except OSError:
        pass
