"""Turns a fork of the template into what a new interpreter would be, and starts the block's file. Python 3.8 or later.

The template leaves Python's stack by raising an exception, and the hook that prints exceptions starts the file, with the same
function that Python itself uses. So there is nothing below the block's first frame.
"""

import os
import sys

import _ctypes
import _fenced_quick_end as quick_end
from _fenced_block_process import volunteer_for_oom
from _fenced_c_library import Function, Pointer, control_process, library, pointer_function
from _fenced_process_image import name_process

fopen = pointer_function("fopen")


def become(words, given, directory, own):
    """`words`: the interpreter, the file and the variables; `given`: the block's streams. Returns the file."""
    os.setsid()
    for target, source in enumerate(given):
        os.dup2(source, target)
        os.close(source)
    # PR_SET_DUMPABLE
    control_process(4, 1)
    volunteer_for_oom()
    quick_end.begin_block()
    program, file, variables = words[0], words[1], words[2:]
    os.chdir(directory)
    set_variables([word.split(b"=", 1) for word in variables])
    name_process([program, file], variables)
    restore(os.fsdecode(program), os.fsdecode(file), own)
    return file


def set_variables(pairs):
    # A new interpreter sets LC_CTYPE itself in the C locale (PEP 538), as the template has done.
    ctype = os.environb.get(b"LC_CTYPE")
    if ctype is not None and all(name != b"LC_CTYPE" for name, _ in pairs):
        pairs.append([b"LC_CTYPE", ctype])
    os.environ.clear()
    for name, value in pairs:
        os.environ[os.fsdecode(name)] = os.fsdecode(value)
    first = sys.modules["posix"].environ
    first.clear()
    first.update(pairs)


def restore(program, file, own):
    for name in own:
        del sys.modules[name]
    sys.argv = [file]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = [program, file]
    sys.path.insert(0, os.path.dirname(os.path.realpath(file)))
    for place, finder in list(sys.path_importer_cache.items()):
        if hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()
        elif finder is None and os.path.exists(place):
            # A module directory that did not exist when the template started.
            del sys.path_importer_cache[place]
    sys.path_importer_cache[file] = None
    # Create a new one: the template's first frame keeps the old one's variables alive until the very end, past their finalizers.
    main = type(sys)("__main__")
    vars(main).update(vars(sys.modules["__main__"]))
    sys.modules["__main__"] = main
    # Python reseeds its own generator after a fork; NumPy does not.
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


class Argument:
    def __init__(self, value):
        self.from_param = lambda _: value


def forget_exception(_):
    """Creates the last argument; none of our Python code runs between this and the block."""
    sys.excepthook = sys.__excepthook__
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)
    return 1


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
    run.errcheck = quick_end.finish
    # Only the hook refers to it, and it is no longer the hook while it runs.
    _ctypes.Py_INCREF(run)
    sys.excepthook = run
