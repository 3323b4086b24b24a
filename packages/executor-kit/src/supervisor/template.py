"""Becomes the interpreter that Python blocks are forked from. Python 3.8 or later, standard library only; run by `python -c`.

Arguments: this text, the directory in which blocks run, and the modules to import. Descriptor 3 is a socket to the supervisor,
and 4 the other end of output and errors, for what modules print when they are imported. Told to, it forks a shepherd, and that one
a process that waits until a block is there: a request is the block's file and its variables, with its input, output and errors. The block then
leaves Python's stack by an exception, and what prints exceptions starts its file with the function that Python itself starts files
with: nothing of this is below the block's first frame.
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
import atexit as exits  # noqa: E402
import gc as collector  # noqa: E402

own |= set(sys.modules) - known
LONGEST = 131072
BEGUN = 1 << 30
CONTROL, PRINTED = 3, 4
# Directories of modules in C whose objects only free memory at their end, and those of Python's own that do more.
FREEING = {"lib-dynload", "numpy", "pandas", "scipy", "sklearn", "matplotlib", "kiwisolver", "contourpy", "PIL"}
EFFECTS = ("_sqlite3", "_dbm", "_gdbm", "_tkinter", "_curses", "readline")
MOST_WRITTEN = 16777216
# The last module that waits, if the end of all of them shows nothing.
written, harmless = [], None
# Whether the block has called libraries by itself; and what the collector knows of, unless the block has hidden that and more from it.
calls_c, witness = False, None
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


C_KINDS = {Pointer, Number, Function, PointerFunction}
library = _ctypes.dlopen(None, 0)
prctl = Function(_ctypes.dlsym(library, "prctl"))
malloc = PointerFunction(_ctypes.dlsym(library, "malloc"))
memmove = PointerFunction(_ctypes.dlsym(library, "memmove"))
sbrk = PointerFunction(_ctypes.dlsym(library, "sbrk"))
fopen = PointerFunction(_ctypes.dlsym(library, "fopen"))
leave = Function(_ctypes.dlsym(library, "exit"))
fflush = Function(_ctypes.dlsym(library, "fflush"))
leave_at_once = os._exit
madvise = Function(_ctypes.dlsym(library, "madvise"))


def control_process(option, *words):
    return prctl(Pointer(option), *[Pointer(word) for word in (words + (0, 0, 0, 0))[:4]])


def read_map():
    """Where the kernel has this process's parts: start_code to start_stack, without brk, as in proc(5)."""
    with open("/proc/self/stat", "rb") as file:
        fields = [int(field) for field in file.read().rpartition(b")")[2].split()[1:]]
    code, data, stack = fields[22:24], fields[41:44], fields[24]
    return code + data, stack


def written_memory():
    """Where this process has memory of its own that a block will mostly write to: not what modules take a lot of."""
    with open("/proc/self/maps") as file:
        maps = [line.split() for line in file]
    found = []
    for place, mode, _, _, _, *name in maps:
        start, end = [int(each, 16) for each in place.split("-")]
        if mode == "rw-p" and name[:1] != ["[stack]"]:
            found.append((start, end - start))
    return found if sum(length for _, length in found) <= MOST_WRITTEN else []


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
    # Objects of now are not traced by each block's collector, which would copy all of their memory.
    collector.collect()
    collector.freeze()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


def serve(control):
    """Forks whenever it is told to; returns in a process that is to become a block."""
    while control.recv(16):
        try:
            shepherd = os.fork()
        except Warning:
            # Of threads that modules have started, where warnings are errors; the fork has happened.
            shepherd = -1
        except OSError:
            os._exit(0)
        if shepherd == 0:
            return herd(control)
    os._exit(0)


def herd(control):
    """The same as `herd` in blocks.py, for a block that waits for its request; returns in the block's process only."""
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    # PR_SET_CHILD_SUBREAPER
    control_process(36, 1)
    reading, status = os.pipe()
    ours, other = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    try:
        program = os.fork()
    except OSError:
        control.send(b"failed")
        os._exit(1)
    if program == 0:
        os.close(reading)
        for each in (control, ours):
            each.close()
        return other, status
    try:
        other.close()
        words = b"".join(each.to_bytes(4, sys.byteorder) for each in (reading, ours.fileno()))
        control.sendmsg([b"spare%d" % os.getpid()], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, words)])
        os.close(reading)
        for each in (control, ours):
            each.close()
        while True:
            pid, ended = os.waitpid(-1, 0)
            if pid == program:
                code = 128 + os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended)
                os.write(status, code.to_bytes(4, "big"))
    finally:
        os._exit(0)


def await_request(socket, status, places, seen):
    """Exits when this is no longer what a new interpreter would be: the block has not begun, and starts one."""
    for start, length in written:
        # MADV_POPULATE_WRITE: copied now, while nobody waits for it.
        madvise(Pointer(start), Pointer(length), Number(23))
    buffer = bytearray(LONGEST)
    length, data, _, _ = socket.recvmsg_into([buffer], _socket.CMSG_SPACE(12))
    if not length or [look(place) for place in places] != seen:
        os._exit(0)
    os.write(status, BEGUN.to_bytes(4, "big"))
    os.close(status)
    socket.close()
    given = [int.from_bytes(data[0][2][at : at + 4], sys.byteorder) for at in range(0, 12, 4)]
    return bytes(buffer[:length]).split(b"\0"), given


def become(words, given):
    """Makes the process what a new interpreter would be."""
    os.setsid()
    for target, source in enumerate(given):
        os.dup2(source, target)
        os.close(source)
    # PR_SET_DUMPABLE
    control_process(4, 1)
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass
    global witness
    witness = []
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
    # A new one: this program's first frame holds on to the old one's variables until the very end, past their finalizers.
    main = type(sys)("__main__")
    vars(main).update(vars(sys.modules["__main__"]))
    sys.modules["__main__"] = main
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
    code = 0 if result == 0 else 1
    try:
        interrupted = issubclass(getattr(sys, "last_type", None) or Exception, KeyboardInterrupt)
        if (result == 0 or not interrupted) and ends_unseen():
            if not calls_c:
                # The libraries of the modules only free memory, too, and take long for that.
                fflush(Pointer(0))
                leave_at_once(code)
            leave(Number(code))
    except BaseException:
        pass
    if result == 0:
        raise SystemExit(0)
    return result


def ends_unseen():
    """Whether nothing would be seen of Python's own end, which takes the interpreter apart, object by object: only memory is freed."""
    global calls_c
    if sys.gettrace() or sys.getprofile() or (sys.stdout, sys.stderr) != streams:
        return False
    if later_work() != planned or not harmless or not later_modules_end():
        return False
    if sys.version_info < (3, 10) and "atexit" in sys.modules or exits._ncallbacks() != callbacks:
        return False
    exits._run_exitfuncs()
    kinds, complete = set(), False
    for each in collector.get_objects():
        kind = type(each)
        complete = complete or each is witness
        if kind is type:
            if "__del__" in vars(each):
                return False
        elif kind is WeakReference:
            # Classes have some of their own, for what is registered with them.
            if each.__callback__ is not None and type(getattr(each.__callback__, "__self__", None)) is not kind:
                return False
        elif kind not in kinds:
            if any("__del__" in vars(base) for base in type.mro(kind)) or issubclass(kind, WeakReference):
                return False
            # It may have had the C library call something at the end.
            if kind not in C_KINDS:
                calls_c = calls_c or any(base.__module__ == "_ctypes" for base in type.mro(kind))
            kinds.add(kind)
    for stream in streams:
        stream.flush()
    return complete and len(os.listdir("/proc/self/task")) == 1


def later_work():
    """What threads have been told to do at the end."""
    return list(getattr(sys.modules.get("threading"), "_threading_atexits", ()))


def later_modules_end():
    """The modules that a block has imported come last; to look at the others would copy their memory."""
    for name in reversed(sys.modules):
        if name == harmless:
            break
        if not ends_by_itself(name, sys.modules[name]):
            return False
    return True


def ends_by_itself(name, module):
    """Whether no object of a module in C does more at its end than to free memory, so far as Python does not know of it."""
    if name in EFFECTS or not isinstance(module, type(sys)):
        return name not in EFFECTS
    origin = getattr(vars(module).get("__spec__"), "origin", None)
    if not isinstance(origin, str) or origin.endswith((".py", ".pyc")) or origin in ("built-in", "frozen"):
        return True
    return not FREEING.isdisjoint(origin.split("/"))


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
    global WeakReference, harmless, planned, callbacks, streams
    # Only `_weakref`, which has no file, is sure to be there.
    WeakReference = __import__("_weakref").ref
    streams, planned, callbacks = (sys.stdout, sys.stderr), later_work(), exits._ncallbacks()
    modules = [each for each in sys.modules.items() if each[0] not in own]
    harmless = modules[-1][0] if all(ends_by_itself(*each) for each in modules) else None
    collector.freeze()
    written.extend(written_memory())
    return await_request(*serve(control), places, seen)


# PR_SET_DUMPABLE: no other process may read or write the memory of this one.
control_process(4, 0)
memory = read_map()
try:
    run_when_unwound(become(*wait()))
except BaseException as error:
    os.write(2, ("The block could not be started: %r\n" % error).encode())
    os._exit(127)
raise Exception
