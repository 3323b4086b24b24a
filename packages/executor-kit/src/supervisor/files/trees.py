"""Lists, reads and creates whole trees of workspace files, for checkpoints. Python 3.8 or later, standard library only.

Arguments and failures are those of `files.py`; the verbs are `tree`, `parts` and `create`. The path is a name at the top of the workspace
for what is not complete yet. No path is resolved: whatever is reached through a link is not part of the tree.
"""

import errno
import hashlib
import os
import stat
import time

import _fenced_mounts as mounts
from _fenced_files import (
    FOLDER,
    GONE,
    REFUSED,
    answer,
    descend,
    entries,
    look,
    open_root,
    path,
    receive,
    remove_tree,
    root,
    take,
    write,
)

PART = 1 << 20
# In place of a part's length: it is the one that the host knows, or nothing but zeros.
SAME = b"\xff\xff\xff\xfd"
# A later change may get the same time as one that is younger: clocks of file systems have ticks, in nanoseconds.
TICK, COARSE_TICK = 100_000_000, 2_100_000_000
ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
IMPOSSIBLE = (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL, errno.EPERM, errno.ENOTSUP)
LETTERS = {stat.S_IFREG: b"f", stat.S_IFDIR: b"d", stat.S_IFLNK: b"l"}


def say_tree():
    """Says of each entry its type, permissions, times in nanoseconds, size, state and path; of a link also its target. A state that the next
    change may not change begins with the milliseconds until it does. One directory of each level is open."""
    stack = [[open_root(), b"", None]]
    while stack:
        folder, prefix, left = stack[-1]
        if left is None:
            left = stack[-1][2] = say_entries(folder, prefix)
        if not left:
            os.close(folder)
            stack.pop()
            continue
        name = left.pop()
        try:
            stack.append([os.open(name, FOLDER, dir_fd=folder), prefix + name + b"/", None])
        except OSError as error:
            say_unknown(error, prefix + name)


def say_entries(folder, prefix):
    """Says what is in a directory; returns the names of its directories."""
    lines, folders = [], []
    for name, _ in entries(folder):
        try:
            status = look(name, folder)
            letter = LETTERS.get(stat.S_IFMT(status.st_mode), b"o")
            if letter == b"d":
                folders.append(name)
            facts = (
                letter,
                status.st_mode & 0o7777,
                status.st_mtime_ns,
                status.st_size,
                state_and_age(status, time.time_ns()),
            )
            target = os.readlink(name, dir_fd=folder) + b"\0" if letter == b"l" else b""
            lines.append(b"%s %o %d %d %s %s\0%s" % (*facts, prefix + name, target))
        except OSError as error:
            say_unknown(error, prefix + name)
        if len(lines) > 1000:
            write(1, b"".join(lines))
            lines = []
    write(1, b"".join(lines))
    return folders


def say_unknown(error, name):
    if error.errno in (errno.EMFILE, errno.ENFILE):
        raise error
    if error.errno not in ABSENT:
        write(1, b"? 0 0 0 - %s\0" % name)


def state_of(status):
    # Code cannot set the time of the last change.
    return b"%x-%x-%x" % (status.st_size, status.st_ino, status.st_ctime_ns)


def settles_in(status, now):
    """Nanoseconds until any change gets another time; None if it does already."""
    tick = COARSE_TICK if status.st_ctime_ns % 1_000_000_000 == 0 else TICK
    return None if status.st_ctime_ns < now - tick else tick


def settled(status, now):
    return state_of(status) if settles_in(status, now) is None else b"-"


def state_and_age(status, now):
    tick = settles_in(status, now)
    return state_of(status) if tick is None else b"%d~%s" % (tick // 1_000_000, state_of(status))


class Folders:
    """Directories below one; the last one stays open."""

    def __init__(self, top, make=False):
        self.top, self.make = top, make
        self.path, self.folder = b"", top

    def open(self, path):
        if path == self.path:
            return self.folder
        self.close()
        here = self.top
        for part in path.split(b"/") if path else []:
            try:
                below = self.child(part, here)
            finally:
                if here != self.top:
                    os.close(here)
            here = below
        self.path, self.folder = path, here
        return here

    def child(self, name, above):
        try:
            return os.open(name, FOLDER, dir_fd=above)
        except FileNotFoundError:
            if not self.make:
                raise
        os.mkdir(name, 0o700, dir_fd=above)
        return os.open(name, FOLDER, dir_fd=above)

    def close(self):
        if self.folder != self.top:
            os.close(self.folder)
        self.path, self.folder = b"", self.top


def say_parts():
    """Sends the files that standard input names, each with its size and the hashes of the parts that the host has."""
    folders = Folders(open_root())
    for request in iter(receive, b""):
        head, name = request.split(b"\0", 1)
        size, *known = head.split(b" ")
        above, _, last = name.rpartition(b"/")
        try:
            # Do not block on a named pipe.
            file = os.open(last, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=folders.open(above))
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise
            write(1, REFUSED if error.errno in (errno.EACCES, errno.EPERM) else GONE)
            continue
        try:
            if stat.S_ISREG(os.fstat(file).st_mode):
                send_parts(file, int(size), known)
            else:
                write(1, GONE)
        finally:
            os.close(file)


def send_parts(file, size, known):
    """Sends parts after their lengths, an empty one, and how that ended: whether the file changed meanwhile, and its state."""
    now = time.time_ns()
    before = os.fstat(file)
    left = min(size, before.st_size)
    index = 0
    while left > 0:
        part = read_part(file, min(left, PART))
        if not part:
            break
        if index < len(known) and hashlib.sha256(part).hexdigest().encode() == known[index]:
            write(1, SAME)
        else:
            write(1, len(part).to_bytes(4, "big") + part)
        index += 1
        left -= len(part)
        if len(part) < PART:
            break
    after = os.fstat(file)
    changed = left > 0 or after.st_size > size or state_of(before) != state_of(after)
    end = b"%d %s %d" % (changed, b"-" if changed else settled(after, now), after.st_size)
    write(1, bytes(4) + len(end).to_bytes(4, "big") + end)


def read_part(file, length):
    pieces = []
    while length > 0:
        piece = os.read(file, length)
        if not piece:
            break
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)


def create():
    """Creates what standard input describes beside what is there, and moves it into place when the description is complete."""
    top = open_root()
    os.mkdir(path, 0o700, dir_fd=top)
    try:
        staged = os.open(path, FOLDER, dir_fd=top)
        folders = receive_tree(staged)
        if fits(staged, top, b""):
            move(staged, top)
            finish(top, folders)
    finally:
        # Code may have mounted somebody else's directory there meanwhile.
        if not mounts.below(os.path.join(os.path.realpath(root), path)):
            remove_tree(path, top)


def receive_tree(staged):
    """Returns the directories, whose permissions and times are set at the end."""
    places, made = Folders(staged, make=True), []
    for header in iter(receive, b""):
        facts, name, *target = header.split(b"\0")
        kind, mode, modified, *size = facts.split(b" ")
        if kind == b"d":
            made.append((name, int(mode), int(modified)))
        try:
            receive_entry(kind, places, name, (int(mode), int(modified)), *target, *map(int, size))
        except OSError as error:
            if error.errno not in IMPOSSIBLE:
                raise
            say_lost(error, name)
    places.close()
    return made


def receive_entry(kind, places, name, facts, extra=b""):
    above, _, last = name.rpartition(b"/")
    mode, modified = facts
    if kind == b"d":
        places.open(name)
        return
    if kind == b"l":
        folder = places.open(above)
        os.symlink(extra, last, dir_fd=folder)
        os.utime(last, ns=(modified, modified), dir_fd=folder, follow_symlinks=False)
        return
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        file = os.open(last, flags, 0o600, dir_fd=places.open(above))
    except OSError as error:
        if error.errno in IMPOSSIBLE:
            receive_content(None, 0)
        raise
    try:
        receive_content(file, extra)
        os.fchmod(file, mode)
        os.utime(file, ns=(modified, modified))
    finally:
        os.close(file)


def receive_content(file, size):
    """Takes parts up to an empty one, also if they cannot be written: what follows is another entry. Of what is only zeros, a file gets
    a hole."""
    failure = None
    for length in iter(lambda: take(4), bytes(4)):
        part = None if length == SAME else take(int.from_bytes(length, "big"))
        if file is None or failure:
            continue
        try:
            if part is None:
                os.lseek(file, PART, os.SEEK_CUR)
            else:
                write(file, part)
        except OSError as error:
            if error.errno not in IMPOSSIBLE:
                raise
            failure = error
    if failure:
        raise failure
    if file is not None:
        os.ftruncate(file, size)


def say_lost(error, name):
    write(1, b"! %s %s\0" % (errno.errorcode.get(error.errno, "EIO").encode(), name))


def kind_at(name, folder):
    try:
        return b"directory" if stat.S_ISDIR(look(name, folder).st_mode) else b"file"
    except FileNotFoundError:
        return None


def fits(staged, target, prefix):
    """Says what is in the way, if anything: a directory never replaces something else, nor the other way round."""
    for name, is_folder in entries(staged):
        there = kind_at(name, target)
        if there and (there == b"directory") != is_folder:
            write(1, b"# %s %s\0" % (there, prefix + name))
            return False
        if there and is_folder:
            below, target_below = (os.open(name, FOLDER, dir_fd=folder) for folder in (staged, target))
            try:
                if not fits(below, target_below, prefix + name + b"/"):
                    return False
            finally:
                os.close(below)
                os.close(target_below)
    return True


def move(staged, target):
    """Moves whole directories at once where nothing is there yet."""
    for name, is_folder in entries(staged):
        if not is_folder or kind_at(name, target) is None:
            os.rename(name, name, src_dir_fd=staged, dst_dir_fd=target)
            continue
        below, target_below = (os.open(name, FOLDER, dir_fd=folder) for folder in (staged, target))
        try:
            move(below, target_below)
        finally:
            os.close(below)
            os.close(target_below)


def finish(top, made):
    """Sets what would have changed, or been in the way, while their content was put into them."""
    for name, mode, modified in reversed(made):
        try:
            folder = descend(name.split(b"/"))
            os.fchmod(folder, mode)
            os.utime(folder, ns=(modified, modified))
            os.close(folder)
        except OSError as error:
            say_lost(error, name)


answer({b"tree": say_tree, b"parts": say_parts, b"create": create})
