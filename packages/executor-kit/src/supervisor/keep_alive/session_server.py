"""Keeps a session for programs that come and go: passes the bytes between the supervisor and whichever program is connected, keeps
what was sent until it has arrived, and ends the session when nobody has been connected for too long. Python 3.8 or later, Linux.

The first program brings the key, before any code runs; every later connection proves that it knows it, and every packet carries a
proof. So code of the same user can neither read the key from this process, which it cannot trace, nor take a connection over: it can
only break one, as it can break its own session. Connections arrive on an abstract socket, as two descriptors that `attach.py` sends.
Such a socket has no permissions, so nobody is accepted before the key is known, and no other user is.
"""

import os
import select
import stat
import struct
import time

import _fenced_packets as wire
import _signal as signal
import _socket
from _fenced_packets import ACCEPTED, IN_USE, REPLACED, UNKNOWN
from _fenced_sent_bytes import SentBytes

READ = 262144
# Bytes for a supervisor that does not read; the program waits while there are more.
MOST_PENDING = 1048576
# A program that has been silent for so many seconds is not connected; nor is one that does not prove who it is.
SILENCE = 10
# Seconds between signs of life to the supervisor.
BEAT = 2
MOST_STRANGERS = 16
# While there are that many, so many seconds are all that one of them has before the next one takes its place.
HASTE = 2
# No read or write takes so many seconds, unless somebody else has made the descriptor wait.
STUCK = 1
LONGEST_GREETING = 65536


class Connection:
    """One way to a program, from its first byte on."""

    def __init__(self, source, sink, holder):
        os.set_blocking(source, False)
        os.set_blocking(sink, False)
        self.source, self.sink, self.holder = source, sink, holder
        self.incoming, self.outgoing = bytearray(), bytearray()
        self.heard = time.monotonic()
        self.hello = self.nonce = self.reader = self.writer = None
        # How many of the session's bytes it has been sent, and how many of its own it knows to have arrived.
        self.sent = self.told = 0
        self.pongs = 0
        self.closing = False

    def close(self):
        for each in {self.source, self.sink}:
            os.close(each)
        if self.holder is not None:
            self.holder.close()


class Server:
    """`control` leads to the supervisor and takes the streams of programs that replace others; `stream` is the first one. `first`: the
    descriptors of the first connection, and a socket that is open as long as they are used, or `None`."""

    def __init__(self, control, stream, listener, first):
        self.control, self.stream, self.listener = control, stream, listener
        stream.setblocking(False)
        control.setblocking(False)
        listener.setblocking(False)
        self.first = Connection(*first)
        self.connections = [self.first]
        # Sockets of `attach.py` that have not sent their descriptors yet, and since when they have been waiting.
        self.holders = {}
        self.key = None
        self.keep = SILENCE
        self.alone = time.monotonic()
        self.program = self.link = None
        self.begun = False
        self.sent, self.received = SentBytes(), 0
        self.pending = bytearray()
        # What the supervisor sends is read into this.
        self.arrived = bytearray(READ)
        # Streams that the supervisor is about to let go of.
        self.old = []
        self.over = False
        self.beaten = 0

    def serve(self, beat=None):
        """Returns when the session is over. Only for the main thread."""
        signal.signal(signal.SIGALRM, too_late)
        while not self.over:
            reading, writing = self.readers(), self.writers()
            now = time.monotonic()
            limit = min(0.5 if self.is_full() else 2.0, max(0, self.left(now)))
            ready, free, _ = select.select(list(reading), list(writing), [], limit)
            if beat is not None:
                beat()
            self.tell_supervisor(now)
            for each in ready:
                reading[each]()
            for each in free:
                # It may have been closed meanwhile.
                if each in self.writers():
                    writing[each]()
            self.look(time.monotonic())

    def left(self, now):
        if self.link is not None:
            return SILENCE
        # The first program may take longer to arrive than others have to come back.
        return (self.keep if self.begun else max(self.keep, SILENCE)) - (now - self.alone)

    def readers(self):
        found = {self.control.fileno(): self.hear_supervisor}
        if not self.sent.full:
            found[self.stream.fileno()] = self.read_stream
        # Only the first program brings the key.
        if self.key is not None and (not self.is_full() or self.late_stranger() is not None):
            found[self.listener.fileno()] = self.accept
        for old in self.old:
            found[old.fileno()] = lambda old=old: self.forget(old)
        for holder in self.holders:
            found[holder.fileno()] = lambda holder=holder: self.take_descriptors(holder)
        for each in self.connections:
            if not each.closing and (each is not self.link or len(self.pending) < MOST_PENDING):
                found[each.source] = lambda each=each: self.read(each)
        return found

    def writers(self):
        found = {}
        if self.pending:
            found[self.stream.fileno()] = self.flush_stream
        for each in self.connections:
            if each.outgoing or (each is self.link and self.has_more(each)):
                found[each.sink] = lambda each=each: self.write(each)
        return found

    def look(self, now):
        """Lets go of those that are silent."""
        for each in list(self.connections):
            if now - each.heard > SILENCE:
                self.drop(each)
        for holder, since in list(self.holders.items()):
            if now - since > SILENCE:
                del self.holders[holder]
                holder.close()
        if self.link is None and self.left(now) < 0:
            self.over = True

    # The supervisor

    def tell_supervisor(self, now):
        """Gives a sign of life: where code can stop this process, the supervisor must not go on without it. It also says whether a
        program is connected: what waits for its turn must not wait for one that is gone."""
        if now - self.beaten < BEAT:
            return
        self.beaten = now
        self.say(b"-" if self.link is None and self.begun else b".")

    def say(self, word):
        try:
            self.control.send(word)
        except OSError:
            pass

    def hear_supervisor(self):
        """Its signs of life say nothing new; only its end matters."""
        try:
            if not self.control.recv(4096):
                self.over = True
        except BlockingIOError:
            pass
        except OSError:
            self.over = True

    def read_stream(self):
        try:
            count = self.stream.recv_into(self.arrived)
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if not count:
            self.over = True
            return
        with memoryview(self.arrived) as memory, memory[:count] as piece:
            self.sent.add(piece)
        if self.link is not None:
            self.write(self.link)

    def forget(self, old):
        if old not in self.old:
            return
        try:
            if old.recv(READ):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self.old.remove(old)
        old.close()

    def flush_stream(self):
        try:
            count = self.stream.send(self.pending)
        except BlockingIOError:
            return
        except OSError:
            self.over = True
            return
        del self.pending[:count]

    # Programs

    def is_full(self):
        return len(self.connections) + len(self.holders) >= MOST_STRANGERS

    def late_stranger(self):
        """The one that has had the most time to say who it is, if it has had enough."""
        found = [(each.heard, each) for each in self.connections if each is not self.link]
        found += [(since, holder) for holder, since in self.holders.items()]
        since, oldest = min(found, key=lambda each: each[0])
        return oldest if time.monotonic() - since > HASTE else None

    def accept(self):
        if self.is_full():
            late = self.late_stranger()
            if late is None:
                return
            if late in self.holders:
                del self.holders[late]
                late.close()
            else:
                self.drop(late)
        try:
            descriptor = self.listener._accept()[0]
        except OSError:
            return
        holder = _socket.socket(fileno=descriptor)
        if not is_ours(holder):
            holder.close()
            return
        holder.setblocking(False)
        self.holders[holder] = time.monotonic()

    def take_descriptors(self, holder):
        if holder not in self.holders:
            return
        try:
            word, rights, _, _ = holder.recvmsg(1, _socket.CMSG_SPACE(8))
        except BlockingIOError:
            return
        except OSError:
            word, rights = b"", []
        del self.holders[holder]
        found = [each for right in rights for each in struct.unpack("=%di" % (len(right[2]) // 4), right[2])]
        try:
            if not word or len(found) != 2 or not all(is_stream(each) for each in found):
                raise OSError("descriptors")
            self.connections.append(Connection(found[0], found[1], holder))
        except OSError:
            for each in found:
                os.close(each)
            holder.close()

    def drop(self, connection):
        if connection not in self.connections:
            return
        self.connections.remove(connection)
        if connection is self.link:
            self.link = None
            self.alone = time.monotonic()
            # It may be back before the next sign of life, but what begins now has nobody who answers.
            self.say(b",")
        if connection is self.first and not self.begun:
            # Nobody else has the key, and nobody was accepted.
            self.over = True
        connection.close()

    def read(self, connection):
        if connection not in self.connections:
            # Closed since it was ready; something else may have its descriptor now.
            return
        try:
            piece = promptly(os.read, connection.source, READ)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            self.drop(connection)
            return
        try:
            if connection.reader is None:
                connection.incoming += piece
                self.greet(connection)
            else:
                connection.reader.incoming += piece
            if connection.reader is not None and connection is self.link:
                self.take(connection)
        except ValueError:
            self.drop(connection)

    def greet(self, connection):
        """Takes the next step of learning who is there."""
        if self.key is None:
            start = self.split(connection, wire.START, wire.KEY + 8)
            if start is None:
                return
            self.key, self.keep = start[: wire.KEY], struct.unpack(">Q", start[wire.KEY :])[0] / 1000
            self.alone = time.monotonic()
        if connection.hello is None:
            connection.hello = self.split(connection, wire.MAGIC, wire.HELLO.size)
            if connection.hello is None:
                return
            connection.nonce = os.urandom(wire.NONCE)
            proof = wire.prove(self.key, b"session", connection.hello, connection.nonce)
            connection.outgoing += wire.MAGIC + connection.nonce + proof
        if len(connection.incoming) < wire.PROOF:
            return
        given, rest = bytes(connection.incoming[: wire.PROOF]), connection.incoming[wire.PROOF :]
        if not wire.same(given, wire.prove(self.key, b"program", connection.hello, connection.nonce)):
            raise ValueError("key")
        connection.writer = wire.Writer(wire.prove(self.key, b"from session", connection.hello, connection.nonce))
        connection.reader = wire.Reader(wire.prove(self.key, b"from program", connection.hello, connection.nonce), rest)
        connection.heard = time.monotonic()
        self.judge(connection)

    def split(self, connection, magic, size):
        """Returns so many bytes after the magic; `None` if they have not arrived. What precedes it was sent by something else, such
        as Podman, which passes on the body of a request."""
        at = connection.incoming.find(magic)
        if at < 0 or len(connection.incoming) < at + len(magic) + size:
            if len(connection.incoming) > LONGEST_GREETING:
                raise ValueError("greeting")
            return None
        start = at + len(magic)
        found = bytes(connection.incoming[start : start + size])
        del connection.incoming[: start + size]
        return found

    def judge(self, connection):
        program, _, flags, received = wire.HELLO.unpack(connection.hello)
        if program == self.program:
            verdict = ACCEPTED if self.sent.start <= received <= self.sent.end else UNKNOWN
        elif flags & wire.KNOWN:
            verdict = REPLACED
        elif self.link is not None and not flags & wire.TAKE_OVER:
            verdict = IN_USE
        elif received != 0:
            verdict = UNKNOWN
        else:
            self.change(program)
            verdict = ACCEPTED
        if verdict == ACCEPTED:
            if self.link is not None:
                self.drop(self.link)
            self.sent.received(received)
            connection.sent = received
            self.link = connection
            # The supervisor learns of it at once.
            self.beaten = 0
        else:
            connection.closing = True
        payload = struct.pack(">BQ", verdict, self.received)
        connection.told = self.received
        connection.writer.add(connection.outgoing, wire.VERDICT, self.received, payload)
        self.write(connection)

    def change(self, program):
        """Gives the session to another program, with a stream of its own. The last program may have died in the middle of a frame, and
        what was for it is for nobody else."""
        is_first, self.begun, self.program = not self.begun, True, program
        last, self.link = self.link, None
        if last is not None:
            self.dismiss(last)
        if is_first:
            return
        # Not closed yet: its end would look like that of the session.
        self.old.append(self.stream)
        self.stream, other = _socket.socketpair()
        self.stream.setblocking(False)
        self.sent, self.received = SentBytes(), 0
        self.pending = bytearray()
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("=i", other.fileno()))]
        try:
            self.control.sendmsg([b"."], rights)
        except OSError:
            self.over = True
        other.close()

    def dismiss(self, connection):
        """Tells a program that the session is no longer its own, and closes the connection once that is sent."""
        connection.writer.add(connection.outgoing, wire.GONE, self.received)
        connection.closing = True
        self.write(connection)

    def take(self, connection):
        """Handles the packets of the program that is connected."""
        for kind, received, payload in connection.reader.read():
            connection.heard = time.monotonic()
            if received > connection.sent or not self.sent.received(received):
                raise ValueError("acknowledgement")
            if kind == wire.DATA:
                self.received += len(payload)
                self.pending += payload
            elif kind == wire.PING:
                connection.pongs = min(connection.pongs + 1, 2)
            elif kind == wire.DETACH:
                # The answer says that it has arrived: what carries the connection may keep it open.
                self.program = self.link = None
                self.alone = time.monotonic()
                self.say(b",")
                self.dismiss(connection)
                return
            elif kind == wire.END:
                self.over = True
                return
        if self.pending:
            self.flush_stream()
        self.write(connection)

    def has_more(self, connection):
        return connection.pongs or connection.sent < self.sent.end or self.received - connection.told >= READ

    def write(self, connection):
        if connection not in self.connections:
            return
        if not connection.outgoing and connection is self.link and self.has_more(connection):
            connection.told = self.received
            add = connection.writer.add
            if connection.pongs:
                connection.pongs -= 1
                add(connection.outgoing, wire.PONG, self.received)
            elif connection.sent < self.sent.end:
                with self.sent.piece(connection.sent, wire.PIECE) as piece:
                    connection.sent += len(piece)
                    add(connection.outgoing, wire.DATA, self.received, piece)
            else:
                add(connection.outgoing, wire.ACK, self.received)
        try:
            count = promptly(os.write, connection.sink, connection.outgoing) if connection.outgoing else 0
        except BlockingIOError:
            return
        except OSError:
            self.drop(connection)
            return
        del connection.outgoing[:count]
        if connection.closing and not connection.outgoing:
            self.drop(connection)


def promptly(call, *words):
    """Reads or writes. The program that has sent a descriptor can still make it wait, which must not stop this one."""
    global is_limited
    signal.setitimer(signal.ITIMER_REAL, STUCK)
    try:
        is_limited = True
        return call(*words)
    finally:
        is_limited = False
        signal.setitimer(signal.ITIMER_REAL, 0)


is_limited = False


def too_late(*_):
    """Only the timer counts: code of the same user can send the signal at any moment, too."""
    global is_limited
    if is_limited and signal.getitimer(signal.ITIMER_REAL)[0] == 0:
        # Nothing outside `promptly` expects the error.
        is_limited = False
        raise TimeoutError


def is_ours(connection):
    """Returns whether the other end of a local socket belongs to this process's user."""
    return struct.unpack("=3i", connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12))[1] == os.geteuid()


def is_stream(descriptor):
    """Pipes and local sockets. Reading a file or closing a network's socket can take any time."""
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISSOCK(mode):
        return stat.S_ISFIFO(mode)
    there = _socket.socket(fileno=descriptor)
    try:
        return there.family == _socket.AF_UNIX
    finally:
        there.detach()


def listen(name):
    """Opens the abstract socket on which connections arrive."""
    made = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    made.bind("\0" + name)
    made.listen(8)
    return made
