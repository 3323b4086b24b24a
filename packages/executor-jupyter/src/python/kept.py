"""Carries a kernel's messages over a stream to the keeper, which keeps them until they have reached a program. Python 3.8 or later,
Linux, standard library and what every ipykernel has.

Everything runs on the thread of the control channel, also while a cell runs. To the kernel, this is a client in its own process: it sends
requests to the kernel's sockets on this machine, where nothing is lost. What the kernel publishes does not go to the server any more, which would keep
all of it for a client that does not come back; only its state does.
"""

import os
import socket
import struct
import subprocess
import sys
import threading
import time

from _fenced_links import READ, Links

DELIMITER = b"<IDS|MSG>"
# Bytes that the program has not read, beyond which cells wait.
MOST = 4194304
LONGEST = 1 << 28
# Seconds between looks at the keeper, and how many of them it may be silent.
TICK, PATIENCE = 5, 12
STARTING = 30

kept = None


class Problem(Exception):
    """Says why a kernel cannot be kept."""


def start(kernel, settings, arguments, act, frames):
    """Starts the keeper, and sends messages through it from now on. `settings`: what the host says about the session; `act` answers a
    request, and `frames` takes frames of host functions."""
    global kept
    thread, app = getattr(kernel, "control_thread", None), getattr(kernel, "parent", None)
    if not hasattr(getattr(thread, "io_loop", None), "add_handler") or not hasattr(app, "shell_port"):
        raise Problem("it is not an ipykernel of version 6 or later")
    if not os.path.isdir("/proc/self") or not hasattr(socket, "AF_UNIX"):
        raise Problem("it does not run on Linux")
    if os.environ.get("JPY_PARENT_PID") != str(os.getppid()):
        raise Problem("the server has not started it on its own machine, so nothing could end it there for good")
    made = Kept(kernel, settings, arguments, act, frames)
    done = threading.Event()
    thread.io_loop.add_callback(lambda: (made.begin(), done.set()))
    if not done.wait(STARTING):
        raise Problem("its control channel does not answer")
    kept = made


def named_file(app):
    """How the kernel's command line names its connection file, which is that of every kernel that the server starts in its place."""
    name = os.path.basename(app.connection_file)
    with open("/proc/self/cmdline", "rb") as file:
        found = [os.fsdecode(word) for word in file.read().split(b"\0") if os.path.basename(os.fsdecode(word)) == name]
    if not name or not found:
        raise Problem("its command line does not name its connection file")
    return found[0]


def take_files_over(name):
    """Tells the keeper of the kernel before this one that its files are in use again; returns whether they are still there."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(10)
            connection.connect("\0" + name)
            # Such a socket has no permissions: once the keeper is gone, anybody can have its name.
            if (
                struct.unpack("=3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
                != os.geteuid()
            ):
                return False
            connection.sendall(b"heir")
            return connection.recv(1) == b"."
    except OSError:
        return False


def has_keeper(app):
    """Whether a keeper of this kernel, or of those before it, is still there."""
    name = os.fsencode(named_file(app))
    for pid in os.listdir("/proc"):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[1:2] == [b"-I"] and name in words:
            return True
    return False


def wait_for_room():
    """Waits until the program has read enough of what was printed, or another one has connected."""
    here = threading.current_thread()
    while kept is not None and os.getpid() == kept.process and here not in kept.threads and kept.is_full():
        time.sleep(0.01)


class Kept:
    def __init__(self, kernel, settings, arguments, act, frames):
        self.kernel, self.act, self.frames = kernel, act, frames
        self.name = settings["socket"]
        self.process = os.getpid()
        self.loop = kernel.control_thread.io_loop
        self.threads = (kernel.control_thread, kernel.iopub_thread.thread)
        self.silent = 0
        # Whether the keeper has said last that no program is connected.
        self.is_alone = False
        self.incoming, self.outgoing = bytearray(), bytearray()
        # Bytes that cells have published for this program, and how many of them it has read.
        self.published = self.read = 0
        # Messages that the kernel has published and this thread has not taken up.
        self.queue, self.lock = [], threading.Lock()
        self.busy = set()
        self.links = Links(self.loop, self.name)
        self.spawn(settings, arguments)

    def spawn(self, settings, arguments):
        self.control, control = socket.socketpair()
        self.stream, stream = socket.socketpair()
        ours, first = socket.socketpair()
        self.links.add(settings["link"], ours)
        before = [sys.executable, "-I", "-S", "-X", "utf8", "-c", settings["keeper"], self.name]
        after = [str(self.process), named_file(self.kernel.parent)] + arguments
        self.command = before, after
        self.start_keeper([each.fileno() for each in (control, stream, first)])
        for each in (control, stream, first):
            each.close()
        os.register_at_fork(after_in_child=self.forget)

    def start_keeper(self, numbers):
        before, after = self.command
        nothing, path = subprocess.DEVNULL, {"PATH": "/usr/local/bin:/usr/bin:/bin"}
        subprocess.Popen(
            before + ([str(each) for each in numbers] or ["", "", ""]) + after,
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            cwd="/",
            env=path,
            start_new_session=True,
            pass_fds=numbers,
        ).wait()

    def forget(self):
        """In a copy of the kernel: its end must not be missed because of what is left running."""
        for each in [self.control, self.stream, *self.links.sockets()]:
            os.close(each.fileno())

    def begin(self):
        import zmq
        from zmq.eventloop.zmqstream import ZMQStream

        app, context = self.kernel.parent, zmq.Context()
        self.clients = {}
        identity = os.urandom(16).hex().encode()
        for channel in ("shell", "stdin"):
            client = context.socket(zmq.DEALER)
            client.setsockopt(zmq.IDENTITY, identity)
            client.setsockopt(zmq.LINGER, 0)
            for option in (zmq.SNDHWM, zmq.RCVHWM):
                client.setsockopt(option, 0)
            between = ":" if app.transport == "tcp" else "-"
            client.connect("%s://%s%s%d" % (app.transport, app.ip, between, getattr(app, channel + "_port")))
            self.clients[channel] = ZMQStream(client, self.loop)
            self.clients[channel].on_recv(lambda parts, channel=channel: self.answered(channel, parts))
        self.control.setblocking(False)
        self.loop.add_handler(self.control, lambda *_: self.hear(), self.loop.READ)
        self.follow(self.stream)
        self.links.begin()
        self.catch_output()
        self.tick()

    def catch_output(self):
        thread = self.kernel.iopub_thread
        really_send = thread._really_send

        def send(message, *rest, **options):
            if os.getpid() != self.process:
                return really_send(message, *rest, **options)
            parts = [bytes(each) for each in message]
            parts = parts[parts.index(DELIMITER) + 2 :]
            joined = join([b"iopub"] + parts)
            with self.lock:
                self.published += len(joined)
                self.queue.append(joined)
            self.loop.add_callback(self.take_queue)
            if b'"status"' in parts[0]:
                really_send(message, *rest, **options)

        thread._really_send = send

    def is_full(self):
        return self.published - self.read > MOST

    def tick(self):
        """A keeper that gives no sign of life was stopped: nothing would end the kernel then."""
        self.silent += 1
        if self.silent > PATIENCE:
            self.end()
        self.loop.call_later(TICK, self.tick)

    def end(self):
        """Without a keeper, nothing would end the kernel in time. Nor would anything end the one that the server starts in its place, unless a
        program is connected, which does."""
        try:
            if self.is_alone:
                self.start_keeper([])
            else:
                self.act("end", {"remove_workspace": False})
        finally:
            os._exit(1)

    # The keeper

    def hear(self):
        try:
            word, rights, _, _ = self.control.recvmsg(4096, socket.CMSG_SPACE(4))
        except BlockingIOError:
            return
        except OSError:
            word, rights = b"", []
        if not word:
            self.end()
        self.silent = 0
        self.is_alone = not word.endswith(b".")
        for right in rights:
            for number in struct.unpack("=%di" % (len(right[2]) // 4), right[2]):
                self.replace(socket.socket(fileno=number))

    def replace(self, stream):
        """Another program uses the session. What the last one has not received is dropped."""
        self.loop.remove_handler(self.stream)
        self.stream.close()
        self.stream = stream
        self.incoming.clear()
        self.outgoing.clear()
        with self.lock:
            self.queue.clear()
            self.published = self.read = 0
        self.frames(None, None)
        self.follow(stream)

    def follow(self, stream):
        stream.setblocking(False)
        self.watched = self.loop.READ
        self.loop.add_handler(stream, lambda _, events: self.ready(events), self.watched)

    def ready(self, events):
        if events & self.loop.WRITE:
            self.flush()
        if events & ~self.loop.WRITE:
            try:
                piece = self.stream.recv(READ)
            except BlockingIOError:
                return
            except OSError:
                piece = b""
            if not piece:
                # The keeper is about to say why.
                self.loop.update_handler(self.stream, 0)
                return
            self.incoming += piece
            self.take_messages()

    def flush(self):
        while self.outgoing:
            try:
                count = self.stream.send(self.outgoing[:READ])
            except BlockingIOError:
                break
            except OSError:
                self.outgoing.clear()
                break
            del self.outgoing[:count]
        wanted = self.loop.READ | (self.loop.WRITE if self.outgoing else 0)
        if wanted != self.watched:
            self.watched = wanted
            self.loop.update_handler(self.stream, wanted)

    def take_messages(self):
        at = 0
        while len(self.incoming) - at >= 4:
            length = struct.unpack_from(">I", self.incoming, at)[0]
            if length > LONGEST:
                self.end()
            if len(self.incoming) - at < length + 4:
                break
            message = bytes(self.incoming[at + 4 : at + 4 + length])
            at += 4 + length
            self.take(*split(message))
        del self.incoming[:at]

    # Messages

    def take(self, channel, *parts):
        session = self.kernel.session
        if channel in self.clients:
            header = session.unpack(parts[0])
            if header["msg_type"].endswith("_request"):
                self.busy.add(header["msg_id"])
            self.clients[channel].send_multipart([DELIMITER, session.sign(list(parts[:4])), *parts])
            return
        header, content = session.unpack(parts[0]), session.unpack(parts[3])
        if header["msg_type"] == "fenced_taken":
            self.read = content["taken"]
        elif header["msg_type"] == "fenced_calls":
            self.frames(
                lambda given, pieces=None: self.tell("fenced_frames", header, given, pieces),
                {"content": content, "buffers": parts[4:]},
            )
        else:
            self.tell("fenced_reply", header, self.act(content["name"], content["arguments"]))

    def tell(self, kind, parent, content, buffers=None):
        session = self.kernel.session
        message = session.serialize(session.msg(kind, content=content, parent=parent))
        self.emit(join([b"control"] + message[message.index(DELIMITER) + 2 :] + (buffers or [])))

    def answered(self, channel, parts):
        parts = [bytes(each) for each in parts]
        parts = parts[parts.index(DELIMITER) + 2 :]
        if channel == "shell":
            self.busy.discard(self.kernel.session.unpack(parts[1]).get("msg_id"))
        self.emit(join([channel.encode()] + parts))

    def take_queue(self):
        with self.lock:
            queue, self.queue = self.queue, []
        for message in queue:
            self.emit(message)

    def emit(self, message):
        self.outgoing += struct.pack(">I", len(message)) + message
        self.flush()


def split(message):
    """The parts of a message in the protocol `v1.kernel.websocket.jupyter.org`: the channel, the header, and so on."""
    count = struct.unpack_from("<Q", message)[0]
    offsets = struct.unpack_from("<%dQ" % count, message, 8)
    parts = [message[start:end] for start, end in zip(offsets, offsets[1:])]
    return [parts[0].decode()] + parts[1:]


def join(parts):
    at = 8 * (len(parts) + 2)
    offsets = [at]
    for part in parts:
        at += len(part)
        offsets.append(at)
    return struct.pack("<%dQ" % (len(offsets) + 1), len(offsets), *offsets) + b"".join(parts)
