"""Handles one request for workspace files. Python 3.8 or later, standard library only.

Arguments: the workspace; `list`, `stat`, `content`, `contents`, `put`, `move`, `mkdir` or `remove`; a path in the workspace; further arguments of the
request. On failure, it prints the errno name, the number of files that it has finished, and the message to standard error. The
workspace is hostile, because code may swap its contents at any time. So paths are first resolved and then opened directory by
directory, without following links. Trees are walked without recursion.
"""

import errno
import os
import stat
import sys

import _fenced_mounts as mounts

PIECE = 262144
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
# In place of a piece's length.
GONE, REFUSED = b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe"
root, verb, path, *words = [os.fsencode(word) for word in sys.argv[1:]]
finished = 0


def fail(code):
    raise OSError(code, os.strerror(code))


def open_root():
    try:
        return os.open(root, FOLDER)
    except OSError:
        # Code has removed it, or put a link in its place.
        fail(errno.ESTALE)


def resolve(path):
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
    here = open_root()
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


def open_found(path, flags):
    parts = resolve(path)
    if not parts:
        return open_root()
    folder = descend(parts[:-1])
    try:
        return os.open(parts[-1], flags | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)


def kind_of(status):
    if stat.S_ISDIR(status.st_mode):
        return "directory"
    return "file" if stat.S_ISREG(status.st_mode) else fail(errno.ENXIO)


def open_above(path):
    """Opens the directory in which a path is, which may be the path of a link itself; returns it, the name there, and its path."""
    parts = path.split(b"/")
    above = os.path.realpath(os.path.join(root, *parts[:-1]))
    real = os.path.realpath(root)
    if above != real and not above.startswith(real + b"/"):
        fail(errno.ELOOP)
    return descend([part for part in above[len(real) :].split(b"/") if part]), parts[-1], above


def say_status():
    folder, name, _ = open_above(path)
    status, target, kind = look(name, folder), b"", "link"
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(name, dir_fd=folder)
    if not target or words[0]:
        status = os.fstat(open_found(path, os.O_PATH))
        kind = kind_of(status)
    modified = (status.st_mtime_ns + 500000) // 1000000
    facts = kind.encode(), status.st_size, modified, stat.S_IMODE(status.st_mode) & 0o777, target
    write(1, b"%s %d %d %o %s\0" % facts)


def open_file(path):
    # Do not block on a named pipe.
    file = open_found(path, os.O_RDONLY | os.O_NONBLOCK)
    if kind_of(os.fstat(file)) == "directory":
        fail(errno.EISDIR)
    return file


def send_content():
    file = open_file(path)
    os.lseek(file, int(words[0]), os.SEEK_SET)
    for piece in iter(lambda: os.read(file, PIECE), b""):
        write(1, piece)


def send_contents():
    """Sends the files that standard input names, each up to the size that is said there: pieces after their lengths, the last one
    empty. A file that is gone or cannot be read is only a mark."""
    with open(0, "rb") as names:
        wanted = names.read().split(b"\0")[:-1]
    for size, name in (each.split(b" ", 1) for each in wanted):
        try:
            file = open_file(name)
        except OSError as error:
            write(1, GONE if error.errno in (errno.ENOENT, errno.ENOTDIR) else REFUSED)
            continue
        left = int(size)
        while left > 0:
            piece = os.read(file, min(left, PIECE))
            if not piece:
                break
            left -= len(piece)
            write(1, len(piece).to_bytes(4, "big") + piece)
        write(1, bytes(4))
        os.close(file)


def write(descriptor, piece):
    view = memoryview(piece)
    while len(view):
        view = view[os.write(descriptor, view) :]


def receive():
    """Takes a piece after its length from standard input. Fails if the input breaks off."""
    return take(int.from_bytes(take(4), "big"))


def take(length):
    taken = bytearray()
    while len(taken) < length:
        piece = os.read(0, length - len(taken))
        taken += piece or fail(errno.EIO)
    return bytes(taken)


def put():
    """Writes the files that arrive on standard input: for each, its path, then its pieces, the last one empty; at the end, an empty
    path. Each is a partial file at the top, and moves to its path once it is complete."""
    global finished
    top = open_root()
    for target in iter(receive, b""):
        file = make(path, top)
        try:
            for piece in iter(receive, b""):
                write(file, piece)
            replace(file, target, top)
        except OSError:
            drop(path, top)
            raise
        os.close(file)
        finished += 1


def make(name, folder):
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=folder)


def drop(name, folder):
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        pass


def replace(file, target, top):
    parts = resolve(target) or fail(errno.EISDIR)
    folder = descend(parts[:-1], make=True)
    try:
        before = look(parts[-1], folder)
        if kind_of(before) == "directory":
            fail(errno.EISDIR)
        os.fchmod(file, stat.S_IMODE(before.st_mode))
    except FileNotFoundError:
        pass
    if words:
        os.fchmod(file, int(words[0], 8))
    try:
        move(file, parts[-1], top, folder)
    except OSError as error:
        # Something is mounted: a directory above the file, or the file itself, whose place no other can take.
        if error.errno == errno.EXDEV:
            copy_beside(file, parts[-1], folder)
        elif error.errno == errno.EBUSY:
            copy_into(file, parts[-1], folder)
        else:
            raise
        os.unlink(path, dir_fd=top)
    os.close(folder)


def move(file, name, folder, target):
    os.rename(path, name, src_dir_fd=folder, dst_dir_fd=target)
    # Code may have put something else in place of the partial file.
    if not os.path.samestat(os.fstat(file), look(name, target)):
        fail(errno.ESTALE)


def copy_beside(file, name, folder):
    beside = make(path, folder)
    try:
        copy(file, beside)
        os.fchmod(beside, stat.S_IMODE(os.fstat(file).st_mode))
        move(beside, name, folder, folder)
    except OSError as error:
        drop(path, folder)
        if error.errno != errno.EBUSY:
            raise
        copy_into(file, name, folder)
    finally:
        os.close(beside)


def copy_into(file, name, folder):
    target = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    before, mode = os.fstat(target), stat.S_IMODE(os.fstat(file).st_mode)
    kind_of(before)
    if stat.S_IMODE(before.st_mode) != mode:
        os.fchmod(target, mode)
    os.ftruncate(target, 0)
    copy(file, target)
    os.close(target)


def copy(source, target):
    os.lseek(source, 0, os.SEEK_SET)
    for piece in iter(lambda: os.read(source, PIECE), b""):
        write(target, piece)


def entries(folder):
    """Returns the names in a directory, each with whether it is a directory itself."""
    with os.scandir(folder) as found:
        return [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in found]


def say_list():
    """Says each file's size, a state that differs after each change of the file, and the path. Says only a mark and the path of what
    exists but cannot be looked at, and that may be a directory: what is in it has not been removed. Directories have a mark of their
    own, and are said if that is wanted."""
    deep, with_folders = words[0] == b"all", words[1] == b"directories"
    parts = resolve(path)
    waiting = [(descend(parts), b"".join(part + b"/" for part in parts))]
    lines = []
    while waiting:
        folder, prefix = waiting.pop()
        for name, is_folder in entries(folder):
            try:
                if is_folder:
                    if with_folders:
                        lines.append(b"d %s\0" % (prefix + name))
                    if deep:
                        waiting.append((os.open(name, FOLDER, dir_fd=folder), prefix + name + b"/"))
                    continue
                status = look(name, folder)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    raise
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    lines.append(b"? %s\0" % (prefix + name))
                continue
            if stat.S_ISREG(status.st_mode):
                # Code cannot set the time of the last change.
                state = status.st_size, status.st_ino, status.st_ctime_ns
                lines.append(b"%d %x-%x %s\0" % (*state, prefix + name))
        os.close(folder)
        if len(lines) > 1000:
            write(1, b"".join(lines))
            lines = []
    write(1, b"".join(lines))


def make_directory():
    os.close(descend(resolve(path), make=True))


def move_entry():
    """Never replaces a directory, nor something else by one."""
    global finished
    source, name, _ = open_above(path)
    moved = look(name, source)
    finished = 1
    above, _, new = words[0].rpartition(b"/")
    target = descend(resolve(above), make=True)
    same = False
    try:
        replaced = look(new, target)
        same = os.path.samestat(moved, replaced)
        folders = stat.S_ISDIR(moved.st_mode) or stat.S_ISDIR(replaced.st_mode)
        if folders and not same:
            fail(errno.ENOTEMPTY)
    except FileNotFoundError:
        pass
    # A directory may ignore case.
    here = os.fsdecode(name).lower() == os.fsdecode(new).lower() and os.path.samestat(
        os.fstat(source), os.fstat(target)
    )
    if same and moved.st_nlink > 1 and not folders and not here:
        # Two names of one file: renaming one to the other would leave both.
        os.unlink(name, dir_fd=source)
    else:
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)


def remove():
    folder, name, above = open_above(path)
    if mounts.below(os.path.join(above, name)):
        fail(errno.EBUSY)
    if not stat.S_ISDIR(look(name, folder).st_mode):
        os.unlink(name, dir_fd=folder)
        return
    remove_tree(name, folder)


def remove_tree(name, above):
    """Removes a tree bottom-up; each directory stays open until it is empty. Says something for each directory and after many
    entries, so that the host knows that it goes on."""
    stack = [(name, above, os.open(name, FOLDER, dir_fd=above), [])]
    steps = 0
    while stack:
        name, above, folder, left = stack[-1]
        # A scan takes as long as the directory is large, so scan again only once all entries are used up.
        if not left:
            left.extend(entries(folder))
        if not left:
            os.close(folder)
            os.rmdir(name, dir_fd=above)
            stack.pop()
            write(1, b".")
            continue
        each, is_folder = left.pop()
        try:
            if is_folder:
                stack.append((each, folder, os.open(each, FOLDER, dir_fd=folder), []))
            else:
                os.unlink(each, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            # Code has changed it meanwhile; the next scan tells what is there.
            pass
        steps += 1
        if steps % 1000 == 0:
            write(1, b".")


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
    b"contents": send_contents,
    b"put": put,
    b"move": move_entry,
    b"mkdir": make_directory,
    b"remove": remove,
}


def answer(verbs):
    try:
        raise_limit()
        verbs[verb]()
    except OSError as error:
        sys.stderr.write("%s %d %s" % (errno.errorcode.get(error.errno, "EIO"), finished, error.strerror))
        sys.exit(1)
