"""The main process of a place whose session outlives the programs that use it: starts the supervisor, and ends with the session.

Arguments: the name of the session's abstract socket, the supervisor's program, and its arguments, of which the sixth is ours to fill
in. Nothing inside a container can stop or kill its first process. Python 3.8 or later, Linux, standard library only.
"""

import os
import sys

import _fenced_processes as processes
import _fenced_session_server as server
import _socket


def start(program, words):
    """Starts the supervisor; returns the sockets that lead to it."""
    control, theirs = _socket.socketpair()
    stream, inner = _socket.socketpair()
    if os.fork():
        theirs.close()
        inner.close()
        return control, stream
    control.close()
    stream.close()
    os.dup2(inner.fileno(), 0)
    os.dup2(inner.fileno(), 1)
    inner.close()
    number = theirs.detach()
    # Whatever else this process was given stays open as long as it lives, not as long as the supervisor does.
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in (0, 1, 2, number):
            try:
                os.close(int(name))
            except OSError:
                pass
    words[5] = "server:%d" % number
    sys.argv[1:] = words
    exec(compile(program, "<fenced>", "exec"), {})
    os._exit(1)


def main(name, program, *words):
    control, stream = start(program, list(words))
    listener = server.listen(name)
    processes.protect(0)
    # The first process of a container receives only signals that it handles. Orphans become its children; with SIGCHLD ignored,
    # they leave no zombies.
    processes.signal.signal(processes.signal.SIGTERM, lambda *_: os._exit(0))
    processes.signal.signal(processes.signal.SIGCHLD, processes.signal.SIG_IGN)
    server.Server(control, stream, listener, (0, 1, None)).serve()


try:
    main(*sys.argv[1:])
except BaseException:
    sys.excepthook(*sys.exc_info())
finally:
    os._exit(0)
