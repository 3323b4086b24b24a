"""Files that the host has created for blocks to run. Python 3.8 or later, standard library only."""

import os

files = {}


def write(number, workspace, payload):
    """Takes a piece of a block's file. The first piece starts with a flag (whether to keep the file) and its name."""
    if number not in files:
        head, payload = payload.split(b"\0", 1)
        files[number] = BlockFile(workspace, head)
    files[number].write(payload)


def take(number):
    return files.pop(number, None)


class BlockFile:
    """The file that a block runs. It is always created anew, because code may have put something else in its place."""

    def __init__(self, workspace, head):
        kept, name = head.split(b":", 1)
        self.place = os.path.join(os.fsencode(workspace), name)
        self.kept = kept == b"keep"
        self.problem = None
        self.descriptor = None
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        try:
            try:
                self.descriptor = os.open(self.place, flags, 0o644)
            except FileNotFoundError:
                if not os.path.isabs(name):
                    raise
                # A block may have removed the session's own directory, with `rm -rf /tmp/*` for example.
                os.mkdir(os.path.dirname(self.place), 0o700)
                self.descriptor = os.open(self.place, flags, 0o644)
        except OSError as error:
            self.problem = os.strerror(error.errno)

    def write(self, content):
        view = memoryview(content)
        try:
            while self.problem is None and len(view):
                view = view[os.write(self.descriptor, view) :]
        except OSError as error:
            self.problem = os.strerror(error.errno)

    def close(self):
        if self.descriptor is not None:
            os.close(self.descriptor)

    def remove(self):
        """Removes only what this program created: something else may have been there before."""
        try:
            if self.descriptor is not None and not self.kept:
                os.unlink(self.place)
        except OSError:
            pass
