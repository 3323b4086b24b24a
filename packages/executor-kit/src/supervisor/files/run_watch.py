"""Watches a directory of the workspace until it is killed. Python 3.8 or later, standard library only.

Arguments and failures are those of `files.py`; the verb is `watch`, and a further argument is `all` for what is below subdirectories, too.
Says a dot when it has begun and from time to time, and events as `type path`, each with a zero byte at its end.
"""

import select
import time

import _fenced_watches as watches
from _fenced_files import answer, descend, path, resolve, words, write

# Seconds after which it says that it still runs, and looks whether the directory is still there.
SIGN = 5
# Bytes of events that are written at once.
MOST = 65_536


def watch():
    watched = watches.Watch(lambda: descend(resolve(path)), words[0] == b"all")
    write(1, b".\0")
    checked = time.monotonic()
    while not watched.over:
        events = watched.read() if select.select([watched.descriptor], [], [], SIGN)[0] else []
        if not watched.over and time.monotonic() - checked >= SIGN:
            write(1, b".\0")
            events += watched.check()
            checked = time.monotonic()
        said, size = [], 0
        for kind, each in events:
            said.append(kind.encode() + b" " + each + b"\0")
            size += len(said[-1])
            if size > MOST:
                write(1, b"".join(said))
                said, size = [], 0
        write(1, b"".join(said))


answer({b"watch": watch})
