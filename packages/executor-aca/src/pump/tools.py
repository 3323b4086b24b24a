"""The pump's tools for cells, threads and processes of the session. Python 3.8 or later, Linux."""

import ast
import base64
import ctypes
import io
import json
import linecache
import os
import signal
import sys

from _fenced_process_table import read_processes

# Maximum size of one display, in bytes.
LONGEST_SHOWN = 16777216


def stream_to(descriptor):
    # Text is written at once, into the pipe that child processes also write to.
    raw = io.FileIO(descriptor, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="surrogateescape", write_through=True)


def evaluate(code, name, shell):
    """Runs a block as a cell: in the session's module, with magics and top-level `await`; returns the last expression's value."""
    transform = getattr(shell, "transform_cell", None)
    source = transform(code) if transform else code
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    tree = ast.parse(source, name)
    last = []
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = [ast.Expression(tree.body.pop().value)]
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    parts = [compile(tree, name, "exec", flags, True)] + [compile(each, name, "eval", flags, True) for each in last]
    values = [part_value(part, sys.modules["__main__"].__dict__) for part in parts]
    return None if code.rstrip().endswith(";") or not last else values[-1]


def part_value(part, names):
    value = eval(part, names)
    # CO_COROUTINE: it awaits something.
    if not part.co_flags & 128:
        return value
    import asyncio

    return asyncio.run(value)


def interrupt(thread, kind):
    """Raises an exception in a thread as soon as it runs Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(kind))


def find_shell():
    get = getattr(sys.modules["__main__"], "get_ipython", None)
    return get() if callable(get) else None


def shell_for(pump):
    """Makes IPython's shell pass a block's displays to the pump; returns the shell, or `None` if there is none."""
    shell = find_shell()
    publisher = getattr(shell, "display_pub", None)
    if publisher is None:
        return shell
    if not hasattr(publisher, "fenced"):
        publish, clear = publisher.publish, getattr(publisher, "clear_output", None)

        def publish_here(data, metadata=None, **options):
            if publisher.fenced.block.ended:
                return publish(data, metadata, **options)
            display_id = (options.get("transient") or {}).get("display_id")
            publisher.fenced.show(data, id=display_id, update=bool(options.get("update")))

        def clear_here(wait=False):
            if not publisher.fenced.block.ended:
                publisher.fenced.show(None, clear=True, wait=bool(wait))
            elif clear:
                clear(wait)

        publisher.publish, publisher.clear_output = publish_here, clear_here
    publisher.fenced = pump
    return shell


def bundle_of(value, shell):
    """A value in each type that it can be displayed as; empty if it has displayed itself."""
    formatter = getattr(shell, "display_formatter", None)
    return formatter.format(value)[0] if formatter else {"text/plain": repr(value)}


def message(data, **fields):
    """Encodes a display, by type, for the host."""
    texts = {}
    for kind, content in (data or {}).items():
        texts[kind] = base64.b64encode(content).decode() if isinstance(content, bytes) else content
    try:
        payload = json.dumps(dict(fields, data=texts), default=str, allow_nan=False).encode()
    except ValueError:
        # JSON has no numbers that are infinite or none, and no circles.
        texts = {kind: content for kind, content in texts.items() if isinstance(content, str)}
        payload = json.dumps(dict(fields, data=texts), default=str).encode()
    if len(payload) > LONGEST_SHOWN:
        texts = {"text/plain": "(a display of %d bytes)" % len(payload)}
        payload = json.dumps(dict(fields, data=texts)).encode()
    return payload


def figure_callbacks():
    """The callbacks that IPython runs after each execution; an empty list if there is no IPython."""
    callbacks = getattr(getattr(find_shell(), "events", None), "callbacks", {})
    return callbacks.get("post_execute", [])


def descendants(known):
    """The descendants of this process with their start times, except those in `known` and their descendants."""
    children = {}
    for pid, (parent, born) in read_processes().items():
        children.setdefault(parent, []).append((pid, born))
    found, look = [], list(children.get(os.getpid(), []))
    while look:
        each = look.pop()
        if each not in known:
            found.append(each)
            look.extend(children.get(each[0], []))
    return found


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
