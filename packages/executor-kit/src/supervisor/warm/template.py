"""Becomes the interpreter that Python blocks are forked from. Python 3.8 or later, standard library only; started with
`python -c`.

Arguments: this text with the modules that it imports, the directory in which blocks run, whether others may trace this process (0
or 1), and the modules to import. Descriptor 3 is a socket to the supervisor; 4 is the other end of output and errors, for what
modules print when they are imported. On request, it forks a shepherd, which forks a process that waits for a block. A request for
a block carries its file and variables, with its input, output and errors.
"""

import os
import sys

import _fenced_new_interpreter as new_interpreter
import _fenced_quick_end as quick_end
import _fenced_template_start as template_start
import _fenced_used_resources as used_resources
import _signal
import _socket
import gc as collector
from _fenced_block_process import BEGUN, preload, tend
from _fenced_c_library import Number, control_process, number_function
from _fenced_process_image import copy_ahead, name_process, written_memory

LONGEST = 131072
CONTROL, PRINTED = 3, 4
WORKSPACE, TRACEABLE, PRELOAD = sys.argv[2], sys.argv[3], sys.argv[4:]
used_resources.prepare(number_function("getrusage"), Number(-1))
own = template_start.own_modules()


def look(path):
    try:
        found = os.stat(path)
    except OSError:
        return (path, 0)
    return (path, found.st_ctime_ns, found.st_mtime_ns, found.st_ino, found.st_size)


def watched_places():
    """Returns the paths that an interpreter reads when it starts, whose content a block may have changed, for example with
    `pip install`."""
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
    preload(names)
    # Keeps a block's garbage collector from tracing the existing objects, which would copy all of their memory.
    collector.collect()
    collector.freeze()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


def defer_to_kernel(signal):
    """Makes a signal end these processes at once. A Python handler runs some time after the signal arrives, and until then nobody
    can tell that the process is about to end. Returns the handler that a block must have; `None` if it cannot be restored."""
    handler = _signal.getsignal(signal)
    if handler is not None:
        _signal.signal(signal, _signal.SIG_DFL)
    return handler


def serve(control):
    """Forks on request; returns only in a process that will become a block."""
    while control.recv(16):
        try:
            shepherd = os.fork()
        except Warning:
            # Python warns about threads that modules have started, and warnings are errors here; the fork has succeeded anyway.
            shepherd = -1
        except OSError:
            os._exit(0)
        if shepherd == 0:
            return herd(control)
    os._exit(0)


def herd(control):
    """Forks the process that waits for its block; returns only in that process."""
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
        tend(program, status, used_resources.used)
    finally:
        os._exit(0)


def await_request(socket, status, places, seen):
    """Exits before the block begins if this no longer matches what a new interpreter would be. The supervisor then starts a new
    one."""
    buffer = bytearray(LONGEST)
    length, data, _, _ = socket.recvmsg_into([buffer], _socket.CMSG_SPACE(12))
    if not length or [look(place) for place in places] != seen:
        os._exit(0)
    os.write(status, BEGUN.to_bytes(4, "big"))
    os.close(status)
    socket.close()
    given = [int.from_bytes(data[0][2][at : at + 4], sys.byteorder) for at in range(0, 12, 4)]
    return bytes(buffer[:length]).split(b"\0"), given


def wait():
    control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, CONTROL)
    os.chdir(WORKSPACE)
    places = watched_places()
    seen = [look(place) for place in places]
    load(PRELOAD)
    os.close(PRINTED)
    _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)
    interrupt = defer_to_kernel(_signal.SIGINT)
    variables = [name + b"=" + value for name, value in os.environb.items()]
    control.send(b"ready" if name_process([os.fsencode(sys.executable), b"(waits for blocks)"], variables) else b"no")
    quick_end.note_template(own)
    collector.freeze()
    written = written_memory()
    socket, status = serve(control)
    copy_ahead(written)
    request = await_request(socket, status, places, seen)
    if interrupt is not None:
        _signal.signal(_signal.SIGINT, interrupt)
    return request


# PR_SET_DUMPABLE: with 0, no other process may read or write the memory of this one.
control_process(4, int(TRACEABLE))
try:
    new_interpreter.run_when_unwound(new_interpreter.become(*wait(), WORKSPACE, own))
except BaseException as error:
    os.write(2, ("The block could not be started: %r\n" % error).encode())
    os._exit(127)
raise Exception
