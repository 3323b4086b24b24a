"""Terminals of programs. Python 3.8 or later, standard library only; `termios` is loaded when the first terminal is opened."""

import fcntl
import os
import struct

import _fenced_processes as processes

# The program's side of each open terminal, by the supervisor's side.
opened = {}


class NoTerminal(OSError):
    pass


def library():
    import termios

    return termios


def none_opened(error):
    return "No terminal could be opened: " + error.strerror


def open_terminal(rows, columns):
    """Returns both sides of a new terminal. The supervisor keeps the program's side open, too: otherwise a program that closes its
    terminal would hang it up, and its last output could be lost."""
    try:
        # Needed to control it.
        library()
        supervisors, programs = os.openpty()
    except ImportError as error:
        raise NoTerminal(0, str(error)) from None
    except OSError as error:
        raise NoTerminal(error.errno, os.strerror(error.errno)) from None
    opened[supervisors] = programs
    resize(supervisors, rows, columns)
    return supervisors, programs


def resize(supervisors, rows, columns):
    """The kernel tells the processes in the foreground."""
    try:
        fcntl.ioctl(supervisors, library().TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    except OSError:
        # It was hung up.
        pass


def control():
    """Makes standard input the terminal of this process, which leads a session without one, and its keys work."""
    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGWINCH"):
        processes.signal.signal(getattr(processes.signal, name), processes.signal.SIG_DFL)
    fcntl.ioctl(0, library().TIOCSCTTY, 0)


def close(supervisors):
    """Closes the program's side."""
    programs = opened.pop(supervisors, None)
    if programs is not None:
        os.close(programs)
