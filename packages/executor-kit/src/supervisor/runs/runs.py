"""Works through the blocks of submitted runs without the host. Python 3.8 or later, standard library only.

A host sends all of a run at once: for each block, the frames that start it. What happens then goes into the run's log, and from there to
whichever host follows it; a run never waits for that. The supervisor loads this module when a host first asks for it.
"""

import struct
import time

import _fenced_block_output as output
import _fenced_blocks as blocks
import _fenced_keeper as keeper
import _fenced_run_calls as run_calls
import _fenced_supervisor as supervisor
import _fenced_tunnels as tunnels
from _fenced_channel import HEADER, channel
from _operator import _compare_digest as same
from _fenced_run_displays import Displays
from _fenced_run_log import ERR, EXIT, NOTE, OUT, OVER, REFUSED, RICH_EXIT, Log
from _fenced_wire import RUN_ENTRY, RUN_TOLD, SESSION, STDERR, STDOUT

# Runs that have ended: how many are kept, and their size; and how many ids of others are remembered.
MOST_ENDED, MOST_ENDED_BYTES, MOST_FORGOTTEN = 100, 67108864, 10000
# What unfinished runs may take: what they have room for, and what was submitted.
MOST_UNFINISHED_BYTES = 67108864
# Displays of unfinished runs, in bytes.
MOST_DISPLAY_BYTES = 33554432
# Notes of one run, in bytes.
MOST_NOTE_BYTES = 2097152
PIECE = 262144
# The last bytes of an error.
LONGEST_ERROR = 200
KILLED, BUS_ERROR = 137, 135
# As in `guard-workspace.ts`: seconds between measurements of the work directory, the share of time that they may take, what the
# block's own file may add, and the exit code of a block that has exceeded the limit.
LOOK, MEASURING_SHARE, OWN_FILES, WORKSPACE_FULL = 0.1, 0.2, 1048576, 153
FULL = ("No space left on device", "Disk quota exceeded")
# What a time limit adds to the output of a block that was waiting for a program.
UNANSWERED = (
    "\nThe block %s waiting for %s: no program was connected to the session that could answer. Connect to it in time.\n"
)

# By number, in the order of their submission; and those that the host is still sending.
runs, incoming = {}, {}
# The digests of the blocks of runs that are no longer kept, by id.
forgotten = {}


class Run:
    def __init__(self, number, words):
        self.number = number
        self.id, self.content, self.uuid, room, total, limit, serial, self.memory_text, self.bus_text, *spare = words
        # In a session with variables, one run at a time has its turn, which the host gives it; a host that is gone does not.
        self.serial = serial == "serial"
        self.going = not self.serial
        now = time.monotonic()
        self.until, self.limit = now + float(total), float(limit)
        # Numbers for interpreters, one for each block.
        self.spare = [int(each) for each in spare]
        self.log = Log(int(room))
        # What blocks prove with that they may call functions, and the block whose calls the host answers.
        self.tokens, self.served = [], None
        # What the host wants to know again, and each block's frames, by what they do.
        self.record, self.steps = bytearray(), [{} for _ in spare]
        self.submitted = self.submitted_bytes = 0
        # `running`, `finished` or `failed`.
        self.state = "running"
        self.block = -1
        # The limit on the work directory, and for the block; and when to measure it next, or `None` while that is being done.
        self.most, self.full_text, self.allowed, self.look_at, self.is_full = 0, "", 0, None, False
        # What of the block runs now, and since when and until when the block may run.
        self.phase = None
        self.began = self.block_until = 0
        # Why it is to end: `timeout`, `cancelled`, `stopped`.
        self.cause = None
        self.next = self.opening = None
        # What a program said before the block.
        self.said = b""
        # What the last program of the block has used.
        self.used = blocks.UNKNOWN
        self.displays = Displays(self.log)
        self.note_bytes = 0
        # The last entry that the host has; `None` if it does not follow. And the last one that it was sent.
        self.cursor, self.sent = None, 0

    @property
    def size(self):
        return self.log.gross + len(self.record)

    def numbers(self):
        return [self.number, *self.spare] + [
            number_of(each) for step in self.steps for name, each in step.items() if name != "say"
        ]

    # What runs

    def advance(self, now):
        """Begins what is next, and ends what has run for too long."""
        if self.state != "running":
            return
        if self.opening is not None:
            self.await_interpreter()
        elif self.next is not None:
            name, self.next = self.next, None
            self.start(name)
        elif self.phase is None and self.may_go(now):
            self.begin_block(now)
        if self.state != "running" or self.phase in (None, "measure") or self.cause is not None:
            return
        if now >= self.block_until:
            self.end("timeout")
        elif self.look_at is not None and now >= self.look_at:
            self.look(now)

    def may_go(self, now):
        if self.block >= 0 or not self.serial or self.cause is not None or now >= self.until:
            return True
        return (self.going or keeper.is_alone) and not is_taken()

    def due(self):
        """When to look again; 0: now."""
        if self.next is not None or self.phase is None and self.block >= 0:
            return 0
        if self.phase is None:
            return self.until
        if self.cause is not None or self.phase == "measure":
            # Something else says when that is over.
            return float("inf")
        return self.block_until if self.look_at is None else min(self.look_at, self.block_until)

    def begin_block(self, now):
        if self.cause is not None:
            self.finish(self.cause)
        elif self.block + 1 == len(self.steps) or now >= self.until:
            self.finish("done")
        else:
            self.block += 1
            self.began, self.block_until = now, min(now + self.limit, self.until)
            self.said, self.used = b"", blocks.UNKNOWN
            self.displays.begin_block()
            self.log.begin_block()
            step = self.steps[self.block]
            first = "write" if "write" in step else "main" if "main" in step else "say"
            self.is_full, self.look_at = False, None
            if self.most and first != "say":
                self.phase = "measure"
                blocks.measure.ask(0, 1 << 53, lambda size: self.start_measured(size, first))
            else:
                self.next = self.phase = first

    def start_measured(self, size, first):
        """A work directory that exceeds the limit already must not grow."""
        self.allowed = max(self.most, size + OWN_FILES)
        if self.state == "running":
            self.next = self.phase = first
            self.look_at = time.monotonic() + LOOK

    def look(self, now):
        """Measures the work directory while a program runs."""
        self.look_at = None
        block = self.block

        def tell(size):
            if self.state != "running" or self.block != block or self.phase in (None, "measure"):
                return
            then = time.monotonic()
            self.look_at = then + max(LOOK, (then - now) / MEASURING_SHARE)
            if size > self.allowed:
                self.end("full")

        blocks.measure.ask(0, self.allowed, tell)

    def start(self, name):
        self.phase = name
        step = self.steps[self.block]
        if self.cause is not None:
            # It was to end before it began.
            self.end_program(None, None, "")
            return
        if name == "say":
            self.log.print(ERR, step["say"])
            self.end_block(1, False)
            return
        frames, number = step[name], number_of(step[name])
        output.kept[number] = self
        for kind, payload in split(frames):
            if kind == SESSION and payload.startswith(b"run\0"):
                payload = self.with_interpreter(payload)
            supervisor.obey(kind, number, payload)

    def with_interpreter(self, payload):
        """The interpreter that the host knew may have ended since."""
        verb, which, rest = payload.split(b"\0", 2)
        living = [each.number for each in blocks.sessions.living() if not each.is_copy]
        if living and int(which) not in living:
            which = b"%d" % max(living)
        return b"\0".join((verb, which, rest))

    def open_interpreter(self):
        """Opens another one in place of one that has ended."""
        spare, self.spare[self.block] = self.spare[self.block], 0
        if spare and blocks.sessions.reopen(spare):
            self.opening, self.phase = spare, "open"
        else:
            self.finish("failed", "The Python session ended, and could not be started again")

    def await_interpreter(self):
        opened = blocks.sessions.state(self.opening)
        if opened == "opening":
            return
        self.opening = None
        if opened == "ready":
            self.next = "main"
        else:
            self.finish("failed", "The Python session did not start again")

    def end(self, cause):
        """Ends what runs now."""
        if self.state != "running" or self.cause is not None:
            return
        self.cause = cause
        if cause == "timeout":
            self.say_unanswered()
        for block in list(blocks.blocks.values()):
            if block.sink is self:
                blocks.kill(block)
        if self.opening is not None:
            self.opening = None
            self.finish_block_early()

    def say_unanswered(self):
        verb, found = "was", []
        if run_calls.is_waiting(self):
            found.append("host functions")
        if tunnels.is_waited_for(tunnels.NETWORK):
            # Nobody knows whose connections these are.
            verb = "may have been"
            found.append("the network")
        if found and self.phase == "main":
            self.log.print(ERR, (UNANSWERED % (verb, " and ".join(found))).encode())

    def finish_block_early(self):
        if self.cause in ("timeout", "full"):
            self.end_block(KILLED, False)
        else:
            self.finish(self.cause)

    def finish(self, state, text=""):
        """The run is over."""
        self.state = "finished" if state == "done" else "failed"
        self.log.add(OVER, ("%s\0%.3f\0%s" % (state, (time.monotonic() - self.submitted) * 1000, text)).encode())
        self.steps, self.spare, self.phase, self.tokens = [], [], None, []
        run_calls.close_of(self)
        forget_ended(self)

    # What programs print, and how they end

    def take(self, kind, data):
        """Takes what a program prints. The memory is used again."""
        if self.phase == "write":
            self.said = (self.said + bytes(data))[-LONGEST_ERROR:] if kind == STDERR else self.said
        elif kind == STDOUT:
            self.log.print(OUT, bytes(data))
        elif kind == STDERR:
            self.log.print(ERR, bytes(data))
        elif not self.displays.take(data, has_room):
            self.end_forger()

    def end_forger(self):
        """These are no displays: code has written there."""
        for block in blocks.blocks.values():
            if block.sink is self:
                block.killing = True

    def end_program(self, code, memory, problem, session=None, used=blocks.UNKNOWN):
        """Handles a program's end. `problem`: why it has not begun; `used`: see `used_resources.py`."""
        name = self.phase
        if name != "write":
            self.used = used
        if name == "write":
            if code == 0 and self.cause is None:
                self.next = "main"
            elif self.cause is not None:
                self.finish_block_early()
            else:
                self.log.add(REFUSED, (problem or "").encode() or self.said)
                self.end_block(1, False)
        elif self.cause in ("cancelled", "stopped"):
            self.finish(self.cause)
        elif problem == "gone":
            self.open_interpreter()
        elif problem and name == "main" and "inline" in self.steps[self.block] and problem.endswith(FULL):
            self.next = "inline"
        elif problem:
            self.finish("failed", problem)
        else:
            code = KILLED if code is None or code < 0 else code
            if code == KILLED and memory:
                self.log.print(ERR, self.memory_text.encode())
            if code == BUS_ERROR:
                self.log.print(ERR, self.bus_text.encode())
            lost, is_interpreted = session is not None and session.ended, session is not None
            if self.most and self.cause is None:
                self.phase, self.look_at = "measure", None
                blocks.measure.ask(0, self.allowed, lambda size: self.end_measured(size, code, lost, is_interpreted))
            else:
                self.end_block(code, lost, is_interpreted)

    def end_measured(self, size, code, lost, is_interpreted):
        if self.state != "running":
            return
        self.is_full = size > self.allowed
        self.end_block(code, lost, is_interpreted)

    def end_block(self, code, lost, is_interpreted=False):
        if self.cause == "full" or self.is_full:
            self.log.print(ERR, self.full_text.encode())
            code = WORKSPACE_FULL
        self.log.end_block()
        timed_out = self.cause == "timeout"
        duration = (time.monotonic() - self.began) * 1000
        end = code, timed_out, lost, duration, *struct.unpack(">qq", self.used)
        self.log.add(RICH_EXIT if is_interpreted else EXIT, b"%d %d %d %.3f %d %d" % end)
        self.steps[self.block] = {}
        self.phase = None
        run_calls.close_of(self)
        if code or timed_out:
            self.finish("done")

    # The host

    def note(self, text):
        """Keeps what the host wants to be read in its place: calls of its functions, for example."""
        # A call that ended with the last block is told too late.
        if self.state == "running":
            self.note_bytes += len(text)
            if self.note_bytes <= MOST_NOTE_BYTES:
                self.log.add(NOTE, text)
            else:
                self.log.skip(NOTE)
        channel.send(RUN_TOLD, self.number, b"noted")

    def is_serving(self, block):
        return block == self.served

    def serve(self, block):
        """The host answers the calls of a block."""
        self.served = block
        run_calls.send_waiting(self, block)

    def follow(self, cursor):
        if cursor == 0:
            self.sent = 0
            self.send(0, b"h", self.record)
        # More may have been sent before a pause arrived here.
        self.cursor = max(cursor, self.sent)

    def pump(self):
        """Sends what the host has not had, as long as that does not wait."""
        while self.cursor is not None and not channel.waiting and not channel.muted:
            entry, missing, before = self.log.after(self.cursor)
            if entry is None:
                if self.state != "running":
                    self.cursor = None
                return
            if missing:
                counted = b"%d %d %d" % (missing - self.cursor, *(before or (-1, -1)))
                self.send(missing, b"g", counted)
            self.send(entry.number, entry.kind, entry.payload)
            self.cursor = self.sent = entry.number
            self.log.seen = max(self.log.seen, entry.number)

    def send(self, number, kind, payload):
        payload = memoryview(payload)
        for at in range(0, max(1, len(payload)), PIECE):
            is_last = at + PIECE >= len(payload)
            channel.send(RUN_ENTRY, self.number, struct.pack(">Qc?", number, kind, is_last) + payload[at : at + PIECE])


def obey(number, payload):
    verb, _, rest = payload.partition(b"\0")
    if verb == b"open":
        incoming[number] = Run(number, rest.decode().split("\0"))
    elif verb == b"record" and number in incoming:
        incoming[number].record += rest
    elif verb == b"step" and number in incoming:
        index, name, frames = rest.split(b"\0", 2)
        step = incoming[number].steps[int(index)]
        step[name.decode()] = step.get(name.decode(), b"") + frames
    elif verb == b"limit" and number in incoming:
        most, text = rest.split(b"\0", 1)
        incoming[number].most, incoming[number].full_text = int(most), text.decode()
    elif verb == b"tokens" and number in incoming:
        incoming[number].tokens = rest.split(b"\0")
    elif verb == b"submit" and number in incoming:
        submit(incoming.pop(number))
    elif verb == b"list":
        list_runs()
    elif verb == b"follow" and number in runs:
        runs[number].follow(int(rest))
    elif number in runs:
        if verb == b"leave":
            runs[number].cursor = None
        elif verb == b"serve":
            runs[number].serve(int(rest))
        elif verb == b"call":
            run_calls.begin(int(rest))
        elif verb == b"answer":
            key, kind, is_last, content = rest.split(b"\0", 3)
            run_calls.answer(int(key), int(kind), is_last == b"1", content)
        elif verb == b"go":
            runs[number].going = True
        elif verb == b"cancel":
            runs[number].end("cancelled")
        elif verb == b"note":
            runs[number].note(rest)
    elif verb == b"follow":
        channel.send(RUN_TOLD, number, b"forgotten")


def has_room(size):
    """Whether another display of this size can be kept."""
    used = sum(each.displays.size for each in runs.values() if each.state == "running")
    return used + size <= MOST_DISPLAY_BYTES


def is_taken():
    """Whether something runs in the interpreter that lives from block to block, or is about to."""
    return any(each.serial and each.block >= 0 and each.state == "running" for each in runs.values()) or any(
        each.session is not None and not each.session.is_copy for each in blocks.blocks.values()
    )


def submit(run):
    submitted = len(run.record) + sum(len(each) for step in run.steps for each in step.values())
    used = sum(each.log.room + each.submitted_bytes for each in runs.values() if each.state == "running")
    if any(each.id == run.id for each in runs.values()) or run.id in forgotten:
        channel.send(RUN_TOLD, run.number, b"known")
    elif used + run.log.room + submitted > MOST_UNFINISHED_BYTES:
        channel.send(RUN_TOLD, run.number, b"full")
    else:
        run.submitted, run.submitted_bytes = time.monotonic(), submitted
        if run.tokens:
            tunnels.keep_call = run_calls.accept
        runs[run.number] = run
        channel.send(RUN_TOLD, run.number, b"accepted")


def list_runs():
    for id, content in forgotten.items():
        channel.send(RUN_TOLD, 0, ("forgotten\0%s\0%s" % (id, content)).encode())
    for run in runs.values():
        # A failure is no event.
        last = run.log.last - (run.state == "failed")
        words = "run", run.id, run.content, run.uuid, run.state, str(last)
        channel.send(RUN_TOLD, run.number, "\0".join(words).encode())
    channel.send(RUN_TOLD, 0, b"listed")


def forget_ended(last):
    """Forgets the runs that were submitted first, but not the one that has ended last."""
    ended = [each for each in runs.values() if each.state != "running" and each is not last]
    size, count = last.size + sum(each.size for each in ended), len(ended) + 1
    for each in ended:
        if count <= MOST_ENDED and size <= MOST_ENDED_BYTES:
            break
        size -= each.size
        count -= 1
        del runs[each.number]
        forgotten[each.id] = each.content
    while len(forgotten) > MOST_FORGOTTEN:
        del forgotten[next(iter(forgotten))]


def step():
    """Goes on with all runs; returns how many seconds there are until something is due."""
    now = time.monotonic()
    due = now + 5
    for run in list(runs.values()):
        run.advance(now)
        if run.state == "running":
            due = min(due, run.due())
        run.pump()
    if blocks.sessions is not None and blocks.sessions.waiting and not is_taken():
        blocks.sessions.run(*blocks.sessions.waiting.pop(0))
    return max(0, due - now)


def numbers():
    """Those in use."""
    return [number for run in runs.values() for number in run.numbers()]


def change_host():
    """The host is another one: it has not followed anything, and does not send the rest of what was being submitted."""
    incoming.clear()
    run_calls.change_host()
    for run in runs.values():
        run.cursor = run.served = None


def find_caller(token):
    """Returns the run and the block that a token is for, if it is for one that runs now."""
    for run in runs.values():
        if 0 <= run.block < len(run.tokens) and same(run.tokens[run.block], token) and run.phase is not None:
            return run, run.block
    return None, None


def serve(descriptor, mask):
    """Serves a program that calls functions; returns whether it is one."""
    caller = run_calls.callers.get(descriptor)
    if caller is None:
        return False
    caller.serve(mask, find_caller)
    return True


def stop():
    """Ends all of them; what runs is killed by the caller."""
    for run in list(runs.values()):
        run.end("stopped")


def number_of(frames):
    return struct.unpack_from(">I", frames, 5)[0]


def split(frames):
    at = 0
    while at < len(frames):
        length, kind, _ = struct.unpack_from(">IBI", frames, at)
        yield kind, frames[at + HEADER : at + length + 4]
        at += length + 4
