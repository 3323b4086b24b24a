"""Keeps a kernel for programs that come and go, and ends it when none has been connected for too long. Python 3.8 or later, Linux,
standard library only.

Arguments: the abstract socket for later connections; the numbers of the sockets that lead to the helper (control, and the first
stream) and to the first program; the kernel's process; the argument on its command line that names its connection file; the mark of the
processes that it starts; its helper's directory; the work directory to remove, or nothing; and the kit's shell functions for that.
Without sockets, it takes the place of a keeper that was killed while no program was connected, and only ends what is left.

A kernel that ends while nobody has asked for that is one whose variables are lost, but not its files: the server starts another one in
its place, and a program that connects takes these files over. A server also starts a kernel again that is to stay dead, a few times in a row,
and then forgets it. It offers no other way to code that does not have its token, which must not be where code can read it.
"""

import os
import sys
import time

import _fenced_process_table as table
import _fenced_processes as processes
import _fenced_session_server as server
import _socket

NAME, CONTROL, STREAM, FIRST, KERNEL, FILE, MARK, HOME, WORKSPACE, REMOVAL = sys.argv[1:11]
TITLE = b"fenced-session"
# How often a server starts a kernel again that does not stay alive, and seconds within which it does that.
RESTARTS, RESTARTING = 5, 30
# Seconds for the program to delete the kernel that it is ending.
PARTING = 10
# Seconds between looks at the processes.
LOOK = 0.05


def leave():
    """Continues in a process that the kernel does not find among its children."""
    if os.fork():
        os._exit(0)
    os.setsid()
    processes.SELF = os.getpid()
    processes.set_process(15, TITLE)


def kernels():
    """The kernel, and what the server starts in its place."""
    wanted, found = os.fsencode(FILE), set()
    for pid in table.read_processes():
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if pid != processes.SELF and wanted in words and words[1:2] != [b"-I"]:
            found.add(pid)
    return found


def begin_of(pid):
    """When a process has started; `None` if it does not exist."""
    return table.read_processes().get(pid, (0, None))[1]


class Family:
    stopped = set()
    empty = 0


def end_processes(heads):
    """Ends the kernel, if it is in `heads`, and what it has started."""
    mark = os.fsencode(MARK)
    for _ in range(1000):
        marked = {
            pid for pid in table.read_processes() if pid not in (1, processes.SELF) and processes.has_mark(pid, mark)
        }
        found = heads & set(table.read_processes())
        if processes.kill_step(Family, marked | found | processes.below(marked | found)):
            return
        time.sleep(0.002)


def keep_ended():
    """Ends what the server starts in place of the kernel, until it gives up."""
    count, end = 0, time.monotonic() + RESTARTING
    while count < RESTARTS and time.monotonic() < end:
        found = kernels()
        if found:
            processes.kill(found)
            count += 1
            end = time.monotonic() + RESTARTING
        time.sleep(LOOK)


def is_over(kernel):
    """Waits until the program that has ended the session has deleted the kernel, too."""
    end = time.monotonic() + PARTING
    while kernel in kernels():
        if time.monotonic() > end:
            return False
        time.sleep(LOOK)
    return True


def await_heir(listener, seconds):
    """Waits for another kernel that takes the files over. Returns its connection, and whether it does that (`heir`) or asks for the end
    (`over`); nothing if none comes in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        listener.settimeout(max(0.01, end - time.monotonic()))
        try:
            heir = _socket.socket(fileno=listener._accept()[0])
            heir.settimeout(1)
            word = heir.recv(4) if server.is_ours(heir) else b""
            if word in (b"heir", b"over"):
                return heir, word == b"heir"
            heir.close()
        except OSError:
            pass
    return None, False


def remove(directory):
    if directory and os.fork() == 0:
        try:
            os.execv("/bin/sh", ["sh", "-c", REMOVAL + '\nremove_trees "$1"', "fenced", directory])
        finally:
            os._exit(127)
    if directory:
        os.wait()


class Server(server.Server):
    """Notices whether it is the kernel that has ended."""

    died = False

    def read_stream(self):
        super().read_stream()
        self.died = self.over

    def hear_supervisor(self):
        super().hear_supervisor()
        self.died = self.died or self.over


def main():
    leave()
    os.chdir("/")
    kernel = int(KERNEL)
    begun = begin_of(kernel)
    if not CONTROL:
        end_processes(kernels() | ({kernel} if begun is not None else set()))
        remove(HOME)
        remove(WORKSPACE)
        keep_ended()
        return
    control, stream = [_socket.socket(fileno=int(each)) for each in (CONTROL, STREAM)]
    listener = server.listen(NAME)
    processes.protect(0)
    served = Server(control, stream, listener, (int(FIRST), int(FIRST), None))
    served.serve()
    left = served.left(time.monotonic())
    heir, ended = None, False
    if served.died:
        # What the kernel had started ends with it.
        end_processes(set())
        heir, is_heir = await_heir(listener, served.keep if served.link is not None else left)
        if is_heir:
            remove(HOME)
            heir.send(b".")
            return
        # The program that asks for the end deletes the kernel, too.
        ended = heir is not None
    # The program learns that the session is over, and deletes the kernel.
    for each in served.connections:
        each.close()
    listener.close()
    ended = ended or (not served.died and served.link is not None and is_over(kernel))
    # Another process may have its number by now.
    end_processes(
        set() if ended else kernels() | ({kernel} if begun is not None and begin_of(kernel) == begun else set())
    )
    remove(HOME)
    remove(WORKSPACE)
    if heir is not None:
        heir.send(b".")
    if not ended:
        keep_ended()


try:
    main()
except BaseException:
    sys.excepthook(*sys.exc_info())
finally:
    os._exit(0)
