"""Finds processes and sends them signals. Python 3.8 or later, standard library only."""

import os

from _fenced_process_table import read_processes

try:
    import _signal as signal
except ImportError:
    import signal

try:
    import ctypes

    library, minus_one = ctypes.CDLL(None), ctypes.c_int(-1)
    prctl, getrusage = library.prctl, library.getrusage
except Exception:
    prctl = getrusage = minus_one = None

SELF = os.getpid()
# Whether blocks are kept from tracing this program and the waiting interpreter.
hidden = True


def set_process(option, value):
    try:
        if prctl is not None:
            prctl(option, value, 0, 0, 0)
    except Exception:
        pass


def adopt_orphans():
    """Adopts processes anywhere below this one that lose their parent (PR_SET_CHILD_SUBREAPER)."""
    set_process(36, 1)


def protect(dumpable):
    """With 0, blocks can neither trace this process nor read its memory (PR_SET_DUMPABLE)."""
    set_process(4, dumpable)


def processes():
    """Returns the living processes and their parents."""
    return {pid: parent for pid, (parent, _) in read_processes().items()}


def has_mark(pid, mark):
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False


def members(shepherd, mark):
    """Returns the processes below a shepherd, those with the mark, and everything that any of them started."""
    table = processes()
    marked = {pid for pid in table if pid not in (1, SELF, shepherd) and has_mark(pid, mark)}
    return marked | below(marked | {shepherd}, table)


def below(pids, table=None):
    """Returns everything that these processes started, except this process."""
    children = {}
    for pid, parent in (table or processes()).items():
        children.setdefault(parent, []).append(pid)
    queue, found = list(pids), {SELF}
    while queue:
        for child in children.get(queue.pop(), ()):
            if child not in found:
                found.add(child)
                queue.append(child)
    return found - {SELF}


def stop(pids):
    send_signal(pids, signal.SIGSTOP)


def resume(pids):
    send_signal(pids, signal.SIGCONT)


def kill(pids):
    send_signal(pids, signal.SIGKILL)


def send_signal(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def kill_step(target, alive):
    """Takes the next step to kill these processes of `target`, which keeps its progress in `stopped` and `empty`: stops those
    that are new since the last step or, if all are stopped, kills them. Returns whether none was found several times in a row."""
    fresh = alive - target.stopped
    if fresh:
        stop(fresh)
        target.stopped |= fresh
        return False
    target.stopped = set()
    kill(alive)
    target.empty = 0 if alive else target.empty + 1
    return target.empty > 2


def default_signals():
    """Restores the signals that Python ignores, since programs do not expect them to be ignored."""
    for each in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(each, signal.SIG_DFL)


def oom_kills():
    """Returns how many processes here the kernel has killed for lack of memory; `None` if that is unknown."""
    for file in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        try:
            with open(file) as lines:
                for line in lines:
                    if line.startswith("oom_kill "):
                        return int(line.split()[1])
        except OSError:
            pass
    return None


def which(name, path):
    for directory in [""] if "/" in name else path.split(":"):
        candidate = os.path.join(directory, name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None
