"""Forwards what blocks print, as long as the host has room for it. Python 3.8 or later, standard library only."""

import os
import select

import _fenced_terminals as terminals
from _fenced_channel import CAPACITY, READ, apart, channel, data
from _fenced_wire import RICH

# The block that each descriptor belongs to: its output pipes and its shepherd's report pipe.
readers = {}
# The submitted runs, by the numbers of blocks that they are about to start.
kept = {}
# The memory of all reads: new memory for each would cost more than copying into it.
chunk = memoryview(bytearray(READ))


def watch(block):
    for end in block.pipes:
        os.set_blocking(end, False)
        readers[end] = block
        poll_of(block).register(end, select.EPOLLIN)


def poll_of(block):
    return data if block.sink is None else apart


def read_pipe(block, end):
    if block.pipes[end] == RICH:
        # Output printed before a display goes first, so that the display keeps its place.
        for each, kind in list(block.pipes.items()):
            if kind != RICH:
                drain(block, each)
    try:
        count = os.readv(end, [chunk])
    except BlockingIOError:
        return 0
    except OSError:
        # A terminal that was hung up.
        count = 0
    if not count:
        forget(block, end)
        return 0
    if block.program is not None and block.program.unheard:
        return count
    if block.sink is not None:
        if not block.ended:
            block.sink.take(block.pipes[end], chunk[:count])
    elif not block.ended:
        channel.send(block.pipes[end], block.number, chunk[:count])
        block.credit -= count
        if block.credit <= 0 and not block.paused:
            block.paused = True
            for each in block.pipes:
                poll_of(block).unregister(each)
    return count


def drain(block, end):
    """Reads what a pipe holds now, up to a limit, because more may be written to it meanwhile."""
    left = CAPACITY
    while left > 0:
        count = read_pipe(block, end)
        if count == 0:
            break
        left -= count


def forget(block, end):
    del block.pipes[end], readers[end]
    if not block.paused:
        poll_of(block).unregister(end)
    terminals.close(end)
    os.close(end)


def give_credit(block, credit):
    block.credit += credit
    if block.credit > 0:
        resume(block)


def resume(block):
    if block.paused:
        block.paused = False
        for end in block.pipes:
            poll_of(block).register(end, select.EPOLLIN)
