"""The main process of a pod: ends it when its supervisor has ended, or has not heard from the host for a while.

Arguments: the abstract socket that the supervisor connects to; the seconds within which it must connect, and for which it may be
silent; `waits` if there is no time limit for connecting, because nobody has claimed the pod yet. Only the first connection
counts: it is made before any code runs. Python 3.8 or later, standard library only.
"""

import os
import select
import signal
import socket
import sys
import time


def protect():
    """Keeps code from tracing this process and taking its connection (PR_SET_DUMPABLE)."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    except Exception:
        pass


def main(name, patience, waits):
    protect()
    # The first process of a container receives only signals that it handles.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    # Orphans become this process's children; with SIGCHLD ignored, they leave no zombies.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0" + name)
    listener.listen(1)
    listener.settimeout(None if waits else patience)
    supervisor = listener.accept()[0]
    listener.close()
    while True:
        end = time.monotonic() + patience
        left = patience
        while not select.select([supervisor], [], [], max(left, 0))[0]:
            left = end - time.monotonic()
            if left <= 0:
                return
        if not supervisor.recv(4096):
            return


try:
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3:] == ["waits"])
finally:
    os._exit(0)
