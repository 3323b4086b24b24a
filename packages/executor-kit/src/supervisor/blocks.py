"""Starts a block under its shepherd, hands on its output, and ends it. Python 3.8 or later, standard library only.

The shepherd is a fork of the supervisor that is the "subreaper" of all that the block starts: whatever loses its parent becomes
its child. So the tree below it is the block, however its processes hide, and its end says that all of it is dead. A block is
killed by stopping all of its processes first, so that none can start another one meanwhile.
"""

import errno
import os
import select
import struct
import time

import _fenced_block_files as block_files
import _fenced_feeds as feeds
import _fenced_processes as processes
from _fenced_channel import CAPACITY, EXIT, READ, RICH, STDERR, STDOUT, channel, data, events, widen

FAILED = 1 << 31

workspace = "/"
environment = {}
# Where the command is that calls functions of the host, for blocks that may.
commands = ""
# The modules that keep an interpreter waiting, for Python and for JavaScript, and those that live from block to block, once the
# host has asked for that.
warm = spare = sessions = None
# The children of this program that wait for blocks, and have run nothing of anybody's.
waiting = set()
inputs, blocks, readers = {}, {}, {}


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
        self.problem = None
        self.ended = False
        self.killing = False
        self.stopped = set()
        self.empty = 0
        self.oom = processes.oom_kills()
        self.file = None
        # The interpreter that it runs in, if that lives on.
        self.session = None


def scratch():
    """A file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("fenced")
    import tempfile

    return os.dup(tempfile.TemporaryFile(dir=os.path.dirname(commands)).fileno())


def no_process(number):
    return "No process could be started: " + os.strerror(number)


def report(number, code, memory, killed, problem):
    feeds.end(number)
    known = 2 if memory is None else int(memory)
    head = struct.pack(">iBB", -1 if code is None else code, known, killed)
    channel.send(EXIT, number, head + (problem or "").encode())


def start(number, mark, credit, argv, environ):
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
    stdin = given if given is not None else os.open("/dev/null", os.O_RDONLY)
    request = argv, variables(environ)
    try:
        started = take_spare(request, given) or begin(request, stdin, mark)
    except OSError as error:
        os.close(stdin)
        if file is not None:
            file.remove()
        report(number, None, None, False, no_process(error.errno))
        return
    os.close(stdin)
    shepherd, status, (out, err), mark = started
    block = Block(number, mark, credit, shepherd, status, {out: STDOUT, err: STDERR})
    block.file = file
    blocks[number] = block
    for end in block.pipes:
        os.set_blocking(end, False)
        readers[end] = block
        data.register(end, select.EPOLLIN)
    os.set_blocking(block.status, False)
    readers[block.status] = block
    events.register(block.status, select.EPOLLIN)


def variables(environ):
    found = dict(environment, **environ)
    if "FENCED_HOST_CALLS" in environ:
        found["PATH"] = commands + ":" + found["PATH"]
    return found


def lasting(variables):
    """Those that do not differ from block to block."""
    return {name: value for name, value in variables.items() if not name.startswith("FENCED_")}


def left_running():
    """What blocks left running, and whatever lost its parent."""
    table = processes.processes()
    return [pid for pid, parent in table.items() if parent == processes.SELF and pid not in waiting]


def take_spare(request, given):
    taken = spare.take(*request, given is not None) if spare is not None else None
    return taken and (taken.shepherd, taken.status, taken.outputs, taken.mark)


def begin(request, stdin, mark):
    """Starts the block's shepherd: one that waits already, or a fork of this program. Returns it, where it tells of the
    block's end, the block's outputs, and its mark."""
    out, err = os.pipe(), os.pipe()
    widen(out[1], READ)
    given = stdin, out[1], err[1]
    try:
        found = warm.fork(*request, given) if warm is not None else None
        shepherd, status = found or fork_shepherd(request, given)
    except OSError:
        for end in (out[0], err[0]):
            os.close(end)
        raise
    finally:
        for end in given[1:]:
            os.close(end)
    return shepherd, status, (out[0], err[0]), mark


def fork_shepherd(request, given):
    status, told = os.pipe()
    try:
        shepherd = os.fork()
    except OSError:
        os.close(status)
        os.close(told)
        raise
    if shepherd == 0:
        try:
            herd(request, given, told)
        finally:
            os._exit(1)
    os.close(told)
    return shepherd, status


def herd(request, given, status):
    keep = sorted(given + (status,))
    # Also the ends that other blocks' input is written to: as long as this one had them, those would never see its end.
    highest = max([keep[-1]] + list(readers) + list(feeds.writers))
    for lower, upper in zip([-1] + keep, keep + [highest + 256]):
        os.closerange(lower + 1, upper)
    processes.adopt_orphans()
    try:
        program = os.fork()
    except OSError as error:
        os.write(status, struct.pack(">I", FAILED | error.errno))
        return
    if program == 0:
        try:
            become(request, given)
        finally:
            os._exit(127)
    for end in given:
        os.close(end)
    while True:
        try:
            pid, ended = os.waitpid(-1, 0)
        except ChildProcessError:
            os._exit(0)
        if pid == program:
            code = 128 + os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended)
            os.write(status, struct.pack(">I", code))


def become(request, given):
    os.setsid()
    for target, source in enumerate(given):
        os.dup2(source, target)
    processes.default_signals()
    processes.protect(1)
    try:
        # The kernel, short of memory, ends blocks and not their supervisor.
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass
    argv, environ = request
    try:
        os.chdir(workspace)
        os.execvpe(argv[0], argv, environ)
    except OSError as error:
        os.write(2, (argv[0] + " could not be started: " + os.strerror(error.errno) + "\n").encode())
        os._exit(127 if error.errno == errno.ENOENT else 126)


def read_pipe(block, end):
    if block.pipes[end] == RICH:
        # What was printed before comes before.
        for each, kind in list(block.pipes.items()):
            if kind != RICH:
                drain(block, each)
    try:
        chunk = os.read(end, READ)
    except BlockingIOError:
        return 0
    if not chunk:
        forget(block, end)
        return 0
    if not block.ended:
        channel.send(block.pipes[end], block.number, chunk)
        block.credit -= len(chunk)
        if block.credit <= 0 and not block.paused:
            block.paused = True
            for each in block.pipes:
                data.unregister(each)
    return len(chunk)


def drain(block, end):
    left = CAPACITY
    while left > 0:
        count = read_pipe(block, end)
        if count == 0:
            break
        left -= count


def forget(block, end):
    del block.pipes[end], readers[end]
    if not block.paused:
        data.unregister(end)
    os.close(end)


def give_credit(block, credit):
    block.credit += credit
    if block.credit > 0:
        resume(block)


def resume(block):
    if block.paused:
        block.paused = False
        for end in block.pipes:
            data.register(end, select.EPOLLIN)


def end_block(block):
    for end in list(block.pipes):
        drain(block, end)
    block.ended = True
    if block.file is not None:
        block.file.remove()
    # What the block left running may go on writing: it is read and dropped, or it would be stopped by a full pipe.
    resume(block)
    now = processes.oom_kills()
    memory = None if now is None or block.oom is None else now > block.oom
    report(block.number, block.code, memory, block.killing, block.problem)


def read_status(block):
    try:
        word = os.read(block.status, 4)
    except BlockingIOError:
        return
    if word:
        word = struct.unpack(">I", word)[0]
        if word & FAILED:
            block.problem = no_process(word ^ FAILED)
        else:
            block.code = word
        if not block.killing:
            end_block(block)
        return
    events.unregister(block.status)
    del readers[block.status], blocks[block.number]
    os.close(block.status)
    try:
        os.waitpid(block.shepherd, 0)
    except ChildProcessError:
        pass
    if not block.ended:
        if block.code is None and not block.killing:
            kill_orphans(block)
        end_block(block)
    for end in list(block.pipes):
        forget(block, end)


def kill_orphans(block):
    """Something killed the shepherd: what is left of the block tells itself by its mark alone."""
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
        sessions.kill_step(block)
        return
    alive = processes.members(block.shepherd, block.mark)
    fresh = alive - block.stopped
    if fresh:
        processes.stop(fresh)
        block.stopped |= fresh
        return
    block.stopped = set()
    processes.kill(alive)
    block.empty = 0 if alive else block.empty + 1
    if block.empty > 2:
        processes.kill([block.shepherd])


def kill_on():
    """Takes the next step with all blocks that are being killed; they need several."""
    for block in list(blocks.values()):
        if block.killing:
            kill_step(block)


def end_all():
    """Kills all blocks, and waits for their end, though not for ever."""
    for _ in range(1000):
        for block in list(blocks.values()):
            block.killing = block.ended = True
            kill_step(block)
            if block.session is None and select.select([block.status], [], [], 0.005)[0]:
                read_status(block)
        if not blocks and (sessions is None or sessions.end_all()):
            return
