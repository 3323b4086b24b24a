"""Runs blocks in one namespace, one after another. Part of the snapshot that the interpreter starts from."""

import ast
import asyncio
import builtins
import errno
import inspect
import io
import json
import linecache
import os
import sys
import time
import traceback
import types

# Modules that blocks often import are part of the snapshot.
import collections  # noqa: F401
import contextlib  # noqa: F401
import csv  # noqa: F401
import dataclasses  # noqa: F401
import datetime  # noqa: F401
import functools  # noqa: F401
import itertools  # noqa: F401
import math  # noqa: F401
import pathlib  # noqa: F401
import random
import re  # noqa: F401
import statistics  # noqa: F401
import string  # noqa: F401
import subprocess  # noqa: F401
import typing  # noqa: F401

_compile_flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_main = types.ModuleType("__main__")
_sleep_device = None
_host_device = None
# Callbacks that take the data of each connection to the host.
_connections = {}
_number = 0


class _HostConnection:
    """A connection to the host functions, used by the module that calls them."""

    def __init__(self, address, take):
        self.number = _ask({"op": "dial", "address": address})[0].get("connection")
        if self.number is None:
            raise ConnectionRefusedError("host functions are not available here")
        _connections[self.number] = take

    def send(self, data):
        for at in range(0, len(data), 1 << 20):
            answer, _ = _ask({"op": "send", "connection": self.number}, data[at : at + (1 << 20)])
            if "error" in answer:
                raise BrokenPipeError("the connection to the host ended")

    def close(self):
        if _connections.pop(self.number, None):
            _ask({"op": "hang up", "connection": self.number})


def _ask(fields, data=b""):
    """Asks the host something about connections."""
    text = json.dumps(fields).encode()
    request = len(text).to_bytes(4, "big") + text + data
    for at in range(0, len(request), 1 << 19):
        os.write(_host_device, request[at : at + (1 << 19)])
    answer = b"".join(iter(lambda: os.read(_host_device, 1 << 19), b""))
    end = 4 + int.from_bytes(answer[:4], "big")
    return json.loads(answer[4:end]), answer[end:]


def send_display(message):
    """Sends a message of `notebook.py` to the host; returns whether it was sent."""
    content = sys.modules["_fenced_displays"].encode(message)
    for at in range(0, len(content or b""), 1 << 20):
        _ask({"op": "display"}, content[at : at + (1 << 20)])
    return content is not None


def _wait(seconds):
    """Waits until data arrives on a connection and delivers it, or until the time is up; `None`: no time limit."""
    milliseconds = {} if seconds is None else {"milliseconds": max(0.0, seconds * 1000)}
    answer, data = _ask({"op": "wait", **milliseconds})
    if "error" in answer:
        raise RuntimeError(
            "The program waits for something that can never happen: there is no timer or connection left."
        )
    number = answer.get("connection")
    if number is None:
        return
    closed = answer.get("closed") is True
    take = _connections.pop(number, None) if closed else _connections.get(number)
    if take is not None:
        take(None if closed else data)


class _Selector:
    """The selector of an event loop that can wait only for timers and host functions."""

    def select(self, timeout):
        if timeout is None and not _connections:
            raise RuntimeError(
                "The program waits for something that can never happen: there is no timer or connection left."
            )
        if _connections:
            _wait(timeout)
        elif timeout > 0:
            _sleep(timeout)
        return []


class _EventLoop(asyncio.BaseEventLoop):
    """An event loop for this thread alone, without sockets."""

    def __init__(self):
        super().__init__()
        self._selector = _Selector()

    def _process_events(self, events):
        pass

    def _write_to_self(self):
        pass


class _Policy(asyncio.events._BaseDefaultEventLoopPolicy):
    def _loop_factory(self):
        return _EventLoop()


def _sleep(seconds):
    """Sleeps without using the processor, which this interpreter's own `time.sleep` does not."""
    seconds = float(seconds)
    if seconds != seconds:
        raise ValueError("Invalid value NaN (not a number)")
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    os.write(_sleep_device, b"%.3f" % (seconds * 1000))


def _no_system(command):
    raise OSError(errno.ENOTSUP, "Programs cannot be started: this is Python in WebAssembly")


def _hide_javascript():
    """Takes away what offers nothing useful to a program, but plenty to a hostile one."""
    import _pyodide._importhook
    import pyodide._package_loader
    import pyodide.code
    import pyodide.webloop

    _pyodide._importhook.jsfinder.jsproxies.clear()
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "JsFinder"]
    for name in ["js", "pyodide_js"] + [each for each in sys.modules if each.startswith(("js.", "pyodide_js."))]:
        loader = getattr(getattr(sys.modules.get(name), "__spec__", None), "loader", None)
        if loader is not None:
            loader.jsproxy = None
        sys.modules[name] = None
    for module, name in (
        (pyodide.code, "run_js"),
        (pyodide._package_loader, "loadedPackages"),
        (pyodide.webloop, "scheduleCallback"),
    ):
        vars(module).pop(name, None)


def _know_utc():
    """The time zone that needs no data. The others come with the package `tzdata`."""
    import zoneinfo._common as common

    def load(key):
        if key in names:
            return io.BytesIO(utc)
        try:
            return load_data(key)
        except common.ZoneInfoNotFoundError:
            raise common.ZoneInfoNotFoundError(
                'No time zone found with key %s: only UTC is built in. Pass `packages: { install: ["tzdata"] }` '
                "with an `index`, or its wheel in `wheels`, to the executor for the others" % key
            ) from None

    names = [
        prefix + name for prefix in ("", "Etc/") for name in ("UTC", "GMT", "UCT", "Universal", "Zulu", "Greenwich")
    ]
    # A file with one type of local time and no transitions, in both versions of the format (RFC 8536).
    header = b"TZif2" + bytes(15) + b"".join(count.to_bytes(4, "big") for count in (0, 0, 0, 0, 1, 4))
    utc = (header + bytes(6) + b"UTC\0") * 2 + b"\nUTC0\n"
    load_data, common.load_tzdata = common.load_tzdata, load


def _module(name, **members):
    module = sys.modules[name] = types.ModuleType(name)
    vars(module).update(members, __spec__=type(sys.__spec__)(name, None, origin="built-in"))


def _know_user():
    """The modules `pwd` and `grp`, which libraries ask for the user's name; there is only one."""

    def only(entry, key, what):
        def get(asked):
            if asked != entry[key]:
                raise KeyError("%s not found: %r" % (what, asked))
            return entry

        return get

    user = ("web_user", "x", 1000, 1000, "", "/home/pyodide", "/bin/false")
    group = ("web_user", "x", 1000, [])
    fields = "pw_name pw_passwd pw_uid pw_gid pw_gecos pw_dir pw_shell"
    user = collections.namedtuple("struct_passwd", fields)(*user)
    group = collections.namedtuple("struct_group", "gr_name gr_passwd gr_gid gr_mem")(*group)
    names = {"struct_passwd": type(user), "getpwall": lambda: [user]}
    _module("pwd", getpwnam=only(user, 0, "getpwnam(): name"), getpwuid=only(user, 2, "getpwuid(): uid"), **names)
    names = {"struct_group": type(group), "getgrall": lambda: [group]}
    _module("grp", getgrnam=only(group, 0, "getgrnam(): name"), getgrgid=only(group, 2, "getgrgid(): gid"), **names)


def prepare(env, installs):
    """Called when the interpreter has started, before the first block."""
    global _sleep_device, _host_device
    os.environ.clear()
    os.environ.update(json.loads(env))
    _sleep_device = os.open("/dev/sleep", os.O_WRONLY)
    _host_device = os.open("/dev/host-functions", os.O_RDWR)
    host = sys.modules["_fenced_host"] = types.ModuleType("_fenced_host")
    host.connect, host.wait = _HostConnection, _wait
    time.sleep = _sleep
    os.system = _no_system
    sys.modules["__main__"] = _main
    _main.__builtins__ = builtins
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", write_through=True)
    if installs:
        sys.modules["micropip"] = sys.modules["_fenced_micropip"]
    _hide_javascript()
    # The interpreter's own event loop always counts as running.
    asyncio.events._set_running_loop(None)
    asyncio.events._set_event_loop_policy(_Policy())
    # Pyodide's wrapper asks JavaScript for its settings, and then calls what it wraps.
    asyncio.run = asyncio.run.__wrapped__
    sys.path.insert(0, "")
    # Otherwise all sessions would get the snapshot's random numbers.
    random.seed()


def run(source, file, stdin, env, functions):
    """Runs a block. Returns the exit code that a program with this code would have."""
    global _number
    _number += 1
    name = file or "<block %d>" % _number
    sys.argv = [file or ""]
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "surrogatepass")), encoding="utf-8")
    outer = _enter_environment(json.loads(env))
    _connections.clear()
    offered = json.loads(functions)
    if offered is not None:
        _choose_modules(offered, offered["directory"])
    try:
        code = _execute(source, name)
        try:
            sys.modules["_fenced_displays"].finish()
        except BaseException:
            _report()
        return code
    finally:
        if offered is not None:
            _choose_modules(offered, offered["root"])
        _leave_environment(outer)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass


def _enter_environment(env):
    outer = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    return outer


def _choose_modules(functions, directory):
    """Makes blocks import functions from a directory instead of the modules that an earlier call had."""
    root, names = functions["root"], functions["names"]
    sys.path[:] = [each for each in sys.path if os.path.dirname(each) != root and each != directory]
    sys.path.insert(0, directory)
    for name in names:
        file = getattr(sys.modules.get(name), "__file__", None) or ""
        if file.startswith(root + "/") and os.path.dirname(file) != directory:
            del sys.modules[name]


def _leave_environment(outer):
    for name, value in outer.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _execute(source, name):
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    try:
        tree = compile(source, name, "exec", flags=_compile_flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) and not _is_quiet(source) else None
        _evaluate(compile(tree, name, "exec", flags=_compile_flags, dont_inherit=True))
        if last is not None:
            last = compile(ast.Expression(last.value), name, "eval", flags=_compile_flags, dont_inherit=True)
            sys.modules["_fenced_displays"].show(_evaluate(last))
        return 0
    except SystemExit as end:
        return _exit_code(end.code)
    except KeyboardInterrupt:
        _report()
        return 130
    except BaseException:
        _report()
        return 1


def _is_quiet(source):
    """Whether the block ends with `;`, which in notebooks suppresses the value."""
    return source.rstrip().endswith(";")


def _evaluate(code):
    value = eval(code, _main.__dict__)
    if code.co_flags & inspect.CO_COROUTINE and inspect.iscoroutine(value):
        return _event_loop().run_until_complete(value)
    return value


def _event_loop():
    try:
        loop = asyncio.events._get_event_loop_policy()._local._loop
    except AttributeError:
        loop = None
    if loop is None or loop.is_closed():
        loop = _EventLoop()
        asyncio.set_event_loop(loop)
    return loop


def _exit_code(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _report():
    """Prints the error, without the frames of this module."""
    kind, error, trace = sys.exc_info()
    while trace is not None and trace.tb_frame.f_code.co_filename == "<fenced>":
        trace = trace.tb_next
    traceback.print_exception(kind, error, trace)


# Part of the snapshot.
_know_utc()
_know_user()
