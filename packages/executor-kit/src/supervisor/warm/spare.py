"""Keeps one JavaScript interpreter started and waiting for a block. Python 3.8 or later, standard library only.

Unlike the Python template, it cannot close its memory to other processes. So it never runs alongside a process of another block:
it starts when there is none, and is killed before a block that does not use it starts.
"""

import os
import select

import _fenced_blocks as blocks
import _fenced_processes as processes
import _socket
from _fenced_channel import READ, widen
from _fenced_greeting import own_variables
from _fenced_launch import fork_shepherd

LONGEST = 32768
WAIT = 2
# Other variables may take effect when Node starts, such as `NODE_OPTIONS`.
KNOWN = ("ENV", "PATH", "EXTRA_CA_CERTS", "NO_WARNINGS", "USE_ENV_PROXY")

program = ""
command = []
settled = spare = None
# Whether the last block was in JavaScript.
wanted = True


class Spare:
    def __init__(self, shepherd, status, outputs, way, mark):
        self.shepherd = shepherd
        self.status = status
        self.outputs = outputs
        self.way = way
        self.mark = mark


def configure(payload):
    """Takes the waiting program, the command before it, and the variables that most blocks have."""
    global program, command, settled, wanted
    program, count, *words = [os.fsdecode(each) for each in payload.split(b"\0")]
    command, given = words[: int(count)], words[int(count) :]
    settled = blocks.lasting(blocks.variables(dict(each.split("=", 1) for each in given)))
    wanted = True
    end()


def suitable(variables):
    """Returns whether none of these variables makes Node run or read files before it has a block, since the last block may have
    written those files."""
    for name in variables:
        if name.startswith("NODE_") and name[5:] not in KNOWN:
            return False
        if name.startswith(("LD_", "OPENSSL_")):
            return False
    return True


def keep():
    if (
        spare is None
        and wanted
        and settled is not None
        and suitable(settled)
        and not blocks.blocks
        and not blocks.left_running()
    ):
        start()


def start():
    global spare, wanted
    file = os.path.join(os.path.dirname(blocks.commands), "waiting.cjs")
    opened = []
    try:
        if os.path.lexists(file):
            os.unlink(file)
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
            written.write(program)
        opened += os.pipe() + os.pipe() + tuple(each.detach() for each in _socket.socketpair())
        out, error, way, given = opened[0], opened[2], opened[4], (opened[1], opened[3], opened[5])
        widen(given[0], READ)
        opened.append(os.open("/dev/null", os.O_RDONLY))
        mark = "FENCED_BLOCK=" + os.urandom(16).hex()
        variables = dict(own_variables(), **dict([mark.split("=")], **settled))
        shepherd, status = fork_shepherd((command + [file], variables), (opened[-1],) + given, blocks.workspace)
    except OSError:
        wanted = False
        for each in opened:
            os.close(each)
        return
    for each in given + (opened[-1],):
        os.close(each)
    spare = Spare(shepherd, status, (out, error), _socket.socket(fileno=way), mark.encode())
    blocks.waiting.add(shepherd)


def take(argv, variables, has_input):
    """Makes the interpreter run a block; returns its `Spare`, or `None` if it cannot run this block."""
    global spare, settled, wanted
    wanted = argv[:-1] == command
    if wanted:
        same, settled = blocks.lasting(variables) == settled, blocks.lasting(variables)
    if spare is None:
        return None
    own = ["%s=%s" % each for each in variables.items() if each[0].startswith("FENCED_") and each[0] != "FENCED_BLOCK"]
    words = b"\0".join(os.fsencode(each) for each in argv[-1:] + own)
    if not wanted or not same or has_input or len(words) > LONGEST or not send(words):
        end()
        return None
    taken, spare = spare, None
    taken.way.close()
    blocks.waiting.discard(taken.shepherd)
    return taken


def send(words):
    try:
        spare.way.setblocking(False)
        if spare.way.send(words) != len(words):
            return False
        spare.way.shutdown(_socket.SHUT_WR)
        return has_begun()
    except OSError:
        return False


def has_begun():
    """Waits for its answer, which comes before it runs the block. Without an answer it is killed, so that a block never runs
    twice."""
    if not select.select([spare.way], [], [], WAIT)[0]:
        processes.kill(processes.members(spare.shepherd, spare.mark))
    return bool(select.select([spare.way], [], [], WAIT)[0]) and spare.way.recv(1) == b"1"


def end():
    """Kills the interpreter, which has started no processes and run no block, and waits until it is dead."""
    global spare
    if spare is None:
        return
    old, spare = spare, None
    # If it has ended, so has its shepherd, whose process id may now belong to something else.
    shepherd = set() if select.select([old.status], [], [], 0)[0] else {old.shepherd}
    processes.stop(shepherd)
    processes.kill(processes.members(old.shepherd, old.mark) | shepherd)
    blocks.kill_orphans(old)
    old.way.close()
    for each in old.outputs + (old.status,):
        os.close(each)
    try:
        os.waitpid(old.shepherd, 0)
    except ChildProcessError:
        pass
    blocks.waiting.discard(old.shepherd)
