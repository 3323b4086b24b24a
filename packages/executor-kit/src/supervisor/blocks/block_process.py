"""Shared by everything that forks a block's process: the supervisor, the waiting interpreter and a session's interpreter.

Python 3.8 or later. It imports only `os`: blocks of the waiting interpreter must not see more modules than a new interpreter has.
"""

# Imported early, because in a session libraries replace some of these for the programs that they run.
from os import WEXITSTATUS, WIFSIGNALED, WTERMSIG, _exit, waitpid, write

# A shepherd reports in four-byte words: its program's exit code, or one of these; `FAILED` is combined with an errno, and `STARTED`
# with the program's process id. An exit code may be followed by what was used; see `used_resources.py`.
BEGUN, FAILED, STARTED = 1 << 30, 1 << 31, 1 << 29


def tend(program, status, used=None):
    """Runs the shepherd: reaps everything that dies below it, reports how its program ended, and exits when nothing is left. `used`:
    returns what has been used; reported with the end, and again when nothing is left if that has changed."""
    code, is_changed = b"", False
    if used is not None:
        # Now, while the program runs, the kernel copies the memory that this needs.
        used()
    while True:
        try:
            pid, ended = waitpid(-1, 0)
        except ChildProcessError:
            if is_changed and used is not None:
                write(status, code + used())
            _exit(0)
        is_changed = bool(code)
        if pid == program:
            number = 128 + WTERMSIG(ended) if WIFSIGNALED(ended) else WEXITSTATUS(ended)
            code = number.to_bytes(4, "big")
            write(status, code if used is None else code + used())


def volunteer_for_oom():
    """Makes the kernel's OOM killer prefer this process to the supervisor."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass


def preload(names):
    """Imports modules in advance. One that fails to import is skipped, so that the block that imports it gets the error."""
    for name in names:
        try:
            __import__(name)
        except BaseException:
            pass
