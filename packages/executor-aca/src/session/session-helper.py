"""
The module by which a session is recognized (Python 3.8 or later): it is there as long as the session's process lives. It
writes down what blocks print, in order and uncut, sets a block's environment variables, and makes functions global.
"""

import importlib
import json
import os
import sys

NAME = "__fenced__"
# Bytes that a log holds.
LIMIT = 134217728


class Log:
    """What blocks print, piece by piece: a letter for the stream, four bytes for the length, the text."""

    def __init__(self):
        self.file = None
        self.left = 0

    def open(self, path):
        self.close()
        flags = (
            os.O_WRONLY
            | os.O_CREAT
            | os.O_TRUNC
            | os.O_APPEND
            | getattr(os, "O_NOFOLLOW", 0)
            | getattr(os, "O_NONBLOCK", 0)
        )
        try:
            self.file = os.open(path, flags, 0o600)
        except OSError:
            self.file = None
        self.left = LIMIT

    def close(self):
        if self.file is not None:
            os.close(self.file)
            self.file = None

    def add(self, letter, text):
        if self.file is None or not text:
            return
        data = text.encode("utf-8", "replace")
        if len(data) > self.left:
            letter, data = b"t", b""
        self.left -= len(data)
        try:
            os.write(self.file, letter + len(data).to_bytes(4, "big") + data)
        except OSError:
            pass
        if letter == b"t":
            self.close()


class Recorded:
    """An output stream whose text also goes into the log."""

    def __init__(self, stream, letter):
        self._fenced = (stream, letter)

    def write(self, text):
        stream, letter = self._fenced
        written = stream.write(text)
        log.add(letter, text)
        return written

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def __getattr__(self, name):
        return getattr(self._fenced[0], name)

    def __iter__(self):
        return iter(self._fenced[0])


log = Log()
saved = {}
offered = set()
# What runs blocks in a thread, if the executor asks for that.
pump = None


def install(module):
    """
    Makes the session ready. May be called again, also for another executor: then this module takes over from the one
    before, whose log and environment variables end.
    """
    old = sys.modules.get(NAME)
    if old is not None:
        old.log.close()
        saved.update(old.saved)
        if old.pump is not None:
            old.pump.close()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        while type(stream).__name__ == "Recorded":
            stream = stream._fenced[0]
        setattr(sys, name, stream)
    sys.modules[NAME] = module
    os.makedirs("/mnt/data", exist_ok=True)
    os.chdir("/mnt/data")
    if "" not in sys.path:
        sys.path.insert(0, "/mnt/data")


def begin(path, variables, functions):
    """Prepares a block that the service runs: its log, and what every block needs."""
    prepare(json.loads(variables), json.loads(functions))
    for name, letter in (("stdout", b"o"), ("stderr", b"e")):
        stream = getattr(sys, name)
        if not isinstance(stream, Recorded):
            setattr(sys, name, Recorded(stream, letter))
    log.open(path)


def prepare(variables, functions):
    """Prepares a block: its environment variables, the functions as globals."""
    for name, value in saved.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    saved.clear()
    for name, value in variables.items():
        saved[name] = os.environ.get(name)
        os.environ[name] = value
    importlib.invalidate_caches()
    offer(**functions)


def choose_modules(functions, directory, names):
    """Has the block import modules of functions from `directory`, in or below `functions`, and not those that another call had."""
    sys.path[:] = [each for each in sys.path if os.path.dirname(each) != functions and each != directory]
    sys.path.insert(0, directory)
    for name in names:
        file = getattr(sys.modules.get(name), "__file__", None) or ""
        if file.startswith(functions + os.sep) and os.path.dirname(file) != directory:
            del sys.modules[name]


def offer(module, directory, names):
    """Makes functions global once they are set up. Once only: a block may give their names to something else."""
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if module in offered or file is None or os.path.dirname(file) != directory:
        return
    offered.add(module)
    for name in names:
        if hasattr(loaded, name):
            setattr(sys.modules["__main__"], name, getattr(loaded, name))


def leave():
    """The executor goes, and the session stays."""
    global pump
    if pump is not None:
        pump.close()
    pump = None


def packages():
    """Prints the names of the installed packages, one a line."""
    import importlib.metadata

    print("\n".join(str(each.metadata["Name"]) for each in importlib.metadata.distributions()))
