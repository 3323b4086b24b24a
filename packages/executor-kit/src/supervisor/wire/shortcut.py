"""A socket in the shared work directory through which the host can bypass whatever carries the standard streams. Python 3.8 or
later, standard library only."""

import os
import select

from _fenced_channel import channel, events
from _fenced_tunnels import private_socket

place = ""
listener = None


def listen(path):
    """Creates the socket if possible; returns whether it did."""
    global place, listener
    try:
        made = private_socket(path)
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
    """Stops listening once the host has chosen its connection, so that nobody else can connect."""
    global listener
    if listener is not None:
        events.unregister(listener.fileno())
        listener.close()
        listener = None
        try:
            os.unlink(place)
        except OSError:
            pass
