"""Handles the end of sessions and their blocks, on their own or by a kill. Python 3.8 or later, standard library only.

An interpreter reports the end of the block that runs in it; nothing else that it reports counts. Its code is hostile: it can lie
about its own blocks, as any program can with its exit code, but not about those of others. And it cannot survive being ended.
"""

import os
import struct
import time

import _fenced_blocks as blocks
import _fenced_processes as processes
from _fenced_block_process import FAILED
from _fenced_channel import channel
from _fenced_wire import SESSION_ENDED
from _fenced_session_table import ignore, readers, sessions, tell

KILLED = 128 + processes.signal.SIGKILL
TICKS = os.sysconf("SC_CLK_TCK")


def hear_block(session, block):
    """Handles an interpreter's report that its block has ended. If it only closes the pipe, the block has not ended."""
    try:
        word = os.read(block.status, 4)
    except BlockingIOError:
        return
    ignore(block.status)
    if len(word) == 4 and not block.killing and not session.ending:
        finish(session, block, struct.unpack(">I", word)[0] & 255)


def used(session):
    """Processor time that everything below a session's shepherd has used so far, in microseconds; `None` if that is not known."""
    if session.is_over:
        return session.reported
    try:
        # The clock of a process's processor time, see clock_getcpuclockid(3).
        own = 0 if session.ended else time.clock_gettime(~session.pid << 3 | 2)
        ended = sum(ticks_of_ended(pid) for pid in (session.pid, session.shepherd)[session.ended :])
    except (OSError, TypeError, ValueError, IndexError):
        return session.reported
    return max(session.reported or 0, round((own + ended / TICKS) * 1000000))


def ticks_of_ended(pid):
    """Of the processes that a process has waited for."""
    with open("/proc/%d/stat" % pid, "rb") as file:
        # The name, in parentheses, may contain anything.
        words = file.read().rpartition(b")")[2].split()
    return int(words[13]) + int(words[14])


def finish(session, block, code):
    now = used(session)
    if now is not None and session.used is not None:
        # The memory that it has used at most is not that of this block.
        block.used = struct.pack(">qq", max(0, now - session.used), -1)
    if block.status in readers:
        ignore(block.status)
    os.close(block.status)
    session.block = None
    del blocks.blocks[block.number]
    block.code = code
    blocks.end_block(block)
    if not session.ended:
        # Done now, while nobody is waiting.
        session.earlier = below(session) - {session.pid}


def hear_shepherd(session):
    """Handles a shepherd's report that the interpreter has ended. If it only closes the pipe, it has exited: everything below it
    is dead, or it was killed."""
    try:
        word = os.read(session.status, 4)
    except BlockingIOError:
        return
    if word:
        word = struct.unpack(">I", word.rjust(4, b"\0"))[0]
        if session.reports and not word & FAILED:
            microseconds = struct.unpack(">qq", blocks.read_used(session.status))[0]
            session.reported = None if microseconds < 0 else microseconds
        end(session, KILLED if word & FAILED else word & 255)
        return
    ignore(session.status)
    os.close(session.status)
    session.is_over = True
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
    """Tells the host once that a session has ended. A session that is being ended counts only when nothing is left of it."""
    if not session.announced:
        session.announced = True
        channel.send(SESSION_ENDED, session.number)


def below(session, spared=()):
    """Returns the processes below its shepherd, except those below the shepherds of its forks."""
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
    """Takes the next step to kill the interpreter and what the block started, but not what earlier blocks left running."""
    session = block.session
    marked = {
        pid for pid in processes.processes() if pid not in (1, processes.SELF) and processes.has_mark(pid, block.mark)
    }
    if processes.kill_step(block, below(session, session.earlier) | marked):
        # Its shepherd is about to report that, and what was used; code may have stopped it.
        has_reported = session.is_over or session.ended and below(session)
        if not has_reported and not blocks.is_overdue(block):
            processes.resume([session.shepherd])
            return
        end(session, KILLED)
        finish(session, block, KILLED)


def end_step(session):
    if processes.kill_step(session, below(session)):
        session.ending = False
        end(session, KILLED)
        announce(session)
        if session.block is not None:
            finish(session, session.block, KILLED)


def keep_ending():
    """Takes the next step for each session that is being ended; returns whether there are any left."""
    for session in list(sessions.values()):
        if session.ending:
            end_step(session)
    return any(session.ending for session in sessions.values())


def end_all():
    """Takes the next step to end all sessions; returns whether nothing is left of them."""
    for session in list(sessions.values()):
        session.ending = session.ending or not session.ended or bool(below(session))
    return not keep_ending()
