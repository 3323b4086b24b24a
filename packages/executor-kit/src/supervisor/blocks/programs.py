"""What the host does with programs that it has started beside blocks: it learns their process ids, resizes their terminals, sends them
signals, and finds those that a host before it has started. Python 3.8 or later, standard library only."""

import os
import struct

import _fenced_block_output as output
import _fenced_blocks as blocks
import _fenced_feeds as feeds
import _fenced_processes as processes
import _fenced_terminals as terminals
from _fenced_channel import channel
from _fenced_wire import EXIT, PROGRAM, STARTED

# How programs that nobody has heard of have ended, by number: what the host is told of them. At most `MOST`.
ended = {}
MOST = 1000


class Program:
    """`label`: what a later host is told. `unheard`: no host reads its output, which is dropped."""

    def __init__(self, label):
        self.label = label
        self.terminal = None
        self.pid = 0
        self.unheard = False


def started(block, pid):
    block.program.pid = pid
    channel.send(STARTED, block.number, struct.pack(">I", pid))


def order(number, payload):
    """Resizes a program's terminal, or sends it a signal."""
    block = blocks.blocks.get(number)
    if block is None or block.program is None or block.ended:
        return
    what, *words = payload.split(b"\0")
    if what == b"size":
        if block.program.terminal is not None:
            terminals.resize(block.program.terminal, *(int(word) for word in words))
    elif what == b"signal":
        send_signal(block, getattr(processes.signal, os.fsdecode(words[0])))


def send_signal(block, number):
    """Sends it to the program and to its process group. What has left that, or has got the id of an ended program, is not meant."""
    pid = block.program.pid
    table = processes.processes()
    if not pid or table.get(pid) != block.shepherd:
        return
    try:
        os.killpg(pid, number)
        if os.getpgid(pid) == pid:
            return
    except OSError:
        pass
    processes.send_signal([pid], number)


def leave():
    """Another host follows: the programs go on, and their output is dropped until that host reads it."""
    for block in blocks.blocks.values():
        if block.program is not None and not block.ended:
            block.program.unheard = True
            if block.number in feeds.feeds:
                feeds.feeds[block.number].leave()


def remember(block):
    """A program that nobody reads has ended."""
    ended[block.number] = described(block)
    if len(ended) > MOST:
        del ended[next(iter(ended))]


def tell():
    """Tells the host what programs a host before it has started."""
    for block in list(blocks.blocks.values()):
        if block.program is not None and block.program.unheard and not block.ended and block.program.pid:
            channel.send(PROGRAM, block.number, described(block))
    for number, payload in ended.items():
        channel.send(PROGRAM, number, payload)
    ended.clear()
    channel.send(PROGRAM, 0)


def described(block):
    """The process id, the exit code, whether it has ended, takes input and has a terminal, and the label."""
    program = block.program
    flags = block.ended | (block.number in feeds.feeds) << 1 | (program.terminal is not None) << 2
    return struct.pack(">IiB", program.pid, -1 if block.code is None else block.code, flags) + program.label


def hear(number, credit):
    """The host reads a program's output from now on."""
    block = blocks.blocks.get(number)
    if block is None or block.program is None or block.ended:
        channel.send(EXIT, number, blocks.ended_with(-1, 2, 0, blocks.UNKNOWN) + b"The program has ended")
        return
    block.program.unheard = False
    block.credit = 0
    output.give_credit(block, credit)
