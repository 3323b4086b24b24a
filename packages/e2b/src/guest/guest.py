"""The files of a sandbox for the server of E2B's protocol: reads requests from standard input, and answers them on standard output.

It runs as the user of the sandbox's programs and can do nothing that these cannot do. A frame is two lengths of four bytes, a JSON
object and bytes. Python 3.8 or later, Linux, standard library only.
"""

import errno
import json
import os
import select
import shutil
import signal
import stat
import struct
import sys
import threading
import time

import _fenced_watches as directories

PIECE = 262_144
# Files that are open at the same time, as well as watchers; and entries of one answer.
MOST_OPEN, MOST_ENTRIES = 128, 20_000
# Bytes of an answer's JSON text; the server takes no longer one.
MOST_TEXT = 16_777_216
METADATA = "user.e2b."

home = os.getcwd()
files, watches = {}, {}
handles = iter(range(1, 1 << 62))
writing = threading.Lock()


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


CODES = {
    errno.ENOENT: "not_found",
    errno.ESRCH: "not_found",
    errno.EEXIST: "already_exists",
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.EROFS: "permission_denied",
    errno.ENOSPC: "resource_exhausted",
    errno.EDQUOT: "resource_exhausted",
    errno.EMFILE: "resource_exhausted",
    errno.EINVAL: "invalid_argument",
    errno.EISDIR: "invalid_argument",
    errno.ENOTDIR: "invalid_argument",
    errno.ENAMETOOLONG: "invalid_argument",
    errno.ENXIO: "invalid_argument",
    errno.ELOOP: "failed_precondition",
    errno.ENOSYS: "unimplemented",
}


def send(head, data=b""):
    # Names of files can be any bytes, which Python has as surrogates; clients refuse what is not Unicode.
    text = json.dumps(head, ensure_ascii=False).encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()
    if len(text) > MOST_TEXT:
        raise Refused("resource_exhausted", "the answer is longer than 16 MiB; ask for less of it")
    frame = struct.pack(">II", len(text), len(data)) + text + data
    with writing:
        view = memoryview(frame)
        while view:
            view = view[os.write(1, view) :]


def exactly(size):
    pieces = []
    while size > 0:
        piece = os.read(0, min(size, PIECE))
        if not piece:
            # The server is gone.
            os._exit(0)
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def resolve(path):
    """An absolute path; a relative one starts at the home directory."""
    if "\0" in path:
        raise Refused("invalid_argument", "the path contains a NUL character")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise Refused("invalid_argument", "the path is not valid Unicode") from None
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    elif path.startswith("~"):
        raise Refused("invalid_argument", "only ~ and ~/ stand for a home directory")
    return os.path.normpath(os.path.join(home, path))


def names():
    import grp
    import pwd

    return pwd, grp


def owner_of(info):
    """The names of a file's owner and group. Clients know the sandbox's account as `user`, whatever it is called."""
    pwd, grp = names()
    if info.st_uid == os.getuid() and info.st_gid == os.getgid():
        return "user", "user"
    try:
        owner = pwd.getpwuid(info.st_uid).pw_name
    except KeyError:
        owner = str(info.st_uid)
    try:
        group = grp.getgrgid(info.st_gid).gr_name
    except KeyError:
        group = str(info.st_gid)
    return owner, group


def metadata_of(path):
    found = {}
    try:
        for name in os.listxattr(path):
            if name.startswith(METADATA):
                found[name[len(METADATA) :]] = os.getxattr(path, name).decode(errors="replace")
    except OSError:
        # The file system keeps none.
        pass
    return found


def time_of(info):
    seconds = info.st_mtime_ns // 10**9
    # Code can give a file a time that no calendar has.
    seconds = max(-62_135_596_800, min(seconds, 253_402_300_799))
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + ".%09dZ" % (info.st_mtime_ns % 10**9)


def kind(mode):
    if stat.S_ISREG(mode):
        return "FILE_TYPE_FILE"
    return "FILE_TYPE_DIRECTORY" if stat.S_ISDIR(mode) else "FILE_TYPE_UNSPECIFIED"


def entry_of(path):
    """What a path names. A link has the type and mode of what it leads to."""
    info = os.lstat(path)
    owner, group = owner_of(info)
    entry = {
        "name": os.path.basename(path) or "/",
        "type": kind(info.st_mode),
        "path": path,
        "size": str(info.st_size),
        "mode": stat.S_IMODE(info.st_mode) & 0o777,
        "permissions": stat.filemode(info.st_mode).replace("l", "L", 1)
        if stat.S_ISLNK(info.st_mode)
        else stat.filemode(info.st_mode),
        "owner": owner,
        "group": group,
        "modifiedTime": time_of(info),
    }
    if stat.S_ISLNK(info.st_mode):
        entry["symlinkTarget"] = target = os.path.realpath(path)
        try:
            led = os.stat(target)
            entry["type"], entry["mode"] = kind(led.st_mode), stat.S_IMODE(led.st_mode) & 0o777
        except OSError:
            entry["type"], entry["mode"] = "FILE_TYPE_UNSPECIFIED", 0
    metadata = metadata_of(path)
    if metadata:
        entry["metadata"] = metadata
    return entry


def directory(path):
    if not stat.S_ISDIR(os.stat(path).st_mode):
        raise Refused("invalid_argument", "path is not a directory: " + path)
    return path


def list_entries(root, shown, depth, entries):
    for name in sorted(os.listdir(root)):
        path = os.path.join(root, name)
        try:
            entry = entry_of(path)
            deeper = depth > 1 and stat.S_ISDIR(os.lstat(path).st_mode)
        except FileNotFoundError:
            # It has been removed meanwhile.
            continue
        entry["path"] = os.path.join(shown, name)
        entries.append(entry)
        if len(entries) > MOST_ENTRIES:
            raise Refused(
                "resource_exhausted", "the directory has more than %d entries; list parts of it" % MOST_ENTRIES
            )
        if deeper:
            try:
                list_entries(path, entry["path"], depth - 1, entries)
            except (FileNotFoundError, PermissionError):
                pass


def make_parents(path):
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        os.makedirs(parent, exist_ok=True)


def do_hello(request):
    pwd, _ = names()
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    return {"home": home, "user": user, "bash": shutil.which("bash") is not None}


def do_stat(request):
    return {"entry": entry_of(resolve(request["path"]))}


def do_directory(request):
    """Finds where a program is to start."""
    return {"path": directory(resolve(request["path"]))}


def do_list(request):
    shown = resolve(request["path"])
    root = os.path.realpath(shown)
    os.lstat(root)
    entries = []
    list_entries(directory(root), shown, max(1, min(request["depth"], 1000)), entries)
    return {"entries": entries}


def do_make(request):
    path = resolve(request["path"])
    if os.path.isdir(path):
        raise Refused("already_exists", "directory already exists: " + path)
    if os.path.lexists(path):
        raise Refused("invalid_argument", "path already exists but it is not a directory: " + path)
    os.makedirs(path, exist_ok=True)
    return {"entry": entry_of(path)}


def do_move(request):
    source, destination = resolve(request["source"]), resolve(request["destination"])
    os.lstat(source)
    make_parents(destination)
    try:
        os.rename(source, destination)
    except OSError as error:
        # Home and /tmp are different file systems in many places.
        if error.errno != errno.EXDEV or os.path.isdir(destination):
            raise
        shutil.move(source, destination)
    return {"entry": entry_of(destination)}


def do_remove(request):
    path = resolve(request["path"])
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        pass
    return {}


def regular(path, flags):
    """Opens a file and nothing else: opening a named pipe would wait for its other end."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    try:
        info = os.fstat(descriptor)
        if stat.S_ISDIR(info.st_mode):
            raise Refused("invalid_argument", "path '%s' is a directory" % path)
        if not stat.S_ISREG(info.st_mode):
            raise Refused("invalid_argument", "path '%s' is not a file" % path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, info


def keep(descriptor, path):
    if len(files) >= MOST_OPEN:
        os.close(descriptor)
        raise Refused("resource_exhausted", "too many files are being transferred at the same time")
    handle = next(handles)
    files[handle] = descriptor, path
    return handle


def do_open(request):
    """Opens a file and reads its beginning, if that is wanted. A handle of 0 means that this was all of it."""
    path = resolve(request["path"])
    descriptor, info = regular(path, os.O_RDONLY)
    first, whole = b"", False
    try:
        if request["first"] > 0:
            first = os.read(descriptor, min(request["first"], PIECE))
            # The kernel's own files have a size of 0, whatever they have.
            whole = len(first) == info.st_size
    except BaseException:
        os.close(descriptor)
        raise
    if whole:
        os.close(descriptor)
    handle = 0 if whole else keep(descriptor, path)
    return {"handle": handle, "size": info.st_size, "modified": info.st_mtime, "path": path}, first


def do_read(request):
    return {}, os.read(files[request["handle"]][0], min(request["size"], PIECE))


def do_seek(request):
    os.lseek(files[request["handle"]][0], request["position"], os.SEEK_SET)
    return {}


def do_create(request):
    path = resolve(request["path"])
    if os.path.isdir(path):
        raise Refused("invalid_argument", "path is a directory: " + path)
    make_parents(path)
    descriptor, _ = regular(path, os.O_WRONLY | os.O_CREAT)
    try:
        os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return {"handle": keep(descriptor, path), "path": path}


def do_write(request):
    view = memoryview(request["data"])
    while view:
        view = view[os.write(files[request["handle"]][0], view) :]
    return {}


def do_metadata(request):
    """Replaces all of a file's metadata."""
    descriptor, _ = files[request["handle"]]
    try:
        for name in os.listxattr(descriptor):
            if name.startswith(METADATA):
                os.removexattr(descriptor, name)
        for name, value in request["metadata"].items():
            os.setxattr(descriptor, METADATA + name, value.encode())
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EPERM):
            raise
    return {"metadata": metadata_of(descriptor)}


def do_put(request):
    """Writes a small file in one step."""
    created = do_create(request)
    request["handle"] = created["handle"]
    try:
        do_write(request)
        return {"path": created["path"], "metadata": do_metadata(request)["metadata"]}
    finally:
        do_close(request)


def do_close(request):
    descriptor, _ = files.pop(request["handle"])
    os.close(descriptor)
    return {}


EVENTS = {
    "create": "EVENT_TYPE_CREATE",
    "rename": "EVENT_TYPE_RENAME",
    "chmod": "EVENT_TYPE_CHMOD",
    "write": "EVENT_TYPE_WRITE",
    "remove": "EVENT_TYPE_REMOVE",
}


class Watcher:
    """Watches a directory until it is told to stop."""

    def __init__(self, number, path, recursive, with_entries):
        self.number = number
        self.root = path
        self.with_entries = with_entries
        try:
            # The path may lead through links: clients see all of the sandbox.
            self.watch = directories.Watch(
                lambda: os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), recursive
            )
        except directories.TooMuch as error:
            raise Refused("resource_exhausted", error.strerror) from None
        try:
            self.stopped, self.stop = os.pipe()
        except OSError:
            self.watch.close()
            raise

    def run(self):
        try:
            while not self.watch.over:
                ready, _, _ = select.select([self.watch.descriptor, self.stopped], [], [])
                if self.stopped in ready:
                    return
                for event, path in self.watch.read():
                    if event == "overflow":
                        raise Refused("resource_exhausted", "more has happened than could be watched or sent")
                    if path:
                        self.tell(event, os.fsdecode(path))
        finally:
            watches.pop(self.number, None)
            self.watch.close()
            for descriptor in (self.stopped, self.stop):
                os.close(descriptor)

    def tell(self, event, path):
        said = {"name": path, "type": EVENTS[event]}
        if self.with_entries and event not in ("remove", "rename"):
            try:
                said["entry"] = entry_of(os.path.join(self.root, path))
            except OSError:
                pass
        send({"id": self.number, "event": said})


def do_watch(request):
    path = directory(resolve(request["path"]))
    if len(watches) >= MOST_OPEN:
        raise Refused("resource_exhausted", "too many directories are being watched")
    watch = Watcher(request["id"], path, request["recursive"], request["entries"])
    watches[watch.number] = watch
    send({"id": watch.number, "event": {"started": True}})
    watch.run()
    return {}


def do_unwatch(request):
    watch = watches.pop(request["watch"], None)
    if watch is not None:
        os.write(watch.stop, b"x")
    return {}


def number_in(*paths):
    for path in paths:
        try:
            with open(path) as file:
                return int(file.read().split()[0])
        except (OSError, ValueError, IndexError):
            pass
    return None


def do_usage(request):
    """The use of the machine, or of the control group that the sandbox is."""
    with open("/proc/meminfo") as file:
        memory = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in file if ":" in line}
    limit = number_in("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
    total = min(memory["MemTotal"], limit or memory["MemTotal"])
    used = number_in("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes")
    disk = os.statvfs(home)
    return {
        "cpuCount": len(os.sched_getaffinity(0)),
        "cpuTime": processor_time(),
        "memTotal": total,
        "memUsed": used if used is not None else memory["MemTotal"] - memory["MemAvailable"],
        "memCache": memory.get("Cached", 0),
        "diskTotal": disk.f_blocks * disk.f_frsize,
        "diskUsed": (disk.f_blocks - disk.f_bfree) * disk.f_frsize,
    }


def processor_time():
    """Seconds of processor time since the beginning."""
    try:
        with open("/sys/fs/cgroup/cpu.stat") as file:
            return int(file.readline().split()[1]) / 1e6
    except (OSError, ValueError, IndexError):
        used = number_in("/sys/fs/cgroup/cpuacct/cpuacct.usage")
        if used is not None:
            return used / 1e9
        with open("/proc/stat") as file:
            words = [int(word) for word in file.readline().split()[1:]]
        return (sum(words) - words[3] - words[4]) / os.sysconf("SC_CLK_TCK")


def problem(error):
    if isinstance(error, Refused):
        return {"code": error.code, "message": str(error)}
    if isinstance(error, OSError) and error.errno is not None:
        message = os.strerror(error.errno) + (
            ": " + os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
        )
        return {
            "code": CODES.get(error.errno, "internal"),
            "message": message,
            "errno": errno.errorcode.get(error.errno, ""),
        }
    return {"code": "internal", "message": "%s: %s" % (type(error).__name__, error)}


def answer(request):
    number = request["id"]
    try:
        result = globals()["do_" + request["op"]](request)
        head, data = result if isinstance(result, tuple) else (result, b"")
        send({"id": number, "ok": head}, data)
    except BrokenPipeError:
        os._exit(0)
    except Exception as error:
        send({"id": number, "error": problem(error)})


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    threading.stack_size(262_144)
    while True:
        lengths = struct.unpack(">II", exactly(8))
        request = json.loads(exactly(lengths[0]))
        request["data"] = exactly(lengths[1])
        # Another request must not wait for a file system that does not answer.
        try:
            threading.Thread(target=answer, args=(request,), daemon=True).start()
        except RuntimeError:
            # Code has started as many processes as the sandbox may have.
            refused = Refused(
                "resource_exhausted", "the sandbox has too many processes; try again when some have ended"
            )
            send({"id": request["id"], "error": problem(refused)})


sys.setrecursionlimit(5000)
main()
