"""Measures the disk space of the work directory while hostile code changes it, without keeping the supervisor from its other work.
Python 3.8 or later, Linux, standard library only.

Counted are the blocks of every file and directory, and of deleted files that processes hold open or mapped. Code may try to hide
something: directories that cannot be read are made readable while they are counted, and if something was moved meanwhile, a
second count follows in which all processes are stopped, at most for a twentieth of the time. If the work directory is a file system of
its own, its count is used, too.
"""

import os
import stat
import time

import _fenced_blocks as blocks
import _fenced_processes as processes
from _fenced_channel import channel
from _fenced_supervisor import ALONE
from _fenced_wire import MEASURED

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
# Seconds of measuring before other work goes on, and for one count, since code can keep adding to the tree.
STEP, LONGEST = 0.005, 20
# An entry without content uses space, too, and takes time to count.
LEAST = 512
# The kernel's clock for files advances in steps.
TICK = 20000000
# Seconds between two counts in which all processes are stopped, and how often at least a count's time must pass between them.
REST, SHARE = 1, 20

# Numbers of requests, limits, and functions that take the answers, or `None` for the host.
waiting = []
# The count that goes on, a generator, and whether it is for the host.
current = None
for_host = False
next_exact = 0
# Bytes that the file system uses for itself, if it is that of the work directory alone.
overhead = None


def ask(number, most, tell=None):
    waiting.append((number, most, tell))


def forget():
    """Drops what a host has asked that is gone."""
    global current
    waiting[:] = [each for each in waiting if each[2] is not None]
    if current is not None and for_host:
        current.close()
        current = None


def step():
    """Goes on for a moment; returns whether there is more to count."""
    global current, for_host
    if current is None and waiting:
        for_host = waiting[0][2] is None
        current = measure(*waiting.pop(0))
    until = time.monotonic() + STEP
    while current is not None and time.monotonic() < until:
        if next(current, None) is None:
            current = None
    return current is not None or bool(waiting)


def measure(number, most, tell):
    global next_exact, overhead
    found = Count(most)
    yield from found.run()
    began = time.monotonic()
    if (
        found.changed
        and not found.full
        and began >= next_exact
        and not any(each.killing for each in blocks.blocks.values())
    ):
        frozen = freeze()
        try:
            found = Count(most)
            yield from found.run()
        finally:
            thaw(frozen)
        next_exact = time.monotonic() + max(REST, SHARE * (time.monotonic() - began))
    used = used_by_file_system()
    if used is not None:
        if not found.full and not found.changed:
            overhead = min(used - found.bytes, used if overhead is None else overhead)
        found.bytes = max(found.bytes, used - (used if overhead is None else overhead))
    if tell is None:
        channel.send(MEASURED, number, b"%d" % found.bytes)
    else:
        tell(found.bytes)


class Count:
    def __init__(self, most):
        self.most = most
        self.bytes = 0
        # Whether the tree was changed meanwhile, so that something may have been missed.
        self.changed = False
        self.until = time.monotonic() + LONGEST
        self.since = time.time_ns() - TICK
        # Files that have been counted and may be found again.
        self.seen = set()

    @property
    def full(self):
        return self.bytes > self.most or time.monotonic() > self.until

    def run(self):
        undo = []
        try:
            yield from self.walk(undo)
        except OSError:
            # Code has removed the directory, or put something else in its place.
            self.changed = True
        finally:
            while undo:
                restore(undo.pop())
        yield from self.held()

    def walk(self, undo):
        """Goes back by `..`, so that a tree of any depth needs few descriptors."""
        here = os.open(blocks.workspace, FOLDER)
        way = []
        try:
            left, state = [], look(here)
            yield from self.enter(here, left)
            while True:
                if self.full:
                    left.clear()
                if left:
                    depth = len(undo)
                    try:
                        below = open_folder(left.pop(), here, undo)
                    except OSError:
                        self.changed = True
                        continue
                    way.append((state, left, depth))
                    os.close(here)
                    here, left, state = below, [], look(below)
                    yield from self.enter(here, left)
                    continue
                if look(here).st_ctime_ns != state.st_ctime_ns:
                    self.changed = True
                if not way:
                    return
                above = os.open("..", FOLDER, dir_fd=here)
                os.close(here)
                here = above
                state, left, depth = way.pop()
                while len(undo) > depth:
                    restore(undo.pop())
                if not os.path.samestat(look(here), state):
                    self.changed = True
                    return
        finally:
            os.close(here)

    def enter(self, folder, left):
        self.changed = self.changed or look(folder).st_ctime_ns >= self.since
        steps = 0
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    self.changed = True
                    continue
                if stat.S_ISDIR(status.st_mode):
                    left.append(entry.name)
                self.add(status, status.st_nlink > 1)
                steps += 1
                if steps % 200 == 0:
                    if self.full:
                        return
                    yield True
        yield True

    def add(self, status, again):
        """`again`: it may be found a second time."""
        space = max(LEAST, status.st_blocks * 512)
        if again:
            key = status.st_dev, status.st_ino
            if key in self.seen:
                space = LEAST
            self.seen.add(key)
        self.bytes += space

    def held(self):
        """Counts deleted files that processes have opened or mapped."""
        prefix, deleted = os.fsencode(blocks.workspace).rstrip(b"/") + b"/", b" (deleted)"
        for pid in others():
            place = b"/proc/%d/" % pid
            try:
                descriptors = os.listdir(place + b"fd")
            except OSError:
                continue
            for index, descriptor in enumerate(descriptors):
                if index % 200 == 0:
                    if self.full:
                        return
                    yield True
                try:
                    file = place + b"fd/" + descriptor
                    target = os.readlink(file)
                    if target.startswith(prefix) and target.endswith(deleted):
                        status = os.stat(file)
                        if status.st_nlink == 0 and (status.st_dev, status.st_ino) not in self.seen:
                            self.add(status, True)
                except OSError:
                    pass
            self.add_mapped(place, prefix, deleted)
            yield True

    def add_mapped(self, place, prefix, deleted):
        """The kernel tells nobody else how large such a file is, so what is mapped counts."""
        found = {}
        try:
            with open(place + b"maps", "rb") as lines:
                for line in lines:
                    if not line.endswith(deleted + b"\n"):
                        continue
                    addresses, _, offset, device, inode, name = line.split(None, 5)
                    if name.startswith(prefix):
                        start, end = [int(each, 16) for each in addresses.split(b"-")]
                        major, minor = [int(each, 16) for each in device.split(b":")]
                        key = os.makedev(major, minor), int(inode)
                        found[key] = max(found.get(key, 0), int(offset, 16) + end - start)
        except (OSError, ValueError):
            pass
        for key, size in found.items():
            if key not in self.seen:
                self.seen.add(key)
                self.bytes += size


def look(descriptor):
    return os.fstat(descriptor)


def open_folder(name, folder, undo):
    """Opens a directory that its owner may have made unreadable; what this changes is noted in `undo`."""
    try:
        below = os.open(name, FOLDER, dir_fd=folder)
        if look(below).st_mode & 0o100 or os.geteuid() == 0:
            return below
        os.close(below)
    except PermissionError:
        pass
    handle = os.open(name, os.O_PATH | FOLDER, dir_fd=folder)
    try:
        mode = stat.S_IMODE(look(handle).st_mode)
        os.chmod("/proc/self/fd/%d" % handle, mode | 0o500)
        undo.append((os.dup(handle), mode))
        return os.open("/proc/self/fd/%d" % handle, os.O_RDONLY | os.O_DIRECTORY)
    finally:
        os.close(handle)


def restore(change):
    handle, mode = change
    try:
        # Not if code has set another one meanwhile.
        if stat.S_IMODE(look(handle).st_mode) == mode | 0o500:
            os.chmod("/proc/self/fd/%d" % handle, mode)
    except OSError:
        pass
    os.close(handle)


def others():
    """Everything that may run code of blocks."""
    found = set(processes.processes()) if ALONE else processes.below([processes.SELF])
    return found - {1, processes.SELF} - blocks.waiting


def freeze():
    """Stops all processes that are not stopped; returns them."""
    frozen = set()
    for _ in range(20):
        fresh = {pid for pid in others() - frozen if not is_stopped(pid)}
        if not fresh:
            break
        processes.stop(fresh)
        frozen |= fresh
    return frozen


def is_stopped(pid):
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t", b"Z")
    except OSError:
        return True


def thaw(frozen):
    for block in blocks.blocks.values():
        # These have to stay stopped until they are killed.
        frozen -= block.stopped if block.session is None else block.session.stopped
    processes.send_signal(frozen, processes.signal.SIGCONT)


def used_by_file_system():
    """Returns how many bytes of its file system are in use, if that is mounted for the work directory alone."""
    place = os.fsencode(blocks.workspace)
    try:
        with open("/proc/self/mountinfo", "rb") as lines:
            fields = [line.split(b" ", 5)[3:5] for line in lines]
        if [b"/", place] not in fields:
            return None
        status = os.statvfs(place)
        return (status.f_blocks - status.f_bfree) * status.f_frsize
    except OSError:
        return None
