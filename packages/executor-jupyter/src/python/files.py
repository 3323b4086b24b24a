"""Reads and writes the workspace. Python 3.8 or later, standard library only."""

import base64
import errno
import os
import shutil
import stat
import tempfile

import _fenced_mounts as mounts

home = workspace = None
listings = {}
# The device and inode numbers of each partial file: code may put another one in its place.
uploads = {}
page_entries, page_characters = 5000, 1 << 20


class Outside(Exception):
    pass


class NotAFile(Exception):
    pass


class InTheWay(Exception):
    pass


def inside(path, follow=True):
    root = os.path.realpath(workspace)
    target = os.path.join(root, path)
    if not follow and path != ".":
        target = os.path.join(os.path.realpath(os.path.dirname(target)), os.path.basename(target))
    else:
        target = os.path.realpath(target)
    if target != root and os.path.commonpath([root, target]) != root:
        raise Outside()
    return target


def list_files(listing, directory, recursive, directories):
    """One page of a listing. `end`: it is the last page."""
    walk = listings.pop(listing, None) or walk_files(directory, recursive, directories)
    files, characters = [], 0
    for path, size in walk:
        files.append({"path": path, "size": size or 0, "directory": size is None})
        characters += len(path)
        if len(files) >= page_entries or characters >= page_characters:
            listings[listing] = walk
            return {"files": files, "end": False}
    return {"files": files, "end": True}


def drop_listing(listing):
    listings.pop(listing, None)


def walk_files(directory, recursive, directories):
    """Yields the paths and sizes of files, and no size for directories."""
    top = inside(directory)
    if not os.path.isdir(top):
        raise FileNotFoundError(directory)
    waiting = [top]
    while waiting:
        at = waiting.pop()
        try:
            entries = os.scandir(at)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise
            continue
        with entries:
            for entry in entries:
                try:
                    info = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                below = os.path.normpath(os.path.join(directory, os.path.relpath(entry.path, top))).replace(os.sep, "/")
                if stat.S_ISDIR(info.st_mode):
                    if recursive:
                        waiting.append(entry.path)
                    if directories:
                        yield below, None
                elif stat.S_ISREG(info.st_mode):
                    yield below, info.st_size


def stat_file(path, follow):
    info = os.lstat(inside(path, follow=False))
    target = ""
    if stat.S_ISLNK(info.st_mode):
        target = os.readlink(inside(path, follow=False))
    if follow or not target:
        info = os.stat(inside(path))
    found = {"size": info.st_size, "modified": info.st_mtime, "mode": stat.S_IMODE(info.st_mode), "target": target}
    if stat.S_ISDIR(info.st_mode):
        return dict(found, type="directory", size=0)
    if stat.S_ISLNK(info.st_mode):
        return dict(found, type="link")
    if not stat.S_ISREG(info.st_mode):
        raise NotAFile()
    return dict(found, type="file")


def read_file(path, offset, length):
    # Non-blocking, since opening a named pipe would block the kernel forever.
    flags = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(inside(path), os.O_RDONLY | flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotAFile()
        file.seek(offset)
        data = file.read(length)
    return {"data": base64.b64encode(data).decode(), "end": len(data) < length}


def write_file(upload, path, data, offset, last, mode):
    """Stores one piece of a file. The file appears, complete, with its last piece."""
    target = replaceable(path)
    part = os.path.join(home, "upload-" + upload)
    with open(part, "ab" if offset else "wb") as file:
        if file.tell() != offset or offset and uploads.get(upload) != identity(os.fstat(file.fileno())):
            raise RuntimeError("a piece of the file is missing")
        uploads[upload] = identity(os.fstat(file.fileno()))
        file.write(base64.b64decode(data))
    if last:
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            move(part, target, uploads[upload], mode)
        finally:
            drop_upload(upload)


def identity(status):
    return status.st_dev, status.st_ino


def drop_upload(upload):
    uploads.pop(upload, None)
    try:
        os.unlink(os.path.join(home, "upload-" + upload))
    except OSError:
        pass


def replaceable(path):
    target = inside(path)
    try:
        if not stat.S_ISREG(os.lstat(target).st_mode):
            raise NotAFile()
    except FileNotFoundError:
        pass
    return target


def move_file(path, to):
    """Never replaces a directory, nor something else by one."""
    source = inside(path, follow=False)
    moved = os.lstat(source)
    os.makedirs(inside(os.path.dirname(to) or "."), exist_ok=True)
    target = inside(to, follow=False)
    same = False
    try:
        replaced = os.lstat(target)
        same = identity(moved) == identity(replaced)
        folders = stat.S_ISDIR(moved.st_mode) or stat.S_ISDIR(replaced.st_mode)
        if folders and not same:
            raise InTheWay()
    except FileNotFoundError:
        pass
    # A directory may ignore case.
    if same and moved.st_nlink > 1 and not folders and source.lower() != target.lower():
        # Two names of one file: renaming one to the other would leave both.
        os.unlink(source)
    else:
        os.replace(source, target)


def make_directory(path):
    os.makedirs(inside(path), exist_ok=True)


def move(part, target, written, mode):
    """Replaces a file, in one step if possible, and keeps the permissions of the old one. Fails if it is not the file that was
    written."""
    beside = os.path.join(os.path.dirname(target), ".fenced-" + os.path.basename(part))
    try:
        if os.path.exists(target):
            shutil.copymode(target, part)
        if mode is not None:
            os.chmod(part, mode)
        try:
            os.replace(part, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            written = copy_to(beside, part, written)
            os.replace(beside, target)
        if identity(os.lstat(target)) != written:
            raise RuntimeError("something replaced the file while it was written")
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        write_into(target, beside if os.path.exists(beside) else part, written)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)


def write_into(target, part, written):
    """Writes to a file that is mounted, so that no other can take its place."""
    flags = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with open(part, "rb") as source, open(os.open(target, os.O_WRONLY | flags), "wb") as file:
        if identity(os.fstat(source.fileno())) != written:
            raise RuntimeError("something replaced the file while it was written")
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotAFile()
        file.truncate()
        shutil.copyfileobj(source, file)
        if stat.S_IMODE(os.fstat(source.fileno()).st_mode) != stat.S_IMODE(os.fstat(file.fileno()).st_mode):
            shutil.copymode(part, target)


def copy_to(beside, part, written):
    """Copies a file to another file system; returns the identity of the copy."""
    with open(part, "rb") as source, open(beside, "xb") as copy:
        if identity(os.fstat(source.fileno())) != written:
            raise RuntimeError("something replaced the file while it was written")
        shutil.copyfileobj(source, copy)
        shutil.copymode(part, beside)
        return identity(os.fstat(copy.fileno()))


def remove_file(path):
    target = inside(path, follow=False)
    if mounts.below(target):
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
    if os.path.isdir(target) and not os.path.islink(target):
        remove_tree(target)
    else:
        os.remove(target)


def remove_tree(top):
    """Removes a directory of any depth: deep subdirectories are moved up before they are emptied."""
    holding = tempfile.mkdtemp(prefix=".fenced-", dir=os.path.dirname(top))
    make_writable(top)
    try:
        os.rename(top, os.path.join(holding, "0"))
        count, left = 1, ["0"]
        while left:
            directory = os.path.join(holding, left.pop())
            make_writable(directory)
            with os.scandir(directory) as scan:
                entries = list(scan)
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    make_writable(entry.path)
                    os.rename(entry.path, os.path.join(holding, str(count)))
                    left.append(str(count))
                    count += 1
                else:
                    os.unlink(entry.path)
            os.rmdir(directory)
    finally:
        # Whatever cannot be removed stays behind, all in one place.
        try:
            os.rmdir(holding)
        except OSError:
            pass


def make_writable(directory):
    try:
        os.chmod(directory, 0o700)
    except OSError:
        pass
