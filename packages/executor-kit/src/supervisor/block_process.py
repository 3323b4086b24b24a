"""What is the same wherever a block's process is forked: by the supervisor, by the interpreter that waits, and by that of a session.

Python 3.8 or later. It imports only `os`, because a block of the interpreter that waits must not find more modules than a new one has.
"""

# Taken now: in a session, libraries replace some of these for the programs that they run.
from os import WEXITSTATUS, WIFSIGNALED, WTERMSIG, _exit, waitpid, write

# A shepherd writes words of four bytes: its program's exit code, or one of these; `FAILED` with the number of an error.
BEGUN, FAILED = 1 << 30, 1 << 31


def tend(program, status):
    """What a shepherd does: it buries whatever dies below it, reports how its program ended, and exits when nothing is left."""
    while True:
        try:
            pid, ended = waitpid(-1, 0)
        except ChildProcessError:
            _exit(0)
        if pid == program:
            code = 128 + WTERMSIG(ended) if WIFSIGNALED(ended) else WEXITSTATUS(ended)
            write(status, code.to_bytes(4, "big"))


def volunteer_for_oom():
    """Has the kernel, when it is out of memory, kill this process rather than the supervisor."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass


def preload(names):
    """Imports what blocks will import. A module that cannot be imported is left to the block that asks for it."""
    for name in names:
        try:
            __import__(name)
        except BaseException:
            pass
