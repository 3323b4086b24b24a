"""Becomes the program that it reads from standard input: ten digits, then that many bytes with the program and its arguments."""

import os
import sys


def take(size):
    taken = b""
    while len(taken) < size:
        piece = os.read(0, size - len(taken))
        if not piece:
            os._exit(1)
        taken += piece
    return taken


program, *words = take(int(take(10))).split(b"\0")
sys.argv[1:] = [os.fsdecode(word) for word in words]
exec(compile(program, "<fenced>", "exec"))
