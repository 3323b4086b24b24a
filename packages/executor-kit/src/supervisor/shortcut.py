"""A socket in the shared work directory, over which the host may talk to the supervisor instead of the standard streams, past
everything that passes those on. Python 3.8 or later, standard library only."""

import os
import select

from _fenced_channel import channel, events

place = ""
listener = None


def listen(path):
    """Creates the socket, if it can; returns whether it did."""
    global place, listener
    try:
        import _socket

        made = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        before = os.umask(0o077)
        try:
            made.bind(path)
        finally:
            os.umask(before)
        made.listen(1)
        made.setblocking(False)
        events.register(made.fileno(), select.EPOLLIN)
    except (ImportError, OSError):
        return False
    place, listener = path, made
    return True


def accept():
    try:
        descriptor = listener._accept()[0]
    except OSError:
        return
    os.set_blocking(descriptor, False)
    channel.switch(descriptor)
    close()


def close():
    """Once the host has chosen how it talks to the supervisor, nobody else gets to."""
    global listener
    if listener is not None:
        events.unregister(listener.fileno())
        listener.close()
        listener = None
        try:
            os.unlink(place)
        except OSError:
            pass
