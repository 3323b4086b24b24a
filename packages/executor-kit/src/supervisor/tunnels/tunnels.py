"""Carries connections between programs here and the host, in frames. Python 3.8 or later.

There are three kinds: calls of host functions, through a socket of the session; the network, through a loopback port behind which
the host's proxy answers; and ports, on which programs here listen and to which the host connects. Both directions have a window,
so neither side sends more than the other has room for.
"""

import errno
import os
import select
import struct

from _fenced_channel import READ, channel, data, events
from _fenced_wire import TUNNEL_CLOSED, TUNNEL_DATA, TUNNEL_ENDED, TUNNEL_OPEN, TUNNEL_TAKEN

CALLS, NETWORK, PORT = 0, 1, 2
# Limits for each kind, so that a program that opens many connections of one kind does not affect the others.
MOST = {CALLS: 128, NETWORK: 256, PORT: 128}
WINDOW = 262144
# The host learns of bytes that a program has accepted by so many at a time; it has more to send meanwhile.
TAKEN_STEP = 131072

# Kinds and sockets by descriptor; tunnels by descriptor and by number.
listeners = {}
# Kinds whose connections the kernel keeps for now; and of these, the ones for which this host has not listened.
resting, unheard = set(), set()
tunnels, numbers = {}, {}
last = 0
# Takes connections of programs that submitted runs may have started.
keep_call = None


class Tunnel:
    def __init__(self, number, kind, descriptor):
        self.number = number
        self.kind = kind
        self.descriptor = descriptor
        self.credit = WINDOW
        # What the program has accepted and the host has not been told of.
        self.taken = 0
        self.reading = True
        # Whether the program has sent everything, and whether the host has.
        self.heard = False
        self.ending = False
        self.waiting = bytearray()


def listen(kind, made):
    made.listen(MOST[kind])
    made.setblocking(False)
    listeners[made.fileno()] = (kind, made)
    events.register(made.fileno(), select.EPOLLIN)


def rest(kind, is_new_host=False):
    """Accepts no connections of this kind: there is no host that would answer them, but there may be one later. A host that is new
    must listen first."""
    made = listener(kind)
    if made is None:
        return
    if is_new_host:
        unheard.add(kind)
    if kind not in resting:
        resting.add(kind)
        events.unregister(made.fileno())


def attend(kind, is_heard=False):
    """Accepts them again."""
    if is_heard:
        unheard.discard(kind)
    if kind in resting and kind not in unheard:
        resting.remove(kind)
        events.register(listener(kind).fileno(), select.EPOLLIN)


def is_waited_for(kind):
    """Whether programs have connected that nobody accepts for now."""
    return kind in resting and bool(select.select([listener(kind)], [], [], 0)[0])


def listener(kind):
    """Returns the listening socket of this kind, if there is one."""
    return next((made for each, made in listeners.values() if each == kind), None)


def private_socket(path):
    """Creates a socket at this path that only this user's programs can reach."""
    import _socket

    made = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    before = os.umask(0o077)
    try:
        made.bind(path)
    finally:
        os.umask(before)
    return made


def listen_for_calls(place):
    """Creates the socket for calls once; returns the answer for the host."""
    if listener(CALLS) is not None:
        return "socket " + place
    try:
        listen(CALLS, private_socket(place))
    except (ImportError, OSError) as error:
        return "problem " + str(error)
    return "socket " + place


def accept(door):
    kind, made = listeners[door]
    try:
        descriptor = made._accept()[0]
    except OSError:
        return
    if kind == CALLS and keep_call is not None and keep_call(descriptor):
        return
    if channel.muted or is_full(kind):
        # Without a host, nobody would ever answer.
        os.close(descriptor)
        return
    open_tunnel(kind, descriptor)


def open_tunnel(kind, descriptor):
    global last
    os.set_blocking(descriptor, False)
    # The host numbers its connections from the other half of the range.
    last = last % 0x7FFFFFFE + 1
    begin(last, kind, descriptor)
    channel.send(TUNNEL_OPEN, last, bytes([kind]))
    return last


def begin_call(descriptor, heard):
    """Opens a tunnel for a program that has said something already, less than the window."""
    number = open_tunnel(CALLS, descriptor)
    channel.send(TUNNEL_DATA, number, heard)
    numbers[number].credit -= len(heard)


def is_full(kind):
    return sum(tunnel.kind == kind for tunnel in tunnels.values()) >= MOST[kind]


def begin(number, kind, descriptor):
    tunnels[descriptor] = numbers[number] = Tunnel(number, kind, descriptor)
    data.register(descriptor, select.EPOLLIN)


def connect(number, payload):
    """Connects the host to a loopback port, if a program listens there."""
    import _socket

    port = struct.unpack(">H", payload)[0]
    for family, address in ((_socket.AF_INET, "127.0.0.1"), (_socket.AF_INET6, "::1")):
        if is_full(PORT):
            break
        try:
            made = _socket.socket(family, _socket.SOCK_STREAM)
        except OSError:
            continue
        made.setblocking(False)
        if made.connect_ex((address, port)) in (0, errno.EINPROGRESS):
            begin(number, PORT, made.detach())
            return
        made.close()
    channel.send(TUNNEL_CLOSED, number)


def read(descriptor):
    tunnel = tunnels[descriptor]
    try:
        chunk = os.read(descriptor, min(READ, tunnel.credit))
    except BlockingIOError:
        return
    except OSError:
        finish(tunnel)
        return
    if not chunk:
        heard_all(tunnel)
        return
    channel.send(TUNNEL_DATA, tunnel.number, chunk)
    tunnel.credit -= len(chunk)
    if tunnel.credit <= 0:
        pause(tunnel)


def heard_all(tunnel):
    """Handles the end of what a program sends. It may still be waiting for an answer from the network."""
    if tunnel.kind == CALLS or (tunnel.ending and not tunnel.waiting):
        finish(tunnel)
        return
    pause(tunnel)
    tunnel.heard = True
    channel.send(TUNNEL_ENDED, tunnel.number)


def pause(tunnel):
    if tunnel.reading:
        tunnel.reading = False
        data.unregister(tunnel.descriptor)


def give_credit(number, payload):
    tunnel = numbers.get(number)
    if tunnel is None:
        return
    tunnel.credit += struct.unpack(">I", payload)[0]
    if not tunnel.reading and not tunnel.heard and tunnel.credit > 0:
        tunnel.reading = True
        data.register(tunnel.descriptor, select.EPOLLIN)


def write(number, payload):
    tunnel = numbers.get(number)
    if tunnel is None or not payload:
        return
    if not tunnel.waiting:
        sent = hand_on(tunnel, payload)
        if sent is None or sent == len(payload):
            return
        payload = payload[sent:]
        events.register(tunnel.descriptor, select.EPOLLOUT)
    tunnel.waiting += payload


def hand_on(tunnel, payload):
    """Returns how many bytes the program accepts now; `None` if it is gone."""
    try:
        sent = os.write(tunnel.descriptor, payload)
    except BlockingIOError:
        return 0
    except OSError:
        finish(tunnel)
        return None
    tunnel.taken += sent
    if tunnel.taken >= TAKEN_STEP:
        channel.send(TUNNEL_TAKEN, tunnel.number, struct.pack(">I", tunnel.taken))
        tunnel.taken = 0
    return sent


def flush(descriptor):
    tunnel = tunnels[descriptor]
    if not tunnel.waiting:
        return
    sent = hand_on(tunnel, tunnel.waiting)
    if not sent:
        return
    del tunnel.waiting[:sent]
    if not tunnel.waiting:
        events.unregister(descriptor)
        if tunnel.ending:
            said_all(tunnel)


def end(number, _):
    """Handles the end of what the host sends. The program sees it once it has read everything before it."""
    tunnel = numbers.get(number)
    if tunnel is None:
        return
    tunnel.ending = True
    if tunnel.kind == CALLS:
        pause(tunnel)
        tunnel.heard = True
    if not tunnel.waiting:
        said_all(tunnel)


def said_all(tunnel):
    if tunnel.heard:
        finish(tunnel)
        return
    import _socket

    connection = _socket.socket(fileno=tunnel.descriptor)
    try:
        connection.shutdown(_socket.SHUT_WR)
    except OSError:
        pass
    finally:
        connection.detach()


def drop(number, _):
    tunnel = numbers.get(number)
    if tunnel is None:
        return
    if tunnel.kind != CALLS:
        # Resets the connection; otherwise the program would assume that it has received everything.
        import _socket

        connection = _socket.socket(fileno=tunnel.descriptor)
        connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.detach()
    close(tunnel)


def finish(tunnel):
    channel.send(TUNNEL_CLOSED, tunnel.number)
    close(tunnel)


def close(tunnel):
    pause(tunnel)
    if tunnel.waiting:
        events.unregister(tunnel.descriptor)
    del tunnels[tunnel.descriptor], numbers[tunnel.number]
    os.close(tunnel.descriptor)
