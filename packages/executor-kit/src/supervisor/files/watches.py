"""Watches directories by inotify. Python 3.8 or later with `ctypes`, Linux, standard library only.

Code may change everything meanwhile. So a directory is watched through a descriptor that was opened without following links, and what
is watched, how deep, and how many events wait is limited.
"""

import errno
import os
import struct

try:
    import ctypes
except ImportError:
    ctypes = None

# Directories of one watch, levels below its top, and what is reported of a directory that is there with its content at once. The kernel
# limits the events that wait.
MOST_WATCHED, MOST_LEVELS, MOST_FOUND = 8192, 256, 65_536
MORE = "no more than %d directories can be watched" % MOST_WATCHED
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

IN_MODIFY, IN_ATTRIB, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE = 2, 4, 64, 128, 256, 512
IN_DELETE_SELF, IN_MOVE_SELF, IN_UNMOUNT = 1 << 10, 1 << 11, 1 << 13
IN_Q_OVERFLOW, IN_IGNORED, IN_ONLYDIR, IN_ISDIR = 1 << 14, 1 << 15, 1 << 24, 1 << 30
WATCHED = IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE
WATCHED |= IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
TYPES = (
    (IN_CREATE | IN_MOVED_TO, "create"),
    (IN_MOVED_FROM, "rename"),
    (IN_ATTRIB, "chmod"),
    (IN_MODIFY, "write"),
    (IN_DELETE, "remove"),
)
# What a directory may be by the time it is looked at.
GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class TooMuch(OSError):
    """More than can be watched."""

    def __init__(self, message):
        super().__init__(errno.E2BIG, message)


def identity(descriptor):
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def join(above, name):
    return above + b"/" + name if above else name


class Watch:
    """The events of a directory. `descriptor` can be read when there are some. A path is relative to the directory; it is empty for the
    directory itself."""

    def __init__(self, open_top, recursive):
        """`open_top`: opens the directory. It is not kept open, because then nothing would tell that it has been removed."""
        self.open_top = open_top
        self.recursive = recursive
        self.over = False
        # The path of each directory by the kernel's number, and the other way round.
        self.paths, self.numbers = {}, {}
        self.descriptor = -1
        top = open_top()
        try:
            self.identity = identity(top)
            if ctypes is None:
                raise OSError(errno.ENOSYS, "this Python has no ctypes")
            self.library = ctypes.CDLL(None, use_errno=True)
            self.descriptor = self.checked(self.library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
        except BaseException as error:
            os.close(top)
            if isinstance(error, AttributeError):
                raise OSError(errno.ENOSYS, "this system has no inotify") from None
            raise
        try:
            self.add(b"", top, None)
        except BaseException:
            self.close()
            raise

    def checked(self, answer):
        if answer < 0:
            code = ctypes.get_errno()
            if code in (errno.ENOSPC, errno.EMFILE, errno.ENOMEM):
                raise TooMuch("the system lets this user watch no more directories")
            raise OSError(code, os.strerror(code))
        return answer

    def add(self, path, folder, found):
        """Watches a directory and, if wanted, those below; appends what is in them to `found`, if that is a list, each with whether it
        is a file, and stops at one more than `MOST_FOUND`. Closes `folder`."""
        stack = [(path, folder, [])]
        try:
            stack[-1] = path, folder, self.look(path, folder, found)
            while stack:
                above, folder, left = stack[-1]
                if not left:
                    os.close(folder)
                    stack.pop()
                    continue
                name = left.pop()
                try:
                    inner = os.open(name, FOLDER, dir_fd=folder)
                except OSError as error:
                    if error.errno in GONE or error.errno == errno.EACCES:
                        continue
                    raise
                below = join(above, name)
                stack.append((below, inner, []))
                stack[-1] = below, inner, self.look(below, inner, found)
        except BaseException:
            for _, each, _ in stack:
                os.close(each)
            raise

    def look(self, path, folder, found):
        """Watches one directory; returns the names of those in it, if they are wanted."""
        if path.count(b"/") >= MOST_LEVELS:
            raise TooMuch("its directories lead deeper than %d levels" % MOST_LEVELS)
        if len(self.paths) >= MOST_WATCHED and path not in self.numbers:
            raise TooMuch(MORE)
        number = self.checked(
            self.library.inotify_add_watch(self.descriptor, b"/proc/self/fd/%d" % folder, ctypes.c_uint32(WATCHED))
        )
        self.forget(self.numbers.get(path, number), number)
        old = self.paths.get(number)
        if old is not None:
            self.numbers.pop(old, None)
        self.paths[number], self.numbers[path] = path, number
        below = []
        if not self.recursive:
            return below
        with os.scandir(folder) as entries:
            for entry in entries:
                name = os.fsencode(entry.name)
                if found is not None and len(found) <= MOST_FOUND:
                    found.append((join(path, name), entry.is_file(follow_symlinks=False)))
                if entry.is_dir(follow_symlinks=False):
                    below.append(name)
                if len(below) > MOST_WATCHED:
                    raise TooMuch(MORE)
        return below

    def forget(self, number, unless=None):
        """Watches a directory no more, unless it is this one."""
        if number == unless:
            return
        path = self.paths.pop(number, None)
        if path is not None and self.numbers.get(path) == number:
            del self.numbers[path]
        self.library.inotify_rm_watch(self.descriptor, number)

    def forget_below(self, path):
        below = path + b"/"
        for number, each in list(self.paths.items()):
            if each == path or each.startswith(below):
                self.forget(number)

    def open(self, path):
        """Opens a directory below the top, without following links."""
        here = self.open_top()
        if identity(here) != self.identity:
            os.close(here)
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        for name in path.split(b"/") if path else ():
            try:
                below = os.open(name, FOLDER, dir_fd=here)
            finally:
                os.close(here)
            here = below
        return here

    def read(self):
        """Returns the events that wait, as types and paths. `overflow` means that others are missing. `over` is set once the directory
        is no longer where it was: nothing more will come."""
        try:
            data = os.read(self.descriptor, 65_536)
        except BlockingIOError:
            return []
        events, at = [], 0
        while at < len(data) and not self.over:
            number, mask, _, length = struct.unpack_from("iIII", data, at)
            name = data[at + 16 : at + 16 + length].rstrip(b"\0")
            at += 16 + length
            self.take(number, mask, name, events)
        return events

    def take(self, number, mask, name, events):
        if mask & IN_Q_OVERFLOW:
            self.overflow(events)
            # Its end may be among what is missing.
            events.extend(self.check())
            if not self.over:
                self.find_again(events)
            return
        parent = self.paths.get(number)
        if parent is None:
            return
        if parent == b"" and mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED):
            self.over = True
            events.append(("rename" if mask & IN_MOVE_SELF else "remove", b""))
            return
        if mask & IN_IGNORED:
            self.paths.pop(number)
            if self.numbers.get(parent) == number:
                del self.numbers[parent]
            return
        if not name:
            return
        path = join(parent, name)
        events.extend((kind, path) for bits, kind in TYPES if mask & bits)
        if not self.recursive or not mask & IN_ISDIR:
            return
        if mask & IN_MOVED_FROM:
            self.forget_below(path)
        elif mask & (IN_CREATE | IN_MOVED_TO):
            found = []
            self.find(path, found, events)
            if len(found) > MOST_FOUND:
                self.overflow(events)
            for each, is_file in found:
                # What was made before the directory was watched.
                events.append(("create", each))
                if is_file:
                    events.append(("write", each))

    def check(self):
        """Returns the last event if the directory is no longer where it was. The kernel says nothing of that if a directory above was
        moved, or if a program still has it open."""
        try:
            os.close(self.open(b""))
        except OSError as error:
            if error.errno in GONE or error.errno == errno.ESTALE:
                self.over = True
                return [("remove", b"")]
        return []

    def find_again(self, events):
        """Watches what is there now, and nothing else: new directories, and moves of others, may be among what is missing."""
        known, top = self.paths, self.numbers[b""]
        self.paths, self.numbers = {top: b""}, {b"": top}
        self.find(b"", None, events)
        for number in known:
            if number not in self.paths:
                self.library.inotify_rm_watch(self.descriptor, number)

    def find(self, path, found, events):
        if not self.recursive:
            return
        try:
            self.add(path, self.open(path), found)
        except OSError as error:
            if error.errno not in GONE:
                # It is too large, may not be looked at, or the top is elsewhere.
                self.overflow(events)

    def overflow(self, events):
        if not events or events[-1][0] != "overflow":
            events.append(("overflow", b""))

    def close(self):
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1
