"""Signs of life to the keeper, which ends this place when the supervisor ends or has not heard from the host for a while. Python 3.8
or later."""

import select

connection = None


def find(name):
    """Connects to the keeper's abstract socket, if a name was given; the keeper may still be starting. A number is that of a socket
    that a keeper has left to this process."""
    global connection
    if not name:
        return
    import _socket

    if name.isdigit():
        connection = _socket.socket(fileno=int(name))
        connection.setblocking(False)
        return
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    for _ in range(500):
        try:
            connection.connect("\0" + name)
            break
        except ConnectionRefusedError:
            select.select([], [], [], 0.02)
    else:
        raise ConnectionError("the keeper does not answer")
    connection.setblocking(False)


def beat():
    if connection is not None:
        try:
            connection.send(b".")
        except BlockingIOError:
            pass
