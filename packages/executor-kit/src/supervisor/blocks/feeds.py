"""Forwards input that arrives while a program runs, at the pace at which the program reads it. Python 3.8 or later.

The host sends at most one window more than the program has read, and learns at once when the program closes its end.
"""

import os
import select
import struct

from _fenced_channel import channel, events
from _fenced_wire import FED

# Feeds by block number, and by the descriptor to write to.
feeds, writers = {}, {}


class Feed:
    def __init__(self, number, descriptor):
        self.number = number
        self.descriptor = descriptor
        self.waiting = bytearray()
        self.ending = False
        # Bytes of an earlier host that the program has not accepted.
        self.foreign = 0

    def leave(self):
        """Another host follows, which has sent none of what waits here."""
        self.foreign = len(self.waiting)


def begin(number):
    """Returns the read end of the pipe, for the program."""
    reading, writing = os.pipe()
    feed(number, writing)
    return reading


def feed(number, writing):
    """Begins to write input to a descriptor."""
    os.set_blocking(writing, False)
    feeds[number] = writers[writing] = Feed(number, writing)
    # Registered for no events, so it reports only that the program has closed its end.
    events.register(writing, 0)


def write(number, payload):
    """Takes input from the host; an empty piece ends it."""
    feed = feeds.get(number)
    if feed is None:
        return
    feed.ending = not payload
    feed.waiting += payload
    hand_on(feed)


def hand_on(feed):
    if feed.waiting:
        try:
            sent = os.write(feed.descriptor, feed.waiting)
        except BlockingIOError:
            sent = 0
        except OSError:
            broken(feed)
            return
        del feed.waiting[:sent]
        foreign = min(sent, feed.foreign)
        feed.foreign -= foreign
        if sent > foreign or not sent:
            channel.send(FED, feed.number, struct.pack(">I", sent - foreign))
    if feed.ending and not feed.waiting:
        end(feed.number)
    else:
        events.modify(feed.descriptor, select.EPOLLOUT if feed.waiting else 0)


def serve(descriptor, mask):
    feed = writers[descriptor]
    if mask & (select.EPOLLERR | select.EPOLLHUP):
        broken(feed)
    else:
        hand_on(feed)


def broken(feed):
    channel.send(FED, feed.number)
    end(feed.number)


def end(number):
    feed = feeds.pop(number, None)
    if feed is not None:
        del writers[feed.descriptor]
        events.unregister(feed.descriptor)
        os.close(feed.descriptor)
