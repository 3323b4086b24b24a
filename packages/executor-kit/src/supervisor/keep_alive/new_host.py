"""Hands this place over to another host: ends what the host before it was running, but neither submitted runs, nor programs beside
blocks, nor the interpreter that lives from block to block, nor what blocks have left running. Python 3.8 or later, standard library
only."""

import os
import time

import _fenced_block_files as block_files
import _fenced_block_output as output
import _fenced_blocks as blocks
import _fenced_feeds as feeds
import _fenced_processes as processes
import _fenced_programs as programs
import _fenced_shortcut as shortcut
import _fenced_tunnels as tunnels
from _fenced_channel import channel

# Seconds for an interpreter to start that a submitted run goes on with, and that the next host must know.
REOPENING = 20
# Seconds for a block in such an interpreter to end by itself, and then after it was interrupted: killing it would cost the variables.
ENDING, INTERRUPTED = 2, 3
ENDLESS = 1 << 62

# Since when the last host's programs have been ending; `None` if no other host waits.
began = None
interrupted = False


def begin(descriptor):
    global began, interrupted
    channel.replace(descriptor)
    began, interrupted = time.monotonic(), False
    shortcut.close()
    for number in list(tunnels.numbers):
        # A program that lives on learns that it has not received everything.
        tunnels.drop(number, b"")
    # Those that connect from now on wait until this host listens.
    tunnels.rest(tunnels.NETWORK, is_new_host=True)
    programs.leave()
    for number in list(feeds.feeds):
        block = blocks.blocks.get(number)
        if block is None or block.program is None:
            feeds.end(number)
    for given in blocks.inputs.values():
        os.close(given)
    blocks.inputs.clear()
    for number in list(block_files.files):
        file = block_files.take(number)
        file.close()
        file.remove()
    if blocks.measure is not None:
        blocks.measure.forget()
    if blocks.sessions is not None:
        blocks.sessions.keep_first()
    if blocks.runs is not None:
        blocks.runs.change_host()
    for block in blocks.blocks.values():
        # Nobody reads it any more.
        block.credit = ENDLESS
        output.resume(block)


def step(resetting):
    """Takes the next step; returns whether the other host can be greeted."""
    global began, interrupted
    age = time.monotonic() - began
    # What an ended block has left running lives on.
    running = [each for each in blocks.blocks.values() if not each.ended and each.sink is None and each.program is None]
    for block in running:
        if block.session is None or age > ENDING + INTERRUPTED:
            blocks.kill(block)
        elif age > ENDING and not interrupted:
            interrupted = True
            processes.send_signal([block.session.pid], processes.signal.SIGINT)
    reopening = blocks.sessions is not None and blocks.sessions.reopening()
    if reopening and age > REOPENING:
        # Code keeps it from starting.
        reopening.ending = True
    if running or reopening or resetting or (blocks.sessions is not None and blocks.sessions.ends.keep_ending()):
        return False
    began = None
    return True


def lines():
    """What the greeting says about what lives on: the highest number in use, and interpreters."""
    # What an ended block has left running keeps its number.
    loaded = [each for each in (blocks.sessions, blocks.runs) if each is not None]
    found = [
        "last %d" % max([0, *blocks.blocks, *programs.ended, *(number for each in loaded for number in each.numbers())])
    ]
    if blocks.runs is not None:
        found.append("runs")
    if blocks.sessions is None:
        return found
    living = blocks.sessions.living()
    return found + ["interpreters"] + ["interpreter %d %s" % (each.number, each.displays) for each in living]
