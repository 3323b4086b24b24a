"""Handles one request for a workspace file. Python 3.8 or later, standard library only.

Arguments: the workspace; `list`, `stat`, `content`, `put`, `drop` or `remove`; a path in the workspace; further arguments of the
request. On failure, it prints the errno name and its message to standard error. The workspace is hostile, because code may swap
its contents at any time. So paths are first resolved and then opened directory by directory, without following links. Trees are
walked without recursion.
"""

import errno
import os
import stat
import sys

PIECE = 262144
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
root, verb, path, *words = [os.fsencode(word) for word in sys.argv[1:]]


def fail(code):
    raise OSError(code, os.strerror(code))


def resolve():
    """Resolves a path to parts without links. Fails if it leads out of the workspace or does not exist."""
    real = os.path.realpath(root)
    place = os.path.join(real, path)
    found = os.path.realpath(place)
    if found != real and not found.startswith(real + b"/"):
        fail(errno.ELOOP)
    if os.path.islink(found) or (os.path.islink(place) and not os.path.lexists(found)):
        fail(errno.ELOOP)
    return [part for part in found[len(real) :].split(b"/") if part]


def descend(parts, make=False):
    here = os.open(root, FOLDER)
    for part in parts:
        try:
            below = os.open(part, FOLDER, dir_fd=here)
        except FileNotFoundError:
            if not make:
                raise
            try:
                os.mkdir(part, dir_fd=here)
            except FileExistsError:
                pass
            below = os.open(part, FOLDER, dir_fd=here)
        except NotADirectoryError:
            fail(errno.EEXIST if make else errno.ENOTDIR)
        os.close(here)
        here = below
    return here


def look(name, folder):
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def open_found(flags):
    parts = resolve()
    if not parts:
        return os.open(root, FOLDER)
    return os.open(parts[-1], flags | os.O_NOFOLLOW, dir_fd=descend(parts[:-1]))


def kind_of(status):
    if stat.S_ISDIR(status.st_mode):
        return "directory"
    return "file" if stat.S_ISREG(status.st_mode) else fail(errno.ENXIO)


def say_status():
    status = os.fstat(open_found(os.O_PATH))
    print(kind_of(status), status.st_size, (status.st_mtime_ns + 500000) // 1000000)


def send_content():
    # Do not block on a named pipe.
    file = open_found(os.O_RDONLY | os.O_NONBLOCK)
    if kind_of(os.fstat(file)) == "directory":
        fail(errno.EISDIR)
    os.lseek(file, int(words[0]), os.SEEK_SET)
    while True:
        piece = os.read(file, PIECE)
        if not piece:
            return
        write(1, piece)


def write(descriptor, piece):
    view = memoryview(piece)
    while len(view):
        view = view[os.write(descriptor, view) :]


def put():
    """Appends standard input to a partial file. The last piece moves the file to its path if it is complete."""
    part, first, size = words
    top = os.open(root, FOLDER)
    made = os.O_CREAT | os.O_EXCL if first == b"first" else os.O_APPEND
    file = os.open(part, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | made, 0o666, dir_fd=top)
    try:
        for piece in iter(lambda: os.read(0, PIECE), b""):
            write(file, piece)
        if size != b"-":
            if os.fstat(file).st_size != int(size):
                fail(errno.EIO)
            replace(file, part, top)
    except OSError:
        os.unlink(part, dir_fd=top)
        raise


def replace(file, part, top):
    parts = resolve() or fail(errno.EISDIR)
    folder = descend(parts[:-1], make=True)
    try:
        before = look(parts[-1], folder)
        if kind_of(before) == "directory":
            fail(errno.EISDIR)
        os.fchmod(file, stat.S_IMODE(before.st_mode))
    except FileNotFoundError:
        pass
    os.rename(part, parts[-1], src_dir_fd=top, dst_dir_fd=folder)


def drop():
    try:
        os.unlink(path, dir_fd=os.open(root, FOLDER))
    except FileNotFoundError:
        pass


def entries(folder):
    """Returns the names in a directory, each with whether it is a directory itself."""
    with os.scandir(folder) as found:
        return [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in found]


def say_list():
    parts = resolve()
    waiting = [(descend(parts), b"".join(part + b"/" for part in parts))]
    lines = []
    while waiting:
        folder, prefix = waiting.pop()
        for name, is_folder in entries(folder):
            try:
                if is_folder:
                    waiting.append((os.open(name, FOLDER, dir_fd=folder), prefix + name + b"/"))
                    continue
                status = look(name, folder)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    raise
                continue
            if stat.S_ISREG(status.st_mode):
                lines.append(b"%d %s\0" % (status.st_size, prefix + name))
        os.close(folder)
        if len(lines) > 1000:
            write(1, b"".join(lines))
            lines = []
    write(1, b"".join(lines))


def remove():
    parts = path.split(b"/")
    above = os.path.realpath(os.path.join(root, *parts[:-1]))
    real = os.path.realpath(root)
    if above != real and not above.startswith(real + b"/"):
        fail(errno.ELOOP)
    folder = descend([part for part in above[len(real) :].split(b"/") if part])
    if not stat.S_ISDIR(look(parts[-1], folder).st_mode):
        os.unlink(parts[-1], dir_fd=folder)
        return
    remove_tree(parts[-1], folder)


def remove_tree(name, above):
    """Removes a tree bottom-up; each directory stays open until it is empty."""
    stack = [(name, above, os.open(name, FOLDER, dir_fd=above))]
    while stack:
        name, above, folder = stack[-1]
        below = None
        for each, is_folder in entries(folder):
            if is_folder:
                below = each
                break
            os.unlink(each, dir_fd=folder)
        if below is None:
            os.close(folder)
            os.rmdir(name, dir_fd=above)
            stack.pop()
        else:
            stack.append((below, folder, os.open(below, FOLDER, dir_fd=folder)))


def raise_limit():
    """Raises the limit on open files, since a removal keeps one directory open for each level of the tree."""
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (ImportError, ValueError, OSError):
        pass


verbs = {
    b"list": say_list,
    b"stat": say_status,
    b"content": send_content,
    b"put": put,
    b"drop": drop,
    b"remove": remove,
}

try:
    raise_limit()
    verbs[verb]()
except OSError as error:
    sys.stderr.write("%s %s" % (errno.errorcode.get(error.errno, "EIO"), error.strerror))
    sys.exit(1)
