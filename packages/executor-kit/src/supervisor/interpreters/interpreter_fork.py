"""Forks the interpreter of a session. Python 3.8 or later, standard library only."""

import os
import signal
import warnings

# Imported early, because libraries replace some of these for the programs that they run.
from os import _exit, close, waitpid, write
from os import fork as fork_process

from _fenced_block_process import tend
from _fenced_run_source import library

# Whether the host, not the program, is forking.
forking = False


def fork(way, status, said):
    """Forks a shepherd, which forks the new interpreter; returns whether this is the new interpreter. The shepherd is not a child
    of this process, whose children belong to the program. `way`: the new interpreter's socket; `status`, `said`: the pipes for
    reporting its end, and that it is ready."""
    global forking
    forking = True
    try:
        with warnings.catch_warnings():
            # Python warns if there are threads, because a fork does not keep them.
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
    """Returns only in the new interpreter."""
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
