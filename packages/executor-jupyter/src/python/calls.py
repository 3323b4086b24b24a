"""Forwards programs' connections to the host, which receives calls of its functions over them. Python 3.8 or later.

Programs connect to a private socket; all data travels in frames on the kernel's control channel, whose thread runs all of this.
So it works while a cell runs, from threads and child processes too, and does not use the program's standard input. Both
directions have a window: neither the host nor a program sends more than the other has room for.
"""

import os
import socket
import struct

LISTEN, WRITE, CREDIT, END, DROP = 6, 7, 8, 9, 10
LISTENING, OPENED, DATA, CLOSED, TAKEN = 21, 22, 23, 24, 25
MOST, WINDOW, READ = 128, 262144, 65536
# The purposes of a connection, as in the host's frames.
CALLS = b"\0"
# Limits on messages in flight and on their length: servers buffer messages that arrive too fast, and kernels drop them.
MOST_MESSAGES, LONGEST_MESSAGE = 16, 1048576
LONGEST_ADDRESS = 100

bridge = None
# What takes messages of the control channel, by their type, and the type of the answers.
takers = {}


def offer(kernel, home):
    """Accepts frames on the control channel; returns whether that works while a cell runs. Creates the socket in `home`."""
    global bridge
    thread = getattr(kernel, "control_thread", None)
    if not hasattr(getattr(thread, "io_loop", None), "add_handler"):
        return False
    made = bridge = Bridge(kernel, home)
    takers[b'"fenced_calls"'] = lambda send, parent: made.take(send, parent), "fenced_frames"

    stream, session = kernel.control_stream, kernel.session

    def on_message(frames):
        """The kernel's own handler, used for all other messages, would announce each one to all clients and flush all output."""
        ident, message = session.feed_identities(frames, copy=False)
        header = bytes(message[1].bytes)
        found = next((taker for name, taker in takers.items() if name in header), None)
        if found is None:
            return kernel.dispatch_control(frames)
        parent = session.deserialize(message, content=True, copy=False)
        take, kind = found

        def send(content, buffers=None):
            session.send(stream, kind, content, parent, ident, buffers=buffers)

        try:
            take(send, parent)
        except Exception as error:
            send({"reason": ("%s: %s" % (type(error).__name__, error))[:1000]})

    thread.io_loop.add_callback(lambda: stream.on_recv(on_message, copy=False))
    return True


def end():
    """Runs on the channel's own thread."""
    if bridge is not None:
        bridge.close()


class Tunnel:
    """One connection of a program."""

    def __init__(self, number, connection):
        self.number = number
        self.socket = connection
        self.credit = WINDOW
        self.waiting = bytearray()
        self.ending = False
        self.watched = 0


class Bridge:
    def __init__(self, kernel, home):
        self.home = home
        self.loop = kernel.control_thread.io_loop
        self.listener = None
        self.address = ""
        self.tunnels = {}
        self.last = 0
        self.outgoing = bytearray()
        # When the host reconnects after a broken connection, messages in flight no longer count.
        self.generation = self.sent = self.taken = self.received = self.told = 0
        self.host = None

    def take(self, send, parent):
        """A message from the host: frames, and how many messages it has received. `send` answers it."""
        content = parent["content"]
        if content["generation"] < self.generation:
            return
        if content["generation"] > self.generation:
            self.drop_all()
            self.outgoing.clear()
            self.generation = content["generation"]
            self.sent = self.received = self.told = 0
        self.host, self.taken = send, content["taken"]
        self.received += 1 if parent["buffers"] else 0
        for piece in parent["buffers"]:
            frames, at = bytes(piece), 0
            while at < len(frames):
                length, kind, number = struct.unpack_from(">IBI", frames, at)
                self.obey(kind, number, frames[at + 9 : at + 4 + length])
                at += 4 + length
        self.flush()

    def forget_host(self):
        """Another host follows, which counts from the beginning."""
        self.drop_all()
        self.outgoing.clear()
        self.generation = self.sent = self.taken = self.received = self.told = 0
        self.host = None

    def obey(self, kind, number, payload):
        tunnel = self.tunnels.get(number)
        if kind == LISTEN:
            self.listen()
        elif tunnel is None:
            pass
        elif kind == WRITE:
            tunnel.waiting += payload
            self.write(tunnel)
        elif kind == CREDIT:
            tunnel.credit += struct.unpack(">I", payload)[0]
            self.watch(tunnel)
        elif kind == DROP or not tunnel.waiting:
            self.close_tunnel(tunnel)
        else:
            # The host has sent everything: the connection closes once the program has read it.
            tunnel.ending = True
            self.watch(tunnel)

    def listen(self):
        try:
            if self.listener is None:
                self.listener, self.address = listening(os.path.join(self.home, "calls"))
                self.loop.add_handler(self.listener, lambda *_: self.accept(), self.loop.READ)
            self.send(LISTENING, 0, ("address " + self.address).encode())
        except OSError as error:
            self.send(LISTENING, 0, ("problem " + str(error)).encode())

    def accept(self):
        try:
            connection = self.listener.accept()[0]
        except OSError:
            return
        if len(self.tunnels) >= MOST:
            connection.close()
            return
        connection.setblocking(False)
        self.last = self.last % 0xFFFFFFFE + 1
        tunnel = self.tunnels[self.last] = Tunnel(self.last, connection)
        self.send(OPENED, tunnel.number, CALLS)
        self.watch(tunnel)
        self.flush()

    def watch(self, tunnel):
        """Waits until the connection can send, or has data to read."""
        reads = tunnel.credit > 0 and not tunnel.ending
        wanted = (self.loop.READ if reads else 0) | (self.loop.WRITE if tunnel.waiting else 0)
        if wanted == tunnel.watched:
            return
        if not tunnel.watched:
            self.loop.add_handler(tunnel.socket, lambda _, events: self.ready(tunnel, events), wanted)
        elif wanted:
            self.loop.update_handler(tunnel.socket, wanted)
        else:
            self.loop.remove_handler(tunnel.socket)
        tunnel.watched = wanted

    def ready(self, tunnel, events):
        if events & self.loop.WRITE:
            self.write(tunnel)
        if events & ~self.loop.WRITE and tunnel.number in self.tunnels:
            self.read(tunnel)
        self.flush()

    def read(self, tunnel):
        try:
            chunk = tunnel.socket.recv(min(READ, max(tunnel.credit, 1)))
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.finish(tunnel)
            return
        tunnel.credit -= len(chunk)
        self.send(DATA, tunnel.number, chunk)
        self.watch(tunnel)

    def write(self, tunnel):
        try:
            sent = tunnel.socket.send(tunnel.waiting)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.finish(tunnel)
            return
        if sent:
            del tunnel.waiting[:sent]
            self.send(TAKEN, tunnel.number, struct.pack(">I", sent))
        if tunnel.ending and not tunnel.waiting:
            self.finish(tunnel)
        else:
            self.watch(tunnel)

    def finish(self, tunnel):
        self.send(CLOSED, tunnel.number)
        self.close_tunnel(tunnel)

    def close_tunnel(self, tunnel):
        del self.tunnels[tunnel.number]
        if tunnel.watched:
            self.loop.remove_handler(tunnel.socket)
        try:
            # A process that a cell forked may hold it open, too.
            tunnel.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        tunnel.socket.close()

    def drop_all(self):
        for tunnel in list(self.tunnels.values()):
            self.close_tunnel(tunnel)

    def close(self):
        self.drop_all()
        if self.listener is not None:
            self.loop.remove_handler(self.listener)
            self.listener.close()
            self.listener = None

    def send(self, kind, number, payload=b""):
        self.outgoing += struct.pack(">IBI", len(payload) + 5, kind, number) + payload

    def flush(self):
        """Sends pending data, but no more messages than the host has room for. A message that only acknowledges does not count."""
        while self.host:
            piece = bytes(self.outgoing[:LONGEST_MESSAGE]) if self.sent - self.taken < MOST_MESSAGES else b""
            if not piece and self.received - self.told < MOST_MESSAGES // 2:
                return
            del self.outgoing[: len(piece)]
            self.sent += 1 if piece else 0
            self.told = self.received
            self.host({"generation": self.generation, "taken": self.received}, [piece] if piece else None)


def listening(place):
    """A socket that only this user can open; a loopback port if socket files are not supported or the path is too long."""
    if hasattr(socket, "AF_UNIX") and len(place.encode()) <= LONGEST_ADDRESS:
        made, address = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), "unix:" + place
        made.bind(place)
    else:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.bind(("127.0.0.1", 0))
        address = "tcp:127.0.0.1:%d" % made.getsockname()[1]
    made.listen(64)
    made.setblocking(False)
    return made, address
