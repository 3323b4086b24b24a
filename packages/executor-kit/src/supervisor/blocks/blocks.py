"""Starts, ends and kills blocks. Python 3.8 or later, standard library only.

To kill a block, it first stops all of the block's processes, so that none of them can start another one meanwhile.
"""

import os
import select
import struct
import time

import _fenced_block_files as block_files
import _fenced_block_output as output
import _fenced_feeds as feeds
import _fenced_processes as processes
import _fenced_terminals as terminals
import _fenced_used_resources as used_resources
import _fenced_user_site as user_site
from _fenced_block_process import FAILED, STARTED
from _fenced_channel import READ, channel, events, widen
from _fenced_wire import EXIT, STDERR, STDOUT
from _fenced_launch import fork_shepherd
from _fenced_used_resources import UNKNOWN

workspace = "/"
# Whether the user's home directory outlives this program.
lasting_home = False
environment = {}
# The directory with the command that calls host functions, for blocks that may call them.
commands = ""
# Modules that keep a Python interpreter (`warm`) and a JavaScript one (`spare`) waiting, and that keep interpreters alive from
# block to block (`sessions`), that measures the work directory (`measure`) and what else the place uses (`usage`), and that goes on
# with submitted runs (`runs`). Each is loaded when the host asks for it.
warm = spare = sessions = measure = usage = runs = None
# The module for programs beside blocks.
programs = None
# Seconds that a killed block's shepherd has to report what was used: as a rule it has done that already.
REPORTING = 2
# Children of this program that wait for blocks and have not run any code yet.
waiting = set()
inputs, blocks = {}, {}


class Block:
    def __init__(self, number, mark, credit, shepherd, status, pipes):
        self.number = number
        self.mark = mark
        self.credit = credit
        self.shepherd = shepherd
        self.status = status
        self.pipes = pipes
        self.paused = False
        self.code = None
        self.used = UNKNOWN
        self.problem = None
        self.ended = False
        self.killing = False
        self.stopped = set()
        self.empty = 0
        # Since when nothing is left of it but its shepherd.
        self.empty_since = None
        self.oom = processes.oom_kills()
        self.file = None
        # The session's interpreter that it runs in, if any; and the submitted run that it belongs to, if any.
        self.session = None
        # What is special about a program beside blocks.
        self.program = None
        self.sink = output.kept.pop(number, None)


def scratch():
    """An unnamed file."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("fenced")
    import tempfile

    return os.dup(tempfile.TemporaryFile(dir=os.path.dirname(commands)).fileno())


def no_process(number):
    return "No process could be started: " + os.strerror(number)


def report(number, code, memory, killed, problem, block=None):
    feeds.end(number)
    run = output.kept.pop(number, None) if block is None else block.sink
    used = UNKNOWN if block is None else block.used
    if run is not None:
        run.end_program(code, memory, problem, None if block is None else block.session, used)
        return
    known = 2 if memory is None else int(memory)
    channel.send(EXIT, number, ended_with(-1 if code is None else code, known, killed, used) + (problem or "").encode())


def ended_with(code, memory, killed, used):
    return struct.pack(">iBB", code, memory, killed) + used


def start(number, mark, credit, argv, environ, program=None, terminal=None):
    """`terminal`: the rows and columns of the one to run it on."""
    given, file = inputs.pop(number, None), block_files.take(number)
    if file is not None:
        file.close()
        if file.problem is not None:
            if given is not None:
                os.close(given)
            file.remove()
            report(number, None, None, False, "The block could not be written to the work directory: " + file.problem)
            return
    if given is not None and number not in feeds.feeds:
        os.lseek(given, 0, os.SEEK_SET)
    stdin, request = given, (argv, variables(environ))
    try:
        if stdin is None:
            stdin = os.open("/dev/null", os.O_RDONLY)
        if program is None:
            started = take_spare(request, given) or begin(request, stdin, mark)
        else:
            started = begin_program(request, stdin, mark, (number, program, terminal))
    except OSError as error:
        if stdin is not None:
            os.close(stdin)
        if file is not None:
            file.remove()
        has_none = isinstance(error, terminals.NoTerminal)
        report(number, None, None, False, terminals.none_opened(error) if has_none else no_process(error.errno))
        return
    os.close(stdin)
    shepherd, status, (out, err), mark = started
    block = Block(number, mark, credit, shepherd, status, {out: STDOUT} if err is None else {out: STDOUT, err: STDERR})
    block.file = file
    block.program = program
    blocks[number] = block
    output.watch(block)
    os.set_blocking(block.status, False)
    output.readers[block.status] = block
    events.register(block.status, select.EPOLLIN)


def variables(environ):
    found = dict(environment, **environ)
    path = found.get("PATH", os.defpath)
    if "FENCED_HOST_CALLS" in environ and not path.startswith(commands + ":"):
        found["PATH"] = commands + ":" + path
    return found


def prepare_python(program, variables):
    user_site.create(variables, program, lasting_home)


def lasting(variables):
    """The variables that stay the same from block to block."""
    return {name: value for name, value in variables.items() if not name.startswith("FENCED_")}


def left_running():
    """Processes that blocks left running, which have lost their parents."""
    table = processes.processes()
    return [pid for pid, parent in table.items() if parent == processes.SELF and pid not in waiting]


def take_spare(request, given):
    taken = spare.take(*request, given is not None) if spare is not None else None
    return taken and (taken.shepherd, taken.status, taken.outputs, taken.mark)


def open_outputs():
    out = os.pipe()
    try:
        err = os.pipe()
    except OSError:
        close_all(out)
        raise
    widen(out[1], READ)
    return out, err


def close_all(ends):
    for end in ends:
        os.close(end)


def begin(request, stdin, mark):
    """Starts the block's shepherd: one that is already waiting, or a fork of this program. Returns the shepherd, the pipe on
    which it reports the end, the block's outputs, and its mark."""
    prepare_python(request[0][0], request[1])
    out, err = open_outputs()
    given = stdin, out[1], err[1]
    try:
        found = warm.fork(*request, given) if warm is not None else None
        shepherd, status = found or fork_shepherd(request, given, workspace)
    except OSError:
        close_all((out[0], err[0]))
        raise
    finally:
        close_all(given[1:])
    return shepherd, status, (out[0], err[0]), mark


def begin_program(request, stdin, mark, special):
    """The same for a program beside blocks, which never gets a waiting interpreter."""
    _, program, terminal = special
    prepare_python(request[0][0], request[1])
    if terminal is not None:
        return begin_on_terminal(request, mark, special)
    (out, end), (err, errors) = open_outputs()
    try:
        shepherd, status = fork_shepherd(request, (stdin, end, errors), workspace, program)
    except OSError:
        close_all((out, err))
        raise
    finally:
        close_all((end, errors))
    return shepherd, status, (out, err), mark


def begin_on_terminal(request, mark, special):
    number, program, terminal = special
    out, end = terminals.open_terminal(*terminal)
    writing = None
    try:
        # The terminal's own side is closed with the last of its output.
        writing = os.dup(out)
        program.terminal = out
        shepherd, status = fork_shepherd(request, (end, end, end), workspace, program)
    except OSError:
        terminals.close(out)
        close_all((out,) if writing is None else (out, writing))
        raise
    feeds.feed(number, writing)
    return shepherd, status, (out, None), mark


def end_block(block):
    for end in list(block.pipes):
        output.drain(block, end)
    block.ended = True
    if block.file is not None:
        block.file.remove()
    # Processes that the block left running may keep writing. Their output is read and dropped, since a full pipe would block
    # them.
    output.resume(block)
    now = processes.oom_kills()
    memory = None if now is None or block.oom is None else now > block.oom
    if block.program is not None and block.program.unheard:
        programs.remember(block)
    report(block.number, block.code, memory, block.killing, block.problem, block)


def read_status(block):
    try:
        word = os.read(block.status, 4)
    except BlockingIOError:
        return
    if word:
        word = struct.unpack(">I", word)[0]
        if word & FAILED:
            block.problem = no_process(word ^ FAILED)
        elif word & STARTED:
            programs.started(block, word ^ STARTED)
            return
        else:
            block.code, block.used = word, read_used(block.status)
        if not block.killing and not block.ended:
            end_block(block)
        return
    events.unregister(block.status)
    del output.readers[block.status]
    os.close(block.status)
    try:
        if os.waitpid(block.shepherd, 0)[1]:
            forget_used(block.shepherd)
    except ChildProcessError:
        pass
    del blocks[block.number]
    if not block.ended:
        if block.code is None and not block.killing:
            kill_orphans(block)
        end_block(block)
    for end in list(block.pipes):
        output.forget(block, end)


def forget_used(shepherd):
    """A shepherd was killed, and with it what it knew."""
    for block in blocks.values():
        if block.shepherd == shepherd:
            block.used = UNKNOWN


def read_used(status):
    """What follows an exit code, in the same write."""
    try:
        return used_resources.read(os.read(status, used_resources.SIZE))
    except BlockingIOError:
        return UNKNOWN


def kill_orphans(block):
    """Kills what is left of a block whose shepherd was killed. Only the mark still identifies its processes."""
    for _ in range(100):
        alive = processes.members(block.shepherd, block.mark)
        if not alive:
            return
        processes.stop(alive)
        processes.kill(alive)
        time.sleep(0.002)


def kill(block):
    if not block.killing:
        block.killing = True
        kill_step(block)
        kill_step(block)


def kill_step(block):
    if block.session is not None:
        sessions.ends.kill_step(block)
        return
    if processes.kill_step(block, processes.members(block.shepherd, block.mark)):
        (processes.kill if is_overdue(block) else processes.resume)([block.shepherd])


def is_overdue(block):
    """Returns whether a shepherd of which nothing is left has had its time to report."""
    now = time.monotonic()
    block.empty_since = block.empty_since or now
    return now - block.empty_since > REPORTING


def kill_on():
    """Takes the next step for each block that is being killed; a kill takes several steps."""
    for block in list(blocks.values()):
        if block.killing:
            kill_step(block)


def end_all():
    """Kills all blocks and waits for them to end, up to a limit."""
    for _ in range(1000):
        for block in list(blocks.values()):
            block.killing = block.ended = True
            if block.file is not None:
                block.file.remove()
            kill_step(block)
            if block.session is None and select.select([block.status], [], [], 0.005)[0]:
                read_status(block)
        if not blocks and (sessions is None or sessions.ends.end_all()):
            return
