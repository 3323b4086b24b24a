"""Keeps track of interpreters that live from block to block, and reads their reports. Python 3.8 or later, standard library
only."""

import os
import select

from _fenced_channel import channel, events
from _fenced_wire import SESSION_TOLD

LONGEST = 100

# Sessions by number; and, by descriptor, the function to call when there is something to read.
sessions, readers = {}, {}
# For each session that is not ready yet: the pipe for its report, and the function to call with the report.
opening = {}


class Session:
    def __init__(self, number, control, status, mark):
        self.number = number
        self.control = control
        self.status = status
        self.mark = mark
        self.shepherd = self.pid = None
        # `1` if it shows values the way IPython does; and whether it is a copy of another one, or the next one in a copy's place.
        self.displays = "0"
        self.is_copy = False
        # A submitted run needed it; the host has not asked for it.
        self.is_reopened = False
        # The running block, and the processes that earlier blocks left running.
        self.block = None
        self.earlier = set()
        # Whether its shepherd reports what was used, and has ended; what it has reported, and what had been used when the block
        # began, in microseconds.
        self.reports = self.is_over = False
        self.reported = self.used = None
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
    """Waits for one line and calls `take` with its words, or with none if no line arrives."""
    opening[number] = descriptor, take

    def hear():
        try:
            text = os.read(descriptor, LONGEST)
        except BlockingIOError:
            return
        take(text.decode("ascii", "replace").split())

    listen(descriptor, hear)


def tell(number, answer):
    """Answers the host, which is waiting for a session to open."""
    if number in opening:
        descriptor = opening.pop(number)[0]
        ignore(descriptor)
        os.close(descriptor)
        channel.send(SESSION_TOLD, number, answer.encode())
