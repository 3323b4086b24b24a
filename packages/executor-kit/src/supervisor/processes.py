"""Questions to the system about processes, and signals. Python 3.8 or later, standard library only."""

import os

try:
    import _signal as signal
except ImportError:
    import signal

try:
    import ctypes

    prctl = ctypes.CDLL(None).prctl
except Exception:
    prctl = None

SELF = os.getpid()


def set_process(option, value):
    try:
        if prctl is not None:
            prctl(option, value, 0, 0, 0)
    except Exception:
        pass


def adopt_orphans():
    """What loses its parent below this process becomes its child (PR_SET_CHILD_SUBREAPER)."""
    set_process(36, 1)


def protect(dumpable):
    """0: blocks can neither trace this process nor read its memory (PR_SET_DUMPABLE)."""
    set_process(4, dumpable)


def processes():
    """The living processes and their parents."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/" + name + "/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            # A process whose first thread has ended looks like a zombie, but its other threads run on.
            if fields[0] not in (b"Z", b"X") or int(fields[17]) > 1:
                found[int(name)] = int(fields[1])
    return found


def has_mark(pid, mark):
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False


def members(shepherd, mark):
    """The processes below a shepherd, and those that carry the mark, with all that they started."""
    table = processes()
    children = {}
    for pid, parent in table.items():
        children.setdefault(parent, []).append(pid)
    queue = list(children.get(shepherd, ()))
    queue += [pid for pid in table if pid not in (1, SELF, shepherd) and has_mark(pid, mark)]
    found = set()
    while queue:
        pid = queue.pop()
        if pid not in found and pid != SELF:
            found.add(pid)
            queue += children.get(pid, ())
    return found


def stop(pids):
    send_signal(pids, signal.SIGSTOP)


def kill(pids):
    send_signal(pids, signal.SIGKILL)


def send_signal(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def default_signals():
    """Python ignores these; programs do not expect that."""
    for each in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(each, signal.SIG_DFL)


def oom_kills():
    """How often the kernel ended a process here for want of memory; `None` if it does not tell."""
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
