"""Connects its standard input and output to a session's server ($1), and stays until that lets go of them. `starting` ($2): it may not
be there yet. Python 3.8 or later."""

import os
import select
import struct
import sys

import _socket


def connect(name, attempts):
    for left in range(attempts, 0, -1):
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            connection.connect("\0" + name)
            return connection
        except ConnectionRefusedError:
            if left == 1:
                raise
        select.select([], [], [], 0.02)


def main():
    try:
        connection = connect(sys.argv[1], 500 if sys.argv[2:] == ["starting"] else 1)
        rights = struct.pack("=2i", 0, 1)
        connection.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    except ConnectionRefusedError:
        sys.stderr.write("the session is over\n")
        sys.exit(3)
    except OSError as error:
        sys.stderr.write("%s\n" % error)
        sys.exit(4)
    # The server alone reads and writes from here on. A small program that ends with the connection takes this one's place.
    os.dup2(connection.fileno(), 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        os.execvp("cat", ["cat"])
    except OSError:
        while os.read(0, 1):
            pass


main()
