"""Runs a program in a new terminal, whose other side is this program's standard input and output. Python 3.8 or later, Linux.

Arguments: rows, columns, and the program with its own arguments. The program's process id is the first line on standard error.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios

PIECE = 65_536


def main():
    rows, columns, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    master, slave = pty.openpty()
    exited, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    child = os.fork()
    if child == 0:
        os.close(master)
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for descriptor in (0, 1, 2):
            os.dup2(slave, descriptor)
        if slave > 2:
            os.close(slave)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        try:
            os.execvp(program[0], program)
        except OSError as error:
            os.write(2, ("%s: %s\r\n" % (program[0], error.strerror)).encode())
        os._exit(127)
    os.close(slave)
    os.write(2, b"%d\n" % child)
    relay(master, child, exited)


def relay(master, child, exited):
    """Until the program has ended, even if others still have the terminal."""
    sources, pending, status = {master, exited, 0}, b"", None
    os.set_blocking(master, False)
    while True:
        # Input waits while the program does not read; its output must not.
        readers = sources - {0} if pending else sources
        readable, writable, _ = select.select(readers, [master] if pending else [], [], None if status is None else 0)
        if exited in readable:
            os.read(exited, PIECE)
            pid, found = os.waitpid(child, os.WNOHANG)
            status = found if pid == child else status
        data = read(master) if master in readable else b""
        write(1, data)
        if status is not None and not data:
            # Reports a signal as a shell does.
            os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
        if master in readable and not data:
            sources.discard(master)
        if 0 in readable:
            pending = read(0)
            if not pending:
                sources.discard(0)
        if writable:
            pending = pending[put(master, pending) :]


def read(descriptor):
    try:
        return os.read(descriptor, PIECE)
    except OSError:
        return b""


def put(descriptor, data):
    try:
        return os.write(descriptor, data)
    except BlockingIOError:
        return 0
    except OSError:
        # Nobody has the terminal any more.
        return len(data)


def write(descriptor, data):
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


main()
