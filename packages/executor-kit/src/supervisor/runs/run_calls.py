"""Keeps the calls of host functions that blocks of submitted runs make, until a host answers them. Python 3.8 or later, standard library
only.

A host that dies may have begun a call. It says so before it begins, so no other host is given that call: the program gets an error.
"""

import os
import select
import struct

import _fenced_keeper as keeper
import _fenced_tunnels as tunnels
from _fenced_channel import HEADER, channel, events
from _fenced_wire import RUN_CALL, RUN_TOLD

# As in `call-frames.ts`.
HELLO, CALL, CANCEL, RESULT, ERROR = 1, 2, 3, 16, 17
LONGEST_HELLO, LONGEST_CALL = 256, 1048576 + 256
# Bytes of calls that arrive or wait for their answers, and of answers that are not read, in all; and calls of one program, beyond
# which it is not read.
MOST_HELD, MOST_CALLS = 16777216, 64
PIECE = 262144
LOST = b'{"name": "HostLostError", "message": "The program that ran this call is gone; the function may have run"}'

# By descriptor; and the calls that are not answered, by key.
callers, calls = {}, {}
last_key = 0


class Call:
    def __init__(self, caller, number, payload):
        global last_key
        last_key += 1
        self.key, self.caller, self.number, self.payload = last_key, caller, number, payload
        self.begun = self.sent = False
        self.answer = bytearray()
        calls[self.key] = self

    def send(self):
        self.sent = True
        run = self.caller.run
        for at in range(0, max(1, len(self.payload)), PIECE):
            head = struct.pack(">QI?", self.key, self.caller.block, at + PIECE >= len(self.payload))
            channel.send(RUN_CALL, run.number, head + self.payload[at : at + PIECE])

    def end(self):
        del calls[self.key], self.caller.calls[self.number]


class Caller:
    """A program's connection."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.incoming, self.outgoing = bytearray(), bytearray()
        self.run = self.block = None
        self.calls = {}
        callers[descriptor] = self
        os.set_blocking(descriptor, False)
        events.register(descriptor, select.EPOLLIN)

    def serve(self, mask, find):
        if mask & select.EPOLLOUT:
            self.flush()
        if mask & ~select.EPOLLOUT and self.descriptor in callers:
            self.read(find)

    def read(self, find):
        try:
            piece = os.read(self.descriptor, 65536)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        self.incoming += piece
        if not piece or held() > MOST_HELD or not self.take_frames(find):
            self.close()

    def take_frames(self, find):
        """Returns whether the connection goes on here or elsewhere."""
        while len(self.incoming) >= HEADER:
            length, kind, number = struct.unpack_from(">IBI", self.incoming)
            size = length + 4
            if size < HEADER or size > HEADER + (LONGEST_HELLO if self.run is None else LONGEST_CALL):
                return False
            if len(self.incoming) < size:
                break
            payload = bytes(self.incoming[HEADER:size])
            if self.run is None:
                self.run, self.block = find(payload) if kind == HELLO else (None, None)
                if self.run is None:
                    return self.hand_on()
            elif kind == CALL and number not in self.calls:
                self.calls[number] = Call(self, number, payload)
                if self.run.is_serving(self.block):
                    self.calls[number].send()
            elif kind == CANCEL:
                if number in self.calls:
                    self.drop(self.calls[number])
            else:
                return False
            del self.incoming[:size]
        self.watch()
        return True

    def hand_on(self):
        """It is no block of a submitted run."""
        if channel.muted or tunnels.is_full(tunnels.CALLS):
            return False
        self.forget()
        tunnels.begin_call(self.descriptor, bytes(self.incoming))
        return True

    def drop(self, call):
        if call.sent:
            channel.send(RUN_TOLD, self.run.number, b"uncall\0%d" % call.key)
        call.end()

    def answer(self, call, kind, payload):
        self.outgoing += struct.pack(">IBI", len(payload) + HEADER - 4, kind, call.number) + payload
        call.end()
        self.flush()
        if self.outgoing and self.descriptor in callers and held() > MOST_HELD:
            # It does not read its answers.
            self.close()

    def flush(self):
        try:
            count = os.write(self.descriptor, self.outgoing) if self.outgoing else 0
        except BlockingIOError:
            count = 0
        except OSError:
            self.close()
            return
        del self.outgoing[:count]
        self.watch()

    def watch(self):
        reading = select.EPOLLIN if len(self.calls) < MOST_CALLS else 0
        events.modify(self.descriptor, reading | (select.EPOLLOUT if self.outgoing else 0))

    def forget(self):
        del callers[self.descriptor]
        events.unregister(self.descriptor)

    def close(self):
        for call in list(self.calls.values()):
            self.drop(call)
        self.forget()
        os.close(self.descriptor)


def held():
    said = sum(len(each.incoming) + len(each.outgoing) for each in callers.values())
    return said + sum(len(each.payload) for each in calls.values())


def accept(descriptor):
    """Takes a program's connection; returns whether there is room for it."""
    if len(callers) >= tunnels.MOST[tunnels.CALLS]:
        # One that has not said who it is makes room.
        stranger = next((each for each in callers.values() if each.run is None), None)
        if stranger is None:
            return False
        stranger.close()
    Caller(descriptor)
    return True


def begin(key):
    if key in calls:
        calls[key].begun = True


def answer(key, kind, is_last, payload):
    call = calls.get(key)
    if call is not None:
        call.answer += payload
        if is_last:
            call.caller.answer(call, kind, bytes(call.answer))


def send_waiting(run, block):
    """The host answers calls of this block from now on."""
    for call in list(calls.values()):
        if call.caller.run is run and call.caller.block == block and not call.sent:
            call.send()


def is_waiting(run):
    """Whether calls of a run wait for a host, or for one that has the function."""
    own = [call for call in calls.values() if call.caller.run is run]
    # A host that has begun some has only so many turns for the others.
    return bool(own) and (keeper.is_cut or not any(call.begun for call in own))


def change_host():
    for call in list(calls.values()):
        call.sent, call.answer = False, bytearray()
        # An answer that cannot be written closes its connection, with the other calls.
        if call.begun and call.key in calls:
            call.caller.answer(call, ERROR, LOST)


def close_of(run):
    """Closes the connections of a run's blocks."""
    for caller in list(callers.values()):
        if caller.run is run:
            caller.close()
