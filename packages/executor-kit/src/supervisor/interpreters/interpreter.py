"""The interpreter of a session: runs blocks in one namespace, and forks itself. Python 3.8 or later; started with `python -c`.

Arguments: this text with the modules that it imports, the directory of the shell commands that call host functions, and modules
to import. Descriptor 3 is a socket to the supervisor: `run` carries a block's code, its input, output and errors, a pipe for
displays, and a pipe for reporting its end; `fork` carries the fork's replacements for these descriptors. Descriptor 4 is a pipe
for reporting that the interpreter is ready.
"""

import _socket
import builtins
import importlib.util
import io
import json
import os
import struct
import sys

# Imported early, because libraries replace some of these for the programs that they run.
from os import _exit, close, write

import _fenced_block_surroundings as surroundings
import _fenced_displays as displays
import _fenced_interpreter_fork as forks
import _fenced_run_source as runner
import _fenced_work_directory as work_directory
from _fenced_block_process import preload
from _fenced_descriptors import Held, keep_high

# Programs should see only the modules of a plain interpreter.
for name in [each for each in sys.modules if each.startswith("_fenced_")]:
    del sys.modules[name]

CONTROL, SAID = 3, 4
COMMANDS, PRELOAD = sys.argv[2], sys.argv[3:]
given = dict(os.environ)
pid = os.getpid()
control = None
# The pipe for reporting the end of the running block.
status = None


def serve():
    while True:
        try:
            verb, rights, _, _ = control.recvmsg(16, _socket.CMSG_SPACE(24))
        except KeyboardInterrupt:
            # It was for a block that has ended just now.
            continue
        except OSError:
            _exit(1)
        if not verb:
            _exit(0)
        descriptors = struct.unpack("=%di" % (len(rights[0][2]) // 4), rights[0][2])
        if verb == b"run":
            run(*descriptors)
        elif forks.fork(*descriptors):
            become_fork(descriptors[0])


def run(*descriptors):
    global status
    # Move these first: if the last block closed its streams, these have taken over the streams' numbers.
    source, stdin, out, err, shown, said = [keep_high(each) for each in descriptors]
    for target, stream in enumerate((stdin, out, err)):
        os.dup2(stream, target)
        close(stream)
    displays.pipe, status = Held(shown), Held(said)
    with open(source, "rb") as file:
        request = json.loads(file.read())
    renew_streams()
    outer = enter(request["env"], request["modules"])
    code = 1
    try:
        code = runner.execute(request["code"], request["name"])
        displays.finish()
    except BaseException:
        runner.report()
    runner.flush()
    if os.getpid() != pid:
        # The block forked this process, which has now reached the end of the block.
        _exit(code)
    leave(outer, request["modules"])
    displays.pipe.close()
    displays.pipe = None
    status.write(struct.pack(">I", code))
    status.close()


def renew_streams():
    """Gives each block its own input, and outputs even if the last block closed them."""
    old = sys.__stdin__
    sys.stdin = sys.__stdin__ = io.open(0, encoding=old.encoding, errors=old.errors, closefd=False)
    for number, name in ((1, "stdout"), (2, "stderr")):
        first = getattr(sys, "__%s__" % name)
        if first.closed:
            binary = io.open(number, "wb", closefd=False)
            made = io.TextIOWrapper(binary, encoding="utf-8", errors=first.errors, write_through=True)
            setattr(sys, "__%s__" % name, made)
        if getattr(getattr(sys, name), "closed", True) is True:
            setattr(sys, name, getattr(sys, "__%s__" % name))


def enter(env, modules):
    """Sets the variables that differ from the session's, and makes the block import its own call's functions."""
    changed = {name: value for name, value in env.items() if given.get(name) != value}
    if "FENCED_HOST_CALLS" in env:
        changed["PATH"] = COMMANDS + os.pathsep + env.get("PATH", os.environ.get("PATH", os.defpath))
    surroundings.search_user_packages()
    if modules is not None:
        choose_modules(modules, modules["directory"])
    return surroundings.set_variables(changed)


def leave(outer, modules):
    if modules is not None:
        choose_modules(modules, modules["root"])
    surroundings.restore_variables(outer)


def choose_modules(modules, directory):
    surroundings.choose_modules(modules["root"], directory, modules["names"], modules["packages"])


def become_fork(way):
    """Gives a fork of the interpreter its own socket, and streams that go nowhere until its first block."""
    global pid, control
    os.setsid()
    pid = os.getpid()
    displays.forget()
    nothing = os.open(os.devnull, os.O_RDWR)
    for target in range(3):
        os.dup2(nothing, target)
    close(nothing)
    control.close()
    control = open_control(way)


def open_control(descriptor):
    return _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, keep_high(descriptor))


def disconnect():
    """Cuts a process that the program forks off from the supervisor."""
    if forks.forking:
        return
    control.close()
    for each in (displays.pipe, status):
        if each is not None:
            each.close()
    displays.pipe = None


def begin():
    global control
    control = open_control(CONTROL)
    has_displays = importlib.util.find_spec("IPython") is not None
    write(SAID, b"%d %d\n" % (pid, has_displays))
    close(SAID)
    preload(PRELOAD)
    sys.argv = [""]
    runner.main.__builtins__ = builtins
    sys.modules["__main__"] = runner.main
    if has_displays:
        try:
            displays.start_shell(runner.main)
        except Exception:
            pass
    sys.modules["__main__"] = runner.main
    work_directory.allow()
    os.register_at_fork(after_in_child=disconnect)


begin()
serve()
