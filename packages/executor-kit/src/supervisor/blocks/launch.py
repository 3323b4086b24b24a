"""Starts programs below a shepherd. Python 3.8 or later, standard library only.

The shepherd is a fork of the supervisor and the "subreaper" of everything that the program starts: a process that loses its
parent becomes the shepherd's child. So the tree below it is the block, however its processes hide, and once it has exited, all of
them are dead.
"""

import errno
import os
import struct

import _fenced_feeds as feeds
import _fenced_processes as processes
import _fenced_terminals as terminals
from _fenced_block_output import readers
from _fenced_block_process import FAILED, STARTED, tend, volunteer_for_oom
from _fenced_used_resources import used


def fork_shepherd(request, given, directory, program=None):
    """`request`: arguments and variables; `given`: the program's descriptors 0, 1, 2 and so on; `program`: what is special about a
    program beside blocks. Returns the shepherd and the pipe on which it reports the end."""
    status, told = os.pipe()
    try:
        shepherd = os.fork()
    except OSError:
        os.close(status)
        os.close(told)
        raise
    if shepherd == 0:
        try:
            herd(request, given, directory, told, program)
        finally:
            os._exit(1)
    os.close(told)
    return shepherd, status


def herd(request, given, directory, status, special):
    keep = sorted(given + (status,))
    # Includes the pipes to other blocks' input: if this process kept one open, that block would never see its input end.
    highest = max([keep[-1]] + list(readers) + list(feeds.writers) + list(terminals.opened.values()))
    for lower, upper in zip([-1] + keep, keep + [highest + 256]):
        os.closerange(lower + 1, upper)
    processes.adopt_orphans()
    try:
        program = os.fork()
    except OSError as error:
        os.write(status, struct.pack(">I", FAILED | error.errno))
        return
    if program == 0:
        try:
            become(request, given, directory, special is not None and special.terminal is not None)
        finally:
            os._exit(127)
    for end in set(given):
        os.close(end)
    if special is not None:
        os.write(status, struct.pack(">I", STARTED | program))
    tend(program, status, used)


def become(request, given, directory, controls_terminal):
    os.setsid()
    for target, source in enumerate(given):
        os.dup2(source, target)
    processes.default_signals()
    if controls_terminal:
        terminals.control()
    processes.protect(1)
    volunteer_for_oom()
    argv, environ = request
    try:
        os.chdir(directory)
        os.execvpe(argv[0], argv, environ)
    except OSError as error:
        os.write(2, (argv[0] + " could not be started: " + os.strerror(error.errno) + "\n").encode())
        os._exit(127 if error.errno == errno.ENOENT else 126)
