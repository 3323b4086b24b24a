"""Runs a block's source as a program in its session's namespace, and returns how it ended. Python 3.8 or later."""

import ast
import linecache
import sys
import traceback
import types

import _fenced_displays as displays

try:
    import ctypes

    library = ctypes.CDLL(None)
except Exception:
    library = None

FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
# The flag of code that awaits something (CO_COROUTINE).
AWAITS = 128
main = types.ModuleType("__main__")
loop = None
# Modules that are added to this program set these: the first takes an error with its traceback instead of standard error; the
# second turns source that is not Python into Python, or returns it as it was.
take_error = transform = None


def execute(source, name):
    """Returns the exit code that a program of this source would have."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    try:
        tree = parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) and not is_quiet(source) else None
        evaluate(compile(tree, name, "exec", flags=FLAGS, dont_inherit=True))
        if last is not None:
            displays.show(evaluate(compile(ast.Expression(last.value), name, "eval", flags=FLAGS, dont_inherit=True)))
        return 0
    except SystemExit as end:
        if take_error is not None:
            report()
            return 1
        return exit_code(end.code)
    except KeyboardInterrupt:
        report()
        return 130
    except BaseException:
        report()
        return 1


def parse(source, name):
    try:
        return compile(source, name, "exec", flags=FLAGS | ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError:
        change = transform if displays.shell is None else displays.shell.transform_cell
        if change is None:
            raise
        # `%pip install`, `!ls`.
        changed = change(source)
        if changed.strip() == source.strip():
            raise
        return compile(changed, name, "exec", flags=FLAGS | ast.PyCF_ONLY_AST, dont_inherit=True)


def is_quiet(source):
    """Returns whether the source ends with a semicolon, which keeps notebooks from showing the last value."""
    return source.rstrip().endswith(";")


def evaluate(code):
    global loop
    value = eval(code, vars(main))
    if code.co_flags & AWAITS and hasattr(value, "send"):
        import asyncio

        if loop is None or loop.is_closed():
            loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        value = loop.run_until_complete(value)
    return value


def exit_code(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 255
    print(code, file=sys.stderr)
    return 1


def report():
    """Prints the error without the outermost frames, which belong to these programs."""
    kind, error, trace = sys.exc_info()
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith("<_fenced_"):
        trace = trace.tb_next
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    error = error.with_traceback(trace)
    if take_error is not None:
        return take_error(kind, error, trace)
    if sys.excepthook is not sys.__excepthook__:
        try:
            return sys.excepthook(kind, error, trace)
        except BaseException:
            pass
    # Python's own hook finds only the source lines of files, not those of blocks.
    traceback.print_exception(kind, error, trace)


def flush():
    for stream in {id(each): each for each in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)}.values():
        try:
            stream.flush()
        except BaseException:
            pass
    if library is not None:
        library.fflush(None)
