"""Finds and ends the processes that the kernel has started. Python 3.8 or later, standard library only."""

import os
import signal
import threading
import time

from _fenced_process_table import read_processes

began = started = 0


def note_session():
    global began
    began = now()


def note_cell(*_):
    global started
    started = now()


def now():
    if hasattr(time, "CLOCK_BOOTTIME") and os.path.isdir("/proc/self"):
        return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
    return time.time()


def processes():
    """Maps process ids to their parents and start times."""
    if not os.path.isdir("/proc/self"):
        import psutil

        return {each.pid: (each.ppid(), each.create_time()) for each in psutil.Process().children(recursive=True)}
    return read_processes()


def descendants(since):
    """The descendants that started at `since` or later, without those below a process that started earlier."""
    table = processes()
    children = {}
    for pid, (parent, _) in table.items():
        children.setdefault(parent, []).append(pid)
    found, look = [], list(children.get(os.getpid(), []))
    while look:
        pid = look.pop()
        if table[pid][1] >= since:
            found.append(pid)
            look.extend(children.get(pid, []))
    return found


def kill(everything=False):
    """Kills all processes that this cell, or the kernel, has started; returns whether none are left."""
    since = began if everything else started
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        found = descendants(since)
        if not found:
            return True
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.005)
    return False


def interrupt():
    # Signals this process only: the server would interrupt the whole group, with processes that earlier blocks left running.
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    else:
        os.kill(os.getpid(), signal.SIGINT)


def adopt_orphans():
    # A process that loses its parent becomes a child of the kernel, where kill() finds it (PR_SET_CHILD_SUBREAPER).
    try:
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)
    except Exception:
        pass
