"""Becomes the interpreter that Python blocks are forked from. Python 3.8 or later, standard library only; run by `python -c`.

Arguments: this text, the directory in which blocks run, and the modules to import. Descriptor 3 is a socket to the supervisor,
and 4 the other end of output and errors, for what modules print when they are imported. A request is the block's file and its variables, with four descriptors: input, output, errors, status. It forks a shepherd, and
that one the block, as `blocks.py` does. The block then leaves Python's stack by an exception, and what prints exceptions starts
its file with the function that Python itself starts files with: nothing of this is below the block's first frame.
"""

import os
import sys

# From 3.13, `-c` imports it, from the current directory, too, which is therefore one without files of others.
own = {"linecache"} if list(sys.modules)[-1] == "linecache" else set()
if sys.path[:1] == [""]:
    del sys.path[0]
sys.path_importer_cache.pop(os.getcwd(), None)
known = set(sys.modules)

import _ctypes  # noqa: E402
import _signal  # noqa: E402
import _socket  # noqa: E402

own |= set(sys.modules) - known
LONGEST = 131072
FAILED = 1 << 31
CONTROL, PRINTED = 3, 4
PROGRAM, WORKSPACE = sys.argv[1:3]
PRELOAD = sys.argv[3:]


class Pointer(_ctypes._SimpleCData):
    _type_ = "P"


class Number(_ctypes._SimpleCData):
    _type_ = "i"


class Function(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_PYTHONAPI
    _restype_ = Number


class PointerFunction(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL
    _restype_ = Pointer


library = _ctypes.dlopen(None, 0)
prctl = Function(_ctypes.dlsym(library, "prctl"))
malloc = PointerFunction(_ctypes.dlsym(library, "malloc"))
memmove = PointerFunction(_ctypes.dlsym(library, "memmove"))
sbrk = PointerFunction(_ctypes.dlsym(library, "sbrk"))
fopen = PointerFunction(_ctypes.dlsym(library, "fopen"))


def control_process(option, *words):
    return prctl(Pointer(option), *[Pointer(word) for word in (words + (0, 0, 0, 0))[:4]])


def read_map():
    """Where the kernel has this process's parts: start_code to start_stack, without brk, as in proc(5)."""
    with open("/proc/self/stat", "rb") as file:
        fields = [int(field) for field in file.read().rpartition(b")")[2].split()[1:]]
    code, data, stack = fields[22:24], fields[41:44], fields[24]
    return code + data, stack


def name_process(argv, variables):
    """Has the kernel show these as the arguments and variables of the process; the supervisor, too, finds blocks by theirs."""
    texts = [b"".join(word + b"\0" for word in words) for words in (argv, variables)]
    place = malloc(Pointer(sum(map(len, texts))))
    memmove(Pointer(place), b"".join(texts), Pointer(sum(map(len, texts))))
    middle = place + len(texts[0])
    parts, stack = memory
    numbers = parts + [sbrk(Pointer(0)), stack, place, middle, middle, middle + len(texts[1]), 0]
    words = b"".join(number.to_bytes(8, sys.byteorder) for number in numbers)
    words += (0).to_bytes(4, sys.byteorder) + b"\xff" * 4
    request = malloc(Pointer(len(words)))
    memmove(Pointer(request), words, Pointer(len(words)))
    # PR_SET_MM, PR_SET_MM_MAP
    return control_process(35, 14, request, len(words)) == 0


def look(path):
    try:
        found = os.stat(path)
    except OSError:
        return (path, 0)
    return (path, found.st_ctime_ns, found.st_mtime_ns, found.st_ino, found.st_size)


def watched_places():
    """What an interpreter reads when it starts: a block may have changed it, as `pip install` does."""
    site = sys.modules.get("site")
    directories = site.getsitepackages() + [site.getusersitepackages()] if site else []
    places = directories + [sys.executable, os.path.join(sys.prefix, "pyvenv.cfg")]
    for directory in directories:
        try:
            places += [os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(".pth")]
        except OSError:
            pass
    for directory in sys.path:
        for name in ("sitecustomize", "usercustomize"):
            places += [os.path.join(directory, name), os.path.join(directory, name + ".py")]
    return places


def load(names):
    """Imports what blocks will import; what cannot be imported is left to them."""
    for name in names:
        try:
            __import__(name)
        except BaseException:
            sys.exc_info()
    if names:
        # What was imported is not traced by each block's collector, which would copy all of its memory.
        if "gc" not in sys.modules:
            own.add("gc")
        collector = __import__("gc")
        collector.collect()
        collector.freeze()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


def serve(control, places, seen):
    """Returns in a block's process, with its request. Exits when the interpreter is not what a new one would be."""
    buffer = bytearray(LONGEST)
    while True:
        length, data, _, _ = control.recvmsg_into([buffer], _socket.CMSG_SPACE(16))
        if not length or [look(place) for place in places] != seen:
            os._exit(0)
        given = [int.from_bytes(data[0][2][at : at + 4], sys.byteorder) for at in range(0, 16, 4)]
        try:
            shepherd = os.fork()
        except Warning:
            # Of threads that modules have started, where warnings are errors; the fork has happened.
            shepherd = -1
        except OSError:
            os._exit(0)
        if shepherd == 0:
            control.close()
            herd(given)
            return bytes(buffer[:length]).split(b"\0"), given
        # Not even traces of it are in the memory of later blocks.
        buffer[:length] = bytes(length)
        for each in given:
            os.close(each)


def herd(given):
    """The same as `herd` in blocks.py; returns in the block's process only."""
    status = given[3]
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    # PR_SET_CHILD_SUBREAPER
    control_process(36, 1)
    os.write(status, os.getpid().to_bytes(4, "big"))
    try:
        program = os.fork()
    except OSError as error:
        os.write(status, (FAILED | error.errno).to_bytes(4, "big"))
        os._exit(1)
    if program == 0:
        return
    try:
        for each in given[:3]:
            os.close(each)
        while True:
            pid, ended = os.waitpid(-1, 0)
            if pid == program:
                code = 128 + os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended)
                os.write(status, code.to_bytes(4, "big"))
    finally:
        os._exit(0)


def become(words, given):
    """Makes the process what a new interpreter would be."""
    os.setsid()
    for target, source in enumerate(given[:3]):
        os.dup2(source, target)
    for each in given:
        os.close(each)
    # PR_SET_DUMPABLE
    control_process(4, 1)
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass
    program, file, variables = words[0], words[1], words[2:]
    os.chdir(WORKSPACE)
    set_variables([word.split(b"=", 1) for word in variables])
    name_process([program, file], variables)
    restore(os.fsdecode(program), os.fsdecode(file))
    return file


def set_variables(pairs):
    os.environ.clear()
    for name, value in pairs:
        os.environ[os.fsdecode(name)] = os.fsdecode(value)
    first = sys.modules["posix"].environ
    first.clear()
    first.update(pairs)


def restore(program, file):
    for name in own:
        del sys.modules[name]
    sys.argv = [file]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = [program, file]
    sys.path.insert(0, os.path.dirname(os.path.realpath(file)))
    for finder in list(sys.path_importer_cache.values()):
        if hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()
    sys.path_importer_cache[file] = None
    # Python's own generator is seeded anew by itself.
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


class Argument:
    def __init__(self, value):
        self.from_param = lambda _: value


def forget_exception(_):
    """The last argument: nothing of this program runs between this and the block."""
    sys.excepthook = sys.__excepthook__
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)
    return 1


def finish(result, _, __):
    # Python ends with 1 after an exception, and with 0 if that is what the exception says.
    if result == 0:
        raise SystemExit(0)
    return result


def run_when_unwound(file):
    opened = fopen(file, b"rbe")
    if not opened:
        name = os.fsdecode(file)
        try:
            open(name, "rb").close()
        except OSError as error:
            sys.stderr.write(
                "%s: can't open file %r: [Errno %d] %s\n" % (sys.executable, name, error.errno, error.strerror)
            )
        os._exit(2)
    last = Argument(None)
    last.from_param = forget_exception
    run = Function(_ctypes.dlsym(library, "PyRun_SimpleFileEx"))
    run.argtypes = (Argument(Pointer(opened)), Argument(file), last)
    run.errcheck = finish
    # Python holds on to it only as the hook, which it is no longer while it runs.
    _ctypes.Py_INCREF(run)
    sys.excepthook = run


def wait():
    control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, CONTROL)
    os.chdir(WORKSPACE)
    places = watched_places()
    seen = [look(place) for place in places]
    load(PRELOAD)
    os.close(PRINTED)
    _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)
    variables = [name + b"=" + value for name, value in os.environb.items()]
    control.send(b"ready" if name_process([os.fsencode(sys.executable), b"(waits for blocks)"], variables) else b"no")
    return serve(control, places, seen)


# PR_SET_DUMPABLE: no other process may read or write the memory of this one.
control_process(4, 0)
memory = read_map()
try:
    run_when_unwound(become(*wait()))
except BaseException as error:
    os.write(2, ("The block could not be started: %r\n" % error).encode())
    os._exit(127)
raise Exception
