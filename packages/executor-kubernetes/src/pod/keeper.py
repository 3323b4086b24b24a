"""The main process of a pod: ends it when its supervisor has ended, or has not heard from the host for a while; or becomes the server of
a session that outlives its program.

Arguments: the abstract socket that the supervisor connects to; the seconds within which it must connect, and for which it may be
silent; `waits` if there is no time limit for connecting, because nobody has claimed the pod yet. Only the first connection of this
user counts: it is made before any code runs. If it brings two descriptors, the server's program follows on the first one, as in `load.py`.
Python 3.8 or later, standard library only.
"""

import os
import select
import signal
import socket
import struct
import sys
import time

PATIENCE = float(sys.argv[2])


def protect():
    """Keeps code from tracing this process and taking its connection (PR_SET_DUMPABLE)."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    except Exception:
        pass


def end(*_):
    os._exit(0)


def accept(listener):
    """Other containers, and with the node's network other pods, see the socket, too."""
    while True:
        connection = listener.accept()[0]
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        if struct.unpack("=3i", peer)[1] == os.geteuid():
            return connection
        connection.close()


def hears(connection):
    """Returns whether anything has arrived in time."""
    limit = time.monotonic() + PATIENCE
    left = PATIENCE
    while left > 0:
        if select.select([connection], [], [], left)[0]:
            return True
        left = limit - time.monotonic()
    return False


def become_server(connection, rights):
    """The sender stays connected as long as its streams are used."""
    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    given = struct.unpack("=2i", rights)
    for number, each in enumerate(given + (os.open(os.devnull, os.O_RDWR),)):
        os.dup2(each, number)
        os.close(each)
    program, *words = take(int(take(10))).split(b"\0")
    signal.setitimer(signal.ITIMER_REAL, 0)
    for each in (signal.SIGALRM, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(each, signal.SIG_DFL)
    words[0] = str(connection.detach()).encode()
    sys.argv[1:] = [os.fsdecode(word) for word in words]
    exec(compile(program, "<fenced>", "exec"), {})


def take(size):
    taken = b""
    while len(taken) < size:
        piece = os.read(0, size - len(taken))
        if not piece:
            end()
        taken += piece
    return taken


def main(name, waits):
    protect()
    # The first process of a container receives only signals that it handles.
    signal.signal(signal.SIGTERM, end)
    # Orphans become this process's children; with SIGCHLD ignored, they leave no zombies.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0" + name)
    listener.listen(1)
    listener.settimeout(None if waits else PATIENCE)
    connection = accept(listener)
    listener.close()
    rights = []
    if hears(connection):
        said, rights, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(8))
        if not said:
            return
    if rights:
        become_server(connection, rights[0][2])
    while hears(connection) and connection.recv(4096):
        pass


try:
    main(sys.argv[1], sys.argv[3:] == ["waits"])
finally:
    os._exit(0)
