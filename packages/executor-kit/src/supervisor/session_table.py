"""The interpreters that live from block to block, and what they say. Python 3.8 or later, standard library only."""

import os
import select

from _fenced_channel import SESSION_TOLD, channel, events

LONGEST = 100

# The sessions, by number; and the functions to call when a descriptor has something to read.
sessions, readers = {}, {}
# For each session that has not said yet that it is ready: the pipe on which it will, and the function to call with what it says.
opening = {}


class Session:
    def __init__(self, number, control, status, mark):
        self.number = number
        self.control = control
        self.status = status
        self.mark = mark
        self.shepherd = self.pid = None
        # The block that runs in it, and the processes that earlier blocks left running.
        self.block = None
        self.earlier = set()
        self.ended = self.ending = self.announced = False
        self.stopped = set()
        self.empty = 0


def listen(descriptor, hear):
    os.set_blocking(descriptor, False)
    readers[descriptor] = hear
    events.register(descriptor, select.EPOLLIN)


def ignore(descriptor):
    del readers[descriptor]
    events.unregister(descriptor)


def expect(number, descriptor, take):
    """Waits for one line, and calls `take` with its words, or with none if the line does not come."""
    opening[number] = descriptor, take

    def hear():
        try:
            text = os.read(descriptor, LONGEST)
        except BlockingIOError:
            return
        take(text.decode("ascii", "replace").split())

    listen(descriptor, hear)


def tell(number, answer):
    """Answers the host, which waits for a session to open."""
    if number in opening:
        descriptor = opening.pop(number)[0]
        ignore(descriptor)
        os.close(descriptor)
        channel.send(SESSION_TOLD, number, answer.encode())
