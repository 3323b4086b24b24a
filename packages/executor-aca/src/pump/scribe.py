"""
Keeps what blocks print until the host has it, and carries connections of programs to the host. Python 3.8 or later, Linux.

It is a separate process beside the session's interpreter: nothing is lost when the interpreter dies, and nothing waits while it
is busy in native code. The interpreter's steps request bytes from an offset, and deliver the host's bytes; the same step may
arrive twice. Bytes that the host has not fetched for a while, or when the interpreter ends, go to the journal, a file that it can
read.

Arguments: the descriptors of standard output, of standard error and of the interpreter's messages; the journal's path and its mark;
the directory for the socket of host functions. Standard input is a socket to the interpreter.
"""

import os
import select
import struct
import sys
import time

import _fenced_wire as wire
import _fenced_tunnels as tunnels
from _fenced_channel import channel, data, events

OUT, ERR, MESSAGES = (int(word) for word in sys.argv[1:4])
JOURNAL, MARK, DIRECTORY = sys.argv[4:7]
SOCKET = os.path.join(DIRECTORY, MARK)
STREAMS = {OUT: wire.STDOUT, ERR: wire.STDERR}
# A step: its number, how much the host has received, the offset of its bytes, milliseconds to wait, maximum bytes to answer with,
# the block that begins, whether connections end, and the number of bytes that follow. The answer: number, offset, bytes received,
# number of bytes that follow.
STEP, ANSWER = struct.Struct(">IQQIIIBI"), struct.Struct(">IQQI")
# Maximum bytes that wait for the host, beyond which programs must wait; maximum bytes read at once when a block ends.
LIMIT, MOST_AT_END = 1048576, 4194304
# Seconds to wait for more after the first bytes, and until unfetched bytes go to the journal.
GATHERING, PATIENCE = 0.002, 2
LONGEST_MESSAGE = 33554432

outgoing, base = bytearray(), 0
# The end of the last frame that should be sent without waiting, and since when there is one.
urgent, urgent_since = 0, 0.0
incoming, taken = bytearray(), 0
steps, messages = bytearray(), bytearray()
# The step that waits for an answer, and its deadline.
pending, due = None, 0.0
block = 0
paused = False
fetched, written = time.monotonic(), (0, 0)

orders = {
    wire.TUNNEL_WRITE: tunnels.write,
    wire.TUNNEL_CREDIT: tunnels.give_credit,
    wire.TUNNEL_END: tunnels.end,
    wire.TUNNEL_DROP: tunnels.drop,
}


def send(kind, number, payload=b""):
    global outgoing, urgent, urgent_since
    outgoing += struct.pack(">IBI", len(payload) + 5, kind, number) + payload
    # A program that has received an answer soon sends more.
    if kind != wire.TUNNEL_TAKEN:
        if urgent <= base or not is_urgent():
            urgent_since = time.monotonic()
        urgent = base + len(outgoing)
    hold_back()


def is_urgent():
    return pending is not None and urgent > pending[1]


def hold_back():
    """Stops reading from programs while too much waits for the host."""
    global paused
    if not paused and len(outgoing) > LIMIT:
        paused = True
        events.unregister(data.fileno())
    elif paused and len(outgoing) <= LIMIT // 2:
        paused = False
        events.register(data.fileno(), select.EPOLLIN)


def read_output(descriptor):
    """Reads a piece of output; returns whether there was any."""
    try:
        chunk = os.read(descriptor, 65536)
    except BlockingIOError:
        return False
    if not chunk:
        forget(data, descriptor)
        return False
    if block:
        send(STREAMS[descriptor], block, chunk)
    return True


def forget(epoll, descriptor):
    """Stops watching a descriptor that has reached its end."""
    try:
        epoll.unregister(descriptor)
    except OSError:
        pass


def drain():
    """Reads all output so far, so that it precedes what follows."""
    for descriptor in STREAMS:
        left = MOST_AT_END
        try:
            while left > 0 and read_output(descriptor):
                left -= 65536
        except OSError:
            pass


def read_messages():
    """Reads the interpreter's messages: what a block displays, and its end."""
    global messages, block
    try:
        chunk = os.read(MESSAGES, 1048576)
    except BlockingIOError:
        return
    messages += chunk
    if not chunk or len(messages) > LONGEST_MESSAGE:
        forget(events, MESSAGES)
        return
    while len(messages) >= 9:
        length, kind, number = struct.unpack_from(">IBI", messages)
        if len(messages) < length + 4:
            return
        payload = bytes(messages[9 : length + 4])
        del messages[: length + 4]
        if number != block:
            continue
        drain()
        for start in range(0, max(1, len(payload)), 524288):
            piece = payload[start : start + 524288]
            last = start + 524288 >= len(payload)
            send(kind, block, bytes([last]) + piece if kind == wire.DISPLAY else piece)
        if kind == wire.EXIT:
            block = 0


def read_steps():
    global steps
    try:
        chunk = os.read(0, 1048576)
    except OSError:
        chunk = b""
    if not chunk:
        end()
    steps += chunk
    while len(steps) >= STEP.size:
        fields = STEP.unpack_from(steps)
        if len(steps) < STEP.size + fields[-1]:
            return
        payload = bytes(steps[STEP.size : STEP.size + fields[-1]])
        del steps[: STEP.size + fields[-1]]
        take_step(fields, payload)


def take_step(fields, payload):
    global outgoing, base, pending, due, block, fetched, taken, urgent_since
    _, acknowledged, at, wait, _, begins, ends, _ = fields
    if begins:
        drain()
        block = begins
    dropped = min(max(0, acknowledged - base), len(outgoing))
    del outgoing[:dropped]
    base += dropped
    hold_back()
    if ends:
        for tunnel in list(tunnels.numbers.values()):
            tunnels.finish(tunnel)
    fresh = payload[max(0, taken - at) :] if at <= taken else b""
    taken += len(fresh)
    obey(fresh)
    fetched = time.monotonic()
    pending, due = fields, fetched + wait / 1000
    urgent_since = fetched - GATHERING if is_urgent() else urgent_since


def obey(frames):
    global incoming
    incoming += frames
    while len(incoming) >= 9:
        length, kind, number = struct.unpack_from(">IBI", incoming)
        if len(incoming) < length + 4:
            return
        payload = bytes(incoming[9 : length + 4])
        del incoming[: length + 4]
        if kind == wire.LISTEN:
            send(wire.LISTENING, 0, os.fsencode(tunnels.listen_for_calls(SOCKET)))
        elif kind in orders:
            orders[kind](number, payload)


def answer():
    """Answers the waiting step, if its answer is due."""
    global pending, fetched
    if pending is None:
        return
    now = time.monotonic()
    if now < due and not (is_urgent() and now >= urgent_since + GATHERING):
        return
    number, most = pending[0], pending[4]
    piece = bytes(outgoing[:most])
    pending, fetched = None, now
    reply = memoryview(ANSWER.pack(number, base, taken, len(piece)) + piece)
    try:
        while reply:
            reply = reply[os.write(0, reply) :]
    except OSError:
        end()


def keep_journal():
    global written
    if pending is None and outgoing and time.monotonic() > fetched + PATIENCE:
        if written != (base, len(outgoing)):
            write_journal()
            written = (base, len(outgoing))


def write_journal():
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        journal = os.open(JOURNAL, flags, 0o600)
        left = memoryview(MARK.encode() + struct.pack(">QQ", base, len(outgoing)) + outgoing)
        while left:
            left = left[os.write(journal, left) :]
        os.close(journal)
    except OSError:
        pass


def end():
    """Saves what is left and exits, because the interpreter is gone."""
    read_messages()
    drain()
    if outgoing:
        write_journal()
    try:
        os.unlink(SOCKET)
        os.rmdir(DIRECTORY)
    except OSError:
        pass
    os._exit(0)


def serve(descriptor):
    if descriptor == 0:
        read_steps()
    elif descriptor == MESSAGES:
        read_messages()
    elif descriptor == data.fileno():
        for each, _ in data.poll(0):
            if each in STREAMS:
                read_output(each)
            elif each in tunnels.tunnels:
                tunnels.read(each)
    elif descriptor in tunnels.listeners:
        tunnels.accept(descriptor)
    elif descriptor in tunnels.tunnels:
        tunnels.flush(descriptor)


def timeout():
    """Seconds until there is something to do even if nothing arrives; `-1` for never."""
    now = time.monotonic()
    if pending is not None:
        return max(0.0, (min(due, urgent_since + GATHERING) if is_urgent() else due) - now)
    return max(0.01, fetched + PATIENCE - now) if outgoing and written != (base, len(outgoing)) else -1


def main():
    channel.send = send
    for descriptor in (OUT, ERR, MESSAGES):
        os.set_blocking(descriptor, False)
    for descriptor in (0, MESSAGES, data.fileno()):
        events.register(descriptor, select.EPOLLIN)
    for descriptor in STREAMS:
        data.register(descriptor, select.EPOLLIN)
    while True:
        for descriptor, _ in sorted(events.poll(timeout())):
            serve(descriptor)
        answer()
        keep_journal()


main()
