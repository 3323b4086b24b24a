"""Terminals of programs. Python 3.8 or later, standard library only; `termios` is loaded when the first terminal is opened."""

import fcntl
import os
import struct

import _fenced_processes as processes

# The program's side of each open terminal, by the supervisor's side.
opened = {}


def open_terminal(rows, columns):
    """Returns both sides of a new terminal. The supervisor keeps the program's side open, too: otherwise a program that closes its
    terminal would hang it up, and its last output could be lost."""
    try:
        supervisors, programs = os.openpty()
    except OSError as error:
        raise OSError(error.errno, "No terminal could be opened: " + os.strerror(error.errno)) from None
    opened[supervisors] = programs
    resize(supervisors, rows, columns)
    return supervisors, programs


def resize(supervisors, rows, columns):
    """The kernel tells the processes in the foreground."""
    import termios

    try:
        fcntl.ioctl(supervisors, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    except OSError:
        # It was hung up.
        pass


def control():
    """Makes standard input the terminal of this process, which leads a session without one, and its keys work."""
    import termios

    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGWINCH"):
        processes.signal.signal(getattr(processes.signal, name), processes.signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def close(supervisors):
    """Closes the program's side."""
    programs = opened.pop(supervisors, None)
    if programs is not None:
        os.close(programs)
