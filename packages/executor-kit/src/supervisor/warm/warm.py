"""Keeps a waiting interpreter from which Python blocks are forked, and replaces it when needed. Python 3.8 or later, standard
library only.

It starts only while nothing that a block started is running, so no hostile program sees it before it has closed its memory to
other processes. A block that it cannot serve, or not in time, runs cold: it starts its own interpreter.
"""

import fcntl
import os
import select
import struct

import _fenced_blocks as blocks
import _fenced_processes as processes
import _socket
from _fenced_block_process import BEGUN
from _fenced_channel import events
from _fenced_greeting import own_variables

START = 'exec(__import__("sys").argv[1], {"__name__": "_fenced_template"})'
LONGEST = 65536
WAIT = 2000
# Other variables may make the interpreter print or do something when it starts, or are read only then.
KNOWN = ("UNBUFFERED", "UTF8", "PATH", "HASHSEED", "IOENCODING", "DONTWRITEBYTECODE", "NOUSERSITE", "USERBASE")

program = python = ""
preload = []
settled = last = None
template = None
failures = 0


class Template:
    def __init__(self, pid, control):
        self.pid = pid
        self.control = control
        self.served = False
        # A fork that waits for a block: its shepherd, the pipe on which the shepherd reports the end, and the socket for the
        # request.
        self.spare = None


def configure(payload):
    """Takes what most blocks will need: the interpreter, the modules to import, and the variables."""
    global program, python, preload, settled, failures
    program, python, count, *words = [os.fsdecode(each) for each in payload.split(b"\0")]
    preload, given = words[: int(count)], words[int(count) :]
    settled = blocks.lasting(blocks.variables(dict(each.split("=", 1) for each in given)))
    failures = 0
    end()


def suitable(variables):
    for name in variables:
        if name.startswith("PYTHON") and name[6:] not in KNOWN:
            return False
        if name.startswith(("LD_", "MALLOC_", "GLIBC_")):
            return False
    # The interpreter starts in a different directory from blocks.
    places = variables.get("PYTHONPATH", "/").split(":") + [variables.get("PYTHONUSERBASE", "/")]
    return all(place.startswith("/") for place in places)


def keep():
    """Starts an interpreter if one is wanted and there is none."""
    if template is None and failures < 2 and settled is not None and suitable(settled):
        if not blocks.blocks and not blocks.left_running():
            start()


def start():
    global template, failures
    blocks.prepare_python(python, settled)
    ours, other = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    try:
        pid = os.fork()
    except OSError:
        failures += 1
        ours.close()
        other.close()
        return
    if pid == 0:
        try:
            become(other.fileno())
        finally:
            os._exit(127)
    other.close()
    ours.setblocking(False)
    template = Template(pid, ours)
    blocks.waiting.add(pid)
    events.register(ours.fileno(), select.EPOLLIN)


def become(control):
    """Gives it the same kinds of streams as blocks, because Python inspects them when it starts."""
    os.setsid()
    nothing, (reading, writing) = os.open("/dev/null", os.O_RDONLY), os.pipe()
    kept = [fcntl.fcntl(each, fcntl.F_DUPFD, 16) for each in (nothing, writing, writing, control, reading)]
    for target, source in enumerate(kept):
        os.dup2(source, target)
    os.closerange(len(kept), kept[-1] + 256)
    processes.default_signals()
    # A directory in which nobody can put a module.
    os.chdir("/proc")
    traceable = "0" if processes.hidden else "1"
    variables = dict(own_variables(), **settled)
    os.execvpe(python, [python, "-c", START, program, blocks.workspace, traceable] + preload, variables)


def hear():
    """Handles the interpreter's report: that it is ready, cannot work here, or has ended."""
    global settled, failures
    try:
        word, rights, _, _ = template.control.recvmsg(16, _socket.CMSG_SPACE(8))
    except BlockingIOError:
        return
    except OSError:
        word, rights = b"", []
    if word.startswith(b"spare"):
        status, way = struct.unpack("=2i", rights[0][2])
        template.spare = int(word[5:]), status, _socket.socket(fileno=way)
        template.served = True
        failures = 0
        return
    if word == b"ready":
        order()
        return
    if word == b"no":
        settled = None
    elif not template.served:
        failures += 1
    end()


def order():
    """Makes the interpreter fork ahead of the next block."""
    try:
        template.control.send(b"fork")
    except OSError:
        end()


def end():
    """Kills the interpreter and those of its forks that are not known as blocks."""
    global template
    if template is None:
        return
    old, template = template, None
    events.unregister(old.control.fileno())
    if old.spare is not None:
        os.close(old.spare[1])
        old.spare[2].close()
    processes.stop([old.pid])
    known = {block.shepherd for block in blocks.blocks.values()}
    for _ in range(1000):
        unknown = strays(old.pid, known)
        if not unknown:
            break
        processes.kill(unknown)
    processes.kill([old.pid])
    old.control.close()
    try:
        os.waitpid(old.pid, 0)
    except ChildProcessError:
        pass
    blocks.waiting.discard(old.pid)


def strays(pid, known):
    table = processes.processes()
    found = {each for each, parent in table.items() if parent == pid and each not in known}
    return found | {each for each, parent in table.items() if parent in found}


def fork(argv, variables, given):
    """Turns a fork of the interpreter into a block with these descriptors. Returns its shepherd and the pipe on which the
    shepherd reports the end, or `None` if nothing was started."""
    global settled, last
    if settled is None or len(argv) != 2 or argv[0] != python:
        return None
    wanted = blocks.lasting(variables)
    if wanted != settled:
        if wanted == last:
            # The same variables twice in a row: assume that most blocks will have them from now on.
            settled = wanted
            end()
        last = wanted
        return None
    words = b"\0".join(
        [os.fsencode(each) for each in argv] + [os.fsencode("%s=%s" % each) for each in variables.items()]
    )
    if len(words) > LONGEST or template is None or not template.served or not has_spare():
        return None
    (shepherd, status, way), template.spare = template.spare, None
    if not is_well(shepherd):
        way.close()
    elif request(way, words, given) and has_begun(status):
        order()
        return shepherd, status
    # It has ended, was stopped, or hangs, so it is killed. If it has begun after all, its block counts as run.
    processes.stop([shepherd])
    processes.kill(strays(shepherd, ()) | {shepherd})
    end()
    if select.select([status], [], [], 0)[0] and struct.unpack(">I", os.read(status, 4).rjust(4, b"\0"))[0] == BEGUN:
        return shepherd, status
    os.close(status)
    return None


def has_spare():
    """Waits for the next fork if another block has just taken the last one."""
    while template is not None and template.spare is None:
        if not select.select([template.control], [], [], WAIT / 1000)[0]:
            end()
        else:
            hear()
    return template is not None


def is_well(shepherd):
    """Returns whether it will be able to report the block's end. An earlier block may have stopped it, or sent it a signal that
    ends it."""
    try:
        os.kill(shepherd, processes.signal.SIGCONT)
        with open("/proc/%d/status" % shepherd) as file:
            lines = {name: value.split() for name, _, value in (line.partition(":") for line in file)}
    except OSError:
        return False
    pending = int(lines["SigPnd"][0], 16) | int(lines["ShdPnd"][0], 16)
    return int(lines["PPid"][0]) == template.pid and lines["State"][0] not in "ZX" and not pending


def has_begun(status):
    word = os.read(status, 4) if select.select([status], [], [], WAIT / 1000)[0] else b""
    return word == struct.pack(">I", BEGUN)


def request(way, words, given):
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("=3i", *given))
    try:
        way.setblocking(False)
        return way.sendmsg([words], [rights]) == len(words)
    except OSError:
        return False
    finally:
        way.close()
