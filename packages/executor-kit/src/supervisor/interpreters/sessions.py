"""Keeps Python interpreters that live from block to block, and forks them. Python 3.8 or later, standard library only.

Each one runs below a shepherd, like a block. It receives a block's code and streams over a socket, and reports the block's end on
a new pipe for each block.
"""

import fcntl
import os
import struct

import _fenced_block_output as output
import _fenced_blocks as blocks
import _fenced_session_ends as ends
import _socket
from _fenced_channel import READ, channel, widen
from _fenced_wire import RICH, SESSION_ENDED, SESSION_TOLD, STDERR, STDOUT
from _fenced_launch import fork_shepherd
from _fenced_session_table import Session, expect, listen, opening, readers, sessions, tell

START = 'import sys; exec(compile(sys.argv[1], "<fenced>", "exec"), {"__name__": "_fenced_interpreter"})'
# Higher than the descriptors that an interpreter starts with.
LOWEST = 16

# The code of blocks that have not started yet, by block number.
sources = {}
# Blocks of the host that wait for a submitted run to end.
waiting = []
# How the last interpreter was started that is not a copy.
last_start = None


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
        # It is announced again if it has ended and only what its blocks have left running lives on.
        sessions[number].ending, sessions[number].announced = True, False
    elif verb == b"end" and number in opening:
        opening[number][1](())
    elif verb == b"end":
        channel.send(SESSION_ENDED, number)


def hear(descriptor):
    if descriptor in readers:
        readers[descriptor]()


# Large arrays in huge pages, where the system has them: a fork copies one entry for 2 MiB of memory instead of 512. The interpreter
# removes this spelling of 1, which nobody else uses, from its variables.
HUGE_PAGES = "glibc.malloc.hugetlb=0x1"


def take_words(words):
    """Splits off a list that is preceded by its length."""
    count = int(words[0]) + 1
    return words[1:count], words[count:]


def start(number, words):
    global last_start
    if words[2] != "copy":
        last_start = words
    program, commands, kind, *words = words
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
    session.is_copy = kind == "copy"
    session.reports = True
    try:
        # Keeps modules of the work directory from being imported before the first block.
        variables = dict({"GLIBC_TUNABLES": HUGE_PAGES}, **environ)
        variables["PYTHONSAFEPATH"] = environ.get("PYTHONSAFEPATH", "fenced")
        blocks.prepare_python(command[0], variables)
        request = command + ["-c", START, program, commands] + preload, variables
        session.shepherd, status = fork_shepherd(request, tuple(high), blocks.workspace)
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
    listen(status, lambda: ends.hear_shepherd(session))
    expect(number, said[0], lambda words: begin(session, words))


def begin(session, words):
    """Handles what the interpreter reports before any block has run in it."""
    if len(words) == 2 and words[0].isdigit():
        session.pid, session.displays = int(words[0]), words[1]
        tell(session.number, ("reopened " if session.is_reopened else "ready ") + words[1])
    else:
        tell(session.number, "failed")


def forget(number):
    """Ends a block that is waiting; returns whether there was one."""
    found = [each for each in waiting if each[0] == number]
    for each in found:
        waiting.remove(each)
        os.close(sources.pop(number))
        if number in blocks.inputs:
            os.close(blocks.inputs.pop(number))
        blocks.report(number, None, None, True, None)
    return bool(found)


def reopen(number):
    """Starts an interpreter like the last one, for a submitted run; returns whether that was possible."""
    if last_start is None:
        return False
    # The last variable marks its processes, and no others.
    start(number, last_start[:-1] + ["FENCED_BLOCK=" + os.urandom(16).hex()])
    if number not in sessions:
        return False
    sessions[number].is_reopened = True
    return True


def state(number):
    """Returns `opening`, `ready` or `failed`."""
    if number in opening:
        return "opening"
    return "ready" if number in sessions and sessions[number] in living() else "failed"


def reopening():
    """The interpreter that is starting for a submitted run, if there is one."""
    return next((each for each in sessions.values() if each.is_reopened and each.number in opening), None)


def keep_first():
    """Ends all but the interpreter that the next host goes on with: copies belong to the last host, as do those that are starting, except
    for the one that a submitted run goes on with."""
    for number in list(opening):
        if number not in sessions:
            opening[number][1](())
    for source in sources.values():
        os.close(source)
    sources.clear()
    waiting.clear()
    found = [each.number for each in sessions.values() if each.pid is not None and not each.is_copy]
    replacement = reopening()
    kept = max(found, default=None) if replacement is None else replacement.number
    for each in sessions.values():
        if each.number != kept:
            each.ending, each.announced = True, False


def living():
    return [each for each in sessions.values() if not each.ended and not each.ending]


def numbers():
    """Those in use."""
    return [*sessions, *opening]


def write(number, code):
    if number not in sources:
        sources[number] = blocks.scratch()
    view = memoryview(code)
    while len(view):
        view = view[os.write(sources[number], view) :]


def run(number, which, mark, credit):
    if which in sessions and sessions[which].block is not None and sessions[which].block.sink is not None:
        waiting.append((number, which, mark, credit))
        return
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
    widen(out[1], READ)
    sent = send(session, b"run", (source, given, out[1], err[1], rich[1], status[1]))
    for each in (source, given, out[1], err[1], rich[1], status[1]):
        os.close(each)
    block = blocks.Block(
        number, mark, credit, session.shepherd, status[0], {out[0]: STDOUT, err[0]: STDERR, rich[0]: RICH}
    )
    block.session, session.block, blocks.blocks[number] = session, block, block
    output.watch(block)
    listen(status[0], lambda: ends.hear_block(session, block))
    session.used = ends.used(session)
    if not sent:
        # It has closed its socket.
        session.ending = True


def open_pipes(count):
    """Opens all of them, or none."""
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


def fork(number, old):
    """Makes an interpreter fork itself between two blocks."""
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
    """Checks that the fork is below the shepherd of its original; otherwise its end would go unnoticed."""
    pids = [int(word) for word in words if word.isdigit()]
    if len(pids) != 2 or not set(pids) <= ends.below(old):
        made.control.close()
        os.close(made.status)
        tell(made.number, "failed")
        return
    made.shepherd, made.pid = pids
    made.displays, made.is_copy = "1", True
    sessions[made.number] = made
    listen(made.status, lambda: ends.hear_shepherd(made))
    tell(made.number, "ready 1")
