"""
The module by which a session is recognized (Python 3.8 or later): it exists as long as the session's process lives. It
logs what blocks print, in order and uncut, sets a block's environment variables, and makes functions global.
"""

import importlib
import json
import os
import sys

import _fenced_block_surroundings as surroundings

NAME = "__fenced__"
# Maximum bytes in a log.
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
# Runs blocks in a thread, if the executor requests it.
pump = None


def install(module):
    """
    Makes the session ready. May be called again, even for another executor: then this module takes over from the previous
    one, closes its log and restores its environment variables.
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
    """Prepares a block: sets its environment variables, and makes the functions global."""
    surroundings.restore_variables(saved)
    saved.clear()
    saved.update(surroundings.set_variables(variables))
    importlib.invalidate_caches()
    offer(**functions)


def offer(module, directory, names):
    """Makes functions global after they are set up, and only once: a block may assign something else to their names."""
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if module in offered or file is None or os.path.dirname(file) != directory:
        return
    offered.add(module)
    for name in names:
        if hasattr(loaded, name):
            setattr(sys.modules["__main__"], name, getattr(loaded, name))


def leave():
    """Stops the pump, because the executor leaves the session."""
    global pump
    if pump is not None:
        pump.close()
    pump = None


def packages():
    """Prints the names of the installed packages, one per line."""
    import importlib.metadata

    print("\n".join(str(each.metadata["Name"]) for each in importlib.metadata.distributions()))
