"""Signs of life to the keeper, which ends this place when the supervisor ends or has not heard from the host for a while. Python 3.8
or later."""

import os
import select
import struct
import time

connection = None
# Whether the keeper sends the streams of hosts that replace others.
is_server = False
# Whether such a keeper has said last that no host is connected; and whether that has been so for a moment at least.
is_cut = is_alone = False
# Seconds of this program's own running time after which a keeper that sends streams counts as stopped, and how many have passed.
# When everything was frozen, that is nobody's silence.
PATIENCE = 60
STEP = 5
silent = 0
seen = time.monotonic()


def find(name):
    """Connects to the keeper's abstract socket, if a name was given; the keeper may still be starting. A number is that of a socket
    that a keeper has left to this process; it may follow `server:`, if that sends the streams of other hosts."""
    global connection, is_server
    if not name:
        return
    import _socket

    is_server = name.startswith("server:")
    number = name[7:] if is_server else name
    if number.isdigit():
        connection = _socket.socket(fileno=int(number))
        connection.setblocking(False)
        return
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    for _ in range(500):
        try:
            connection.connect("\0" + name)
            break
        except ConnectionRefusedError:
            select.select([], [], [], 0.02)
    else:
        raise ConnectionError("the keeper does not answer")
    connection.setblocking(False)


def beat():
    if connection is not None:
        try:
            connection.send(b".")
        except BlockingIOError:
            pass


def descriptor():
    """The descriptor on which other hosts are announced; `None` if there is none."""
    return connection.fileno() if is_server else None


def next_host():
    """Returns the stream of the next host; `None` if there is none yet. Raises `EOFError` if the session is over."""
    global silent, is_cut, is_alone
    import _socket

    silent = 0
    try:
        word, rights, _, _ = connection.recvmsg(16, _socket.CMSG_SPACE(4))
    except BlockingIOError:
        return None
    except OSError:
        raise EOFError from None
    if not word:
        raise EOFError
    is_cut, is_alone = not word.endswith(b"."), word.endswith(b"-")
    found = [each for right in rights for each in struct.unpack("=%di" % (len(right[2]) // 4), right[2])]
    for each in found[:-1]:
        os.close(each)
    return found[-1] if found else None


def is_stopped():
    """Whether a keeper that sends streams has given no sign of life for a long time. Call it at least every `STEP` seconds."""
    global silent, seen
    now = time.monotonic()
    silent += min(now - seen, STEP)
    seen = now
    return is_server and silent > PATIENCE
