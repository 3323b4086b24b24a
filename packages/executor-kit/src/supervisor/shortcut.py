"""A socket in the shared work directory, over which the host may talk to the supervisor instead of the standard streams, past
everything that passes those on. Python 3.8 or later, standard library only."""

import os
import select

from _fenced_channel import channel, events
from _fenced_tunnels import private_socket

place = ""
listener = None


def listen(path):
    """Creates the socket, if it can; returns whether it did."""
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
