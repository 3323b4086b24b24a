"""Carries programs' connections to the host over the standard streams, and does nothing else. Python 3.8 or later.

Arguments: the directory for the socket, and a line to print before the first frame.
"""

import os
import sys

import _fenced_channel as channels
import _fenced_wire as wire
import _fenced_tunnels as tunnels
from _fenced_channel import channel, events

orders = {
    wire.TUNNEL_WRITE: tunnels.write,
    wire.TUNNEL_CREDIT: tunnels.give_credit,
    wire.TUNNEL_END: tunnels.end,
    wire.TUNNEL_DROP: tunnels.drop,
}


def take_frames():
    frames = channel.receive()
    if frames is None:
        os._exit(0)
    for kind, number, payload in frames:
        if kind == wire.LISTEN:
            # A carrier that was killed leaves its socket behind, so each one uses a unique name.
            place = os.path.join(sys.argv[1], "calls-%d" % os.getpid())
            channel.send(wire.LISTENING, 0, os.fsencode(tunnels.listen_for_calls(place)))
        elif kind in orders:
            orders[kind](number, payload)


def read_ready():
    for descriptor, _ in channels.data.poll(0):
        if channel.waiting:
            return
        if descriptor in tunnels.tunnels:
            tunnels.read(descriptor)


def serve(descriptor, mask):
    if descriptor == channel.sink:
        channel.flush()
    elif descriptor == channel.source:
        take_frames()
    elif descriptor == channels.data.fileno():
        read_ready()
    elif descriptor in tunnels.listeners:
        tunnels.accept(descriptor)
    elif descriptor in tunnels.tunnels:
        tunnels.flush(descriptor)


def main():
    os.write(1, os.fsencode(sys.argv[2]) + b"\n")
    channel.begin()
    while True:
        for descriptor, mask in events.poll():
            serve(descriptor, mask)


try:
    main()
except OSError:
    # The host is gone, and so are the connections.
    os._exit(1)
