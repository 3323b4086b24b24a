/** Reading and writing the workspace. Part of the helper. */
export const filesSource: string = String.raw`
# Files.


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


def regular(path, flags):
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotAFile()
    return descriptor


def list_files(directory):
    top = inside(directory)
    if not os.path.isdir(top):
        raise FileNotFoundError(directory)
    root, found = os.path.realpath(workspace), []
    for parent, _, names in os.walk(top):
        for name in names:
            path = os.path.join(parent, name)
            try:
                info = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(info.st_mode):
                below = os.path.normpath(os.path.join(directory, os.path.relpath(path, top)))
                found.append({"path": below.replace(os.sep, "/"), "size": info.st_size})
    return found


def read_file(path, offset, length):
    descriptor = regular(inside(path), os.O_RDONLY)
    with open(descriptor, "rb") as file:
        file.seek(offset)
        data = file.read(length)
    return {"data": base64.b64encode(data).decode(), "end": len(data) < length}


def write_file(path, data, append):
    target = inside(path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    mode = os.O_APPEND if append else os.O_TRUNC
    with open(regular(target, os.O_WRONLY | os.O_CREAT | mode), "wb") as file:
        file.write(base64.b64decode(data))


def remove_file(path):
    target = inside(path, follow=False)
    if os.path.isdir(target) and not os.path.islink(target):
        shutil.rmtree(target)
    else:
        os.remove(target)
`;
