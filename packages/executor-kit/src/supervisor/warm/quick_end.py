"""Ends a forked block without finalizing the interpreter, where nobody could tell the difference. Python 3.8 or later.

Python finalizes an interpreter object by object, which takes half the time of a short block.
"""

import atexit as exits
import gc as collector
import os
import sys
from _weakref import ref as WeakReference

from _fenced_c_library import C_KINDS, Number, Pointer, number_function

# Directories of C modules whose objects only free memory when they are finalized, and Python's own modules that do more.
FREEING = {"lib-dynload", "numpy", "pandas", "scipy", "sklearn", "matplotlib", "kiwisolver", "contourpy", "PIL"}
EFFECTS = ("_sqlite3", "_dbm", "_gdbm", "_tkinter", "_curses", "readline")

leave, fflush = number_function("exit"), number_function("fflush")
leave_at_once = os._exit
# State before the block: the last module, if all modules only free memory; the streams; and the callbacks registered for exit.
harmless, streams, planned, callbacks = None, (), [], 0
# Whether the block has called C libraries itself; and an object that the collector tracks, unless the block has hidden objects
# from it.
calls_c, witness = False, None


def note_template(own):
    """Records the state before a block. `own`: the modules that blocks will not see."""
    global harmless, streams, planned, callbacks
    streams, planned, callbacks = (sys.stdout, sys.stderr), later_work(), exits._ncallbacks()
    modules = [each for each in sys.modules.items() if each[0] not in own]
    harmless = modules[-1][0] if all(ends_by_itself(*each) for each in modules) else None


def begin_block():
    global witness
    witness = []


def finish(result, _, __):
    # Python exits with 1 after an exception, or with 0 if the exception says so.
    code = 0 if result == 0 else 1
    try:
        interrupted = issubclass(getattr(sys, "last_type", None) or Exception, KeyboardInterrupt)
        if (result == 0 or not interrupted) and ends_unseen():
            if not calls_c:
                # The modules' libraries would also only free memory, slowly.
                fflush(Pointer(0))
                leave_at_once(code)
            leave(Number(code))
    except BaseException:
        pass
    if result == 0:
        raise SystemExit(0)
    return result


def ends_unseen():
    """Returns whether Python's own finalization would only free memory, so that nobody can tell that it is skipped."""
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
            # Classes have weak references of their own, for what is registered with them.
            if each.__callback__ is not None and type(getattr(each.__callback__, "__self__", None)) is not kind:
                return False
        elif kind not in kinds:
            if any("__del__" in vars(base) for base in type.mro(kind)) or issubclass(kind, WeakReference):
                return False
            # It may have registered an exit handler with the C library.
            if kind not in C_KINDS:
                calls_c = calls_c or any(base.__module__ == "_ctypes" for base in type.mro(kind))
            kinds.add(kind)
    for stream in streams:
        stream.flush()
    return complete and len(os.listdir("/proc/self/task")) == 1


def later_work():
    """Returns the callbacks that `threading` runs at exit."""
    return list(getattr(sys.modules.get("threading"), "_threading_atexits", ()))


def later_modules_end():
    """Returns whether the modules that the block imported only free memory. They come last; inspecting the others would copy
    their memory."""
    for name in reversed(sys.modules):
        if name == harmless:
            break
        if not ends_by_itself(name, sys.modules[name]):
            return False
    return True


def ends_by_itself(name, module):
    """Returns whether the objects of a module, if it is written in C, only free memory when they are finalized."""
    if name in EFFECTS or not isinstance(module, type(sys)):
        return name not in EFFECTS
    origin = getattr(vars(module).get("__spec__"), "origin", None)
    if not isinstance(origin, str) or origin.endswith((".py", ".pyc")) or origin in ("built-in", "frozen"):
        return True
    return not FREEING.isdisjoint(origin.split("/"))
