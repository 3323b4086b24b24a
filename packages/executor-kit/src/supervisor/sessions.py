"""Keeps interpreters of Python that live from block to block, and forks them. Python 3.8 or later, standard library only.

Each is below a shepherd, like a block. It gets a block's code and its streams over a socket, and says over a pipe of that block how it
ended; nothing else that it says is listened to. The code in it is hostile: it can lie about its own blocks, as a program can, but not
about those of others, and what it cannot do is to outlive its end.
"""

import fcntl
import os
import select
import struct

import _fenced_blocks as blocks
import _fenced_processes as processes
import _socket
from _fenced_channel import RICH, SESSION_ENDED, SESSION_TOLD, STDERR, STDOUT, channel, data, events, widen

START = 'import sys; exec(compile(sys.argv[1], "<fenced>", "exec"), {"__name__": "_fenced_interpreter"})'
# Above those of the streams that an interpreter starts with.
LOWEST = 16
LONGEST = 100
KILLED = 128 + processes.signal.SIGKILL

# By number; what waits for something to read, by descriptor; and code that is to run, by the block's number.
sessions, readers, sources = {}, {}, {}
# Those that have not said yet that they are there: where they will, and what then happens.
opening = {}


class Session:
    def __init__(self, number, control, status, mark):
        self.number = number
        self.control = control
        self.status = status
        self.mark = mark
        self.shepherd = self.pid = None
        # The block that runs in it, and the processes that the blocks before have left running.
        self.block = None
        self.earlier = set()
        self.ended = self.ending = self.announced = False
        self.stopped = set()
        self.empty = 0


def obey(number, payload):
    verb, rest = payload.split(b"\0", 1)
    if verb == b"open":
        start(number, [os.fsdecode(each) for each in rest.split(b"\0")])
    elif verb == b"code":
        write(number, rest)
    elif verb == b"run":
        session, mark, credit = rest.split(b"\0")
        run(number, int(session), mark, int(credit))
    elif verb == b"fork":
        fork(number, sessions.get(int(rest)))
    elif verb == b"end" and number in sessions:
        sessions[number].ending = True
    elif verb == b"end" and number in opening:
        opening[number][1](())


def take_words(words):
    """A list that begins with its length, and what follows it."""
    count = int(words[0]) + 1
    return words[1:count], words[count:]


def start(number, words):
    program, commands, *words = words
    command, words = take_words(words)
    preload, given = take_words(words)
    environ = blocks.variables(dict(each.split("=", 1) for each in given))
    ours, other = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    status, said = None, os.pipe()
    nothing = os.open("/dev/null", os.O_RDWR)
    high = [
        fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, LOWEST)
        for each in (nothing, nothing, nothing, other.fileno(), said[1])
    ]
    session = Session(number, ours, None, b"FENCED_BLOCK=" + environ["FENCED_BLOCK"].encode())
    try:
        # Nothing of the work directory is imported before there is a block.
        variables = dict(environ, PYTHONSAFEPATH=environ.get("PYTHONSAFEPATH", "fenced"))
        request = command + ["-c", START, program, commands] + preload, variables
        session.shepherd, status = blocks.fork_shepherd(request, tuple(high))
    except OSError as error:
        channel.send(SESSION_TOLD, number, blocks.no_process(error.errno).encode())
    for each in high + [nothing, said[1]]:
        os.close(each)
    other.close()
    if status is None:
        ours.close()
        os.close(said[0])
        return
    session.status = status
    sessions[number] = session
    ours.setblocking(False)
    listen(status, lambda: hear_shepherd(session))
    expect(number, said[0], lambda words: begin(session, words))


def listen(descriptor, hear):
    os.set_blocking(descriptor, False)
    readers[descriptor] = hear
    events.register(descriptor, select.EPOLLIN)


def unlisten(descriptor):
    del readers[descriptor]
    events.unregister(descriptor)
    os.close(descriptor)


def expect(number, descriptor, take):
    """Waits for one line, and hands its words on, or none of them if it does not come."""
    opening[number] = descriptor, take

    def hear():
        try:
            text = os.read(descriptor, LONGEST)
        except BlockingIOError:
            return
        take(text.decode("ascii", "replace").split())

    listen(descriptor, hear)


def tell(number, answer):
    if number in opening:
        unlisten(opening.pop(number)[0])
        channel.send(SESSION_TOLD, number, answer.encode())


def begin(session, words):
    """It says this before any block has run in it."""
    if len(words) == 2 and words[0].isdigit():
        session.pid = int(words[0])
        tell(session.number, "ready " + words[1])
    else:
        tell(session.number, "failed")


def write(number, code):
    if number not in sources:
        sources[number] = blocks.scratch()
    view = memoryview(code)
    while len(view):
        view = view[os.write(sources[number], view) :]


def run(number, which, mark, credit):
    source, given, session = sources.pop(number), blocks.inputs.pop(number, None), sessions.get(which)
    if given is None:
        given = os.open("/dev/null", os.O_RDONLY)
    if session is None or session.ended or session.ending or session.block is not None:
        os.close(source)
        os.close(given)
        blocks.report(number, None, None, False, "gone")
        return
    for each in (source, given):
        os.lseek(each, 0, os.SEEK_SET)
    try:
        out, err, rich, status = open_pipes(4)
    except OSError as error:
        os.close(source)
        os.close(given)
        blocks.report(number, None, None, False, blocks.no_process(error.errno))
        return
    widen(out[1], blocks.READ)
    sent = send(session, b"run", (source, given, out[1], err[1], rich[1], status[1]))
    for each in (source, given, out[1], err[1], rich[1], status[1]):
        os.close(each)
    block = blocks.Block(
        number, mark, credit, session.shepherd, status[0], {out[0]: STDOUT, err[0]: STDERR, rich[0]: RICH}
    )
    block.session, session.block, blocks.blocks[number] = session, block, block
    for end in block.pipes:
        os.set_blocking(end, False)
        blocks.readers[end] = block
        data.register(end, select.EPOLLIN)
    listen(status[0], lambda: hear_block(session, block))
    if not sent:
        # It does not listen any more.
        session.ending = True


def open_pipes(count):
    """All of them, or none."""
    opened = []
    try:
        for _ in range(count):
            opened.append(os.pipe())
    except OSError:
        for each in opened:
            os.close(each[0])
            os.close(each[1])
        raise
    return opened


def send(session, verb, descriptors):
    rights = struct.pack("=%di" % len(descriptors), *descriptors)
    try:
        return session.control.sendmsg([verb], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)]) == len(verb)
    except OSError:
        return False


def hear_block(session, block):
    """The end of a block, if the interpreter says so; that it says nothing any more is no end."""
    try:
        word = os.read(block.status, 4)
    except BlockingIOError:
        return
    events.unregister(block.status)
    del readers[block.status]
    if len(word) == 4 and not block.killing and not session.ending:
        finish(session, block, struct.unpack(">I", word)[0] & 255)


def finish(session, block, code):
    if block.status in readers:
        events.unregister(block.status)
        del readers[block.status]
    os.close(block.status)
    session.block = None
    del blocks.blocks[block.number]
    block.code = code
    blocks.end_block(block)
    if not session.ended:
        # Now, when nobody waits for it.
        session.earlier = below(session) - {session.pid}


def hear_shepherd(session):
    """The interpreter has ended; or, without a word, all that was below its shepherd, or only that."""
    try:
        word = os.read(session.status, 4)
    except BlockingIOError:
        return
    if word:
        word = struct.unpack(">I", word.rjust(4, b"\0"))[0]
        end(session, KILLED if word & blocks.FAILED else word & 255)
        return
    unlisten(session.status)
    if not session.ended:
        blocks.kill_orphans(session)
        end(session, KILLED)
    if session.block is not None and not session.block.killing:
        finish(session, session.block, KILLED)
    announce(session)
    sessions.pop(session.number, None)
    try:
        os.waitpid(session.shepherd, os.WNOHANG)
    except ChildProcessError:
        pass


def end(session, code):
    if session.ended:
        return
    session.ended = True
    session.control.close()
    tell(session.number, "failed")
    if not session.ending:
        announce(session)
    if session.block is not None and not session.block.killing and not session.ending:
        finish(session, session.block, code)


def announce(session):
    """Tells the host that it has ended, once: one that is being ended has when nothing is left of it."""
    if not session.announced:
        session.announced = True
        channel.send(SESSION_ENDED, session.number)


def below(session, spared=()):
    """What is below its shepherd, without what is below those that are forked from it."""
    children = {}
    for pid, parent in processes.processes().items():
        children.setdefault(parent, []).append(pid)
    herds = {each.shepherd for each in sessions.values()}
    queue, found = list(children.get(session.shepherd, ())), set()
    while queue:
        pid = queue.pop()
        if pid not in found and pid not in herds and pid not in spared and pid != processes.SELF:
            found.add(pid)
            queue += children.get(pid, ())
    return found


def kill_step(block):
    """Kills the interpreter, and what the block has started: not what earlier ones left running."""
    session = block.session
    marked = {
        pid for pid in processes.processes() if pid not in (1, processes.SELF) and processes.has_mark(pid, block.mark)
    }
    if kill_once(block, below(session, session.earlier) | marked):
        end(session, KILLED)
        finish(session, block, KILLED)


def end_step(session):
    if kill_once(session, below(session)):
        session.ending = False
        end(session, KILLED)
        announce(session)
        if session.block is not None:
            finish(session, session.block, KILLED)


def kill_once(what, alive):
    """As for blocks in general; returns whether nothing has been alive for a while."""
    fresh = alive - what.stopped
    if fresh:
        processes.stop(fresh)
        what.stopped |= fresh
        return False
    what.stopped = set()
    processes.kill(alive)
    what.empty = 0 if alive else what.empty + 1
    return what.empty > 2


def keep_ending():
    """Takes the next step with all that are being ended; returns whether there are any."""
    for session in list(sessions.values()):
        if session.ending:
            end_step(session)
    return any(session.ending for session in sessions.values())


def end_all():
    """Begins to end all of them; returns whether nothing is left of any."""
    for session in list(sessions.values()):
        session.ending = session.ending or not session.ended or bool(below(session))
    return not keep_ending()


def fork(number, old):
    """Has an interpreter fork itself, between two blocks."""
    if old is None or old.ended or old.ending or old.block is not None:
        channel.send(SESSION_TOLD, number, b"gone")
        return
    try:
        ours, other = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        status, said = open_pipes(2)
    except OSError:
        channel.send(SESSION_TOLD, number, b"failed")
        return
    ours.setblocking(False)
    made = Session(number, ours, status[0], old.mark)
    sent = send(old, b"fork", (other.fileno(), status[1], said[1]))
    for each in (status[1], said[1]):
        os.close(each)
    other.close()
    expect(number, said[0], lambda words: begin_fork(made, old, words))
    if not sent:
        begin_fork(made, old, ())


def begin_fork(made, old, words):
    """It is somewhere below the shepherd of the first one, or nobody could tell that it has ended."""
    pids = [int(word) for word in words if word.isdigit()]
    if len(pids) != 2 or not set(pids) <= below(old):
        made.control.close()
        os.close(made.status)
        tell(made.number, "failed")
        return
    made.shepherd, made.pid = pids
    sessions[made.number] = made
    listen(made.status, lambda: hear_shepherd(made))
    tell(made.number, "ready 1")
