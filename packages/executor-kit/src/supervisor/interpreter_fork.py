"""Forks the interpreter of a session. Python 3.8 or later, standard library only."""

import os
import signal
import warnings

# Taken now: libraries replace some of these for the programs that they run.
from os import _exit, close, waitpid, write
from os import fork as fork_process

from _fenced_block_process import tend
from _fenced_run_source import library

# Whether the fork that is being made is the host's, and not the program's.
forking = False


def fork(way, status, said):
    """Forks a shepherd, and that one the new interpreter; returns whether this is the new one. The shepherd is not a child of this
    process, whose children are the program's. `way`: the new one's socket; `status` and `said`: the pipes on which its shepherd
    reports its end, and that it is ready."""
    global forking
    forking = True
    try:
        with warnings.catch_warnings():
            # Python warns of threads, because a fork does not have them.
            warnings.simplefilter("ignore")
            first = fork_process()
            if first == 0:
                fork_further(status, said)
                for each in (status, said):
                    close(each)
                return True
        waitpid(first, 0)
    except OSError:
        pass
    finally:
        forking = False
    for each in (way, status, said):
        close(each)
    return False


def fork_further(status, said):
    """Returns in the new interpreter only."""
    try:
        if fork_process():
            _exit(0)
        os.setsid()
        if library is not None:
            # PR_SET_CHILD_SUBREAPER
            library.prctl(36, 1, 0, 0, 0)
        program = fork_process()
    except BaseException:
        _exit(1)
    if program:
        herd(program, status, said)


def herd(program, status, said):
    try:
        for each in ("SIGCHLD", "SIGINT", "SIGTERM", "SIGHUP"):
            signal.signal(getattr(signal, each), signal.SIG_DFL)
        write(said, b"%d %d\n" % (os.getpid(), program))
        os.dup2(status, 0)
        for each in os.listdir("/proc/self/fd"):
            if each != "0":
                close_quietly(int(each))
        tend(program, 0)
    finally:
        _exit(0)


def close_quietly(descriptor):
    try:
        close(descriptor)
    except OSError:
        pass
