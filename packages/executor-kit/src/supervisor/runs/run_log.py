"""Keeps what a run prints, within a bound: of each block, the beginning and the end. Python 3.8 or later, standard library only.

Each entry has a number and becomes at most as many events of the host. An entry that a host has seen is never changed, since its
number is all that a reader says when it comes back.
"""

from bisect import bisect_left, bisect_right

# The kinds of entries, as in `run-entries.ts`.
START, OUT, ERR, RICH, NOTE, REFUSED, EXIT, RICH_EXIT, OVER = b"s", b"o", b"e", b"r", b"n", b"f", b"x", b"X", b"."
# Text that one entry may have, and what an entry costs besides.
LONGEST, COST = 32768, 100
# How much more than its text the entries of a block may take.
GROSS = 4
LEAST = 4096
# Events that an entry may become. A display is printed, shown, and may have a problem; at the end, what has changed is printed.
WIDTH = {RICH: 3, RICH_EXIT: 2}


class Entry:
    __slots__ = ("number", "kind", "payload")

    def __init__(self, number, kind, payload):
        self.number, self.kind, self.payload = number, kind, payload


class Entries:
    """Entries in order, of which the first can be dropped."""

    def __init__(self):
        self.all, self.numbers, self.first = [], [], 0

    def add(self, entry):
        self.all.append(entry)
        self.numbers.append(entry.number)

    def drop(self):
        dropped = self.all[self.first]
        self.all[self.first] = None
        self.first += 1
        if self.first > 512 and self.first > len(self.all) // 2:
            del self.all[: self.first], self.numbers[: self.first]
            self.first = 0
        return dropped

    def after(self, number):
        at = max(self.first, bisect_right(self.numbers, number))
        return self.all[at] if at < len(self.all) else None


class Block:
    """What is kept of one block's text: its head, and its tail."""

    def __init__(self, room, start):
        # The last entry before it.
        self.start = start
        self.head_room, self.tail_room = room - room // 2, room // 2
        self.head, self.tail = Entries(), Entries()
        self.head_size = self.head_gross = self.tail_size = self.tail_gross = 0
        # Bytes of standard output and standard error in the head and in what was dropped.
        self.before = [0, 0]
        self.pending = {OUT: b"", ERR: b""}

    @property
    def size(self):
        return self.head_size + self.tail_size


class Log:
    def __init__(self, room):
        self.room = room
        self.last = 0
        # The last entry that a host has seen.
        self.seen = 0
        self.blocks, self.starts = [], []
        self.used = 0
        self.others = Entries()
        # The last entry, if it is text that may still grow, and the list that it is in.
        self.open = None
        self.in_head = False
        self.others_gross = 0

    @property
    def gross(self):
        return self.others_gross + sum(each.head_gross + each.tail_gross for each in self.blocks)

    def begin_block(self):
        self.blocks.append(Block(max(self.room - self.used, LEAST), self.last))
        self.starts.append(self.last)
        self.add(START)

    def add(self, kind, payload=b""):
        """Adds an entry that is never dropped."""
        self.open = None
        self.last += WIDTH.get(kind, 1)
        self.others.add(Entry(self.last, kind, payload))
        self.others_gross += len(payload) + COST
        return self.last

    def skip(self, kind):
        """Counts an entry for which there is no room."""
        self.open = None
        self.last += WIDTH.get(kind, 1)
        return self.last

    def print(self, kind, data):
        """Adds text. Characters are not divided, so that each entry can be read alone."""
        block = self.blocks[-1]
        data = block.pending[kind] + data
        whole = len(data) - unfinished(data)
        block.pending[kind] = data[whole:]
        at = 0
        while at < whole:
            end = min(whole, at + LONGEST)
            if end < whole:
                end = max(end - unfinished(data[at:end]), at + 1)
            self.put(block, kind, data[at:end])
            at = end

    def end_block(self):
        """Characters that were never completed become replacement characters, as when they are decoded."""
        block = self.blocks[-1]
        for kind in (OUT, ERR):
            if block.pending[kind]:
                block.pending[kind] = b""
                self.put(block, kind, b"\xef\xbf\xbd")
        self.open = None
        self.used += min(block.size, block.head_room + block.tail_room)

    def put(self, block, kind, piece):
        opened = self.open
        if (
            opened is not None
            and opened.kind == kind
            and opened.number > self.seen
            and len(opened.payload) + len(piece) <= LONGEST
        ):
            opened.payload += piece
            self.count(block, kind, len(piece), self.in_head)
        else:
            self.last += 1
            self.open = Entry(self.last, kind, bytearray(piece))
            self.in_head = block.head_size < block.head_room and block.head_gross < GROSS * block.head_room
            (block.head if self.in_head else block.tail).add(self.open)
            self.count(block, kind, len(piece) + COST, self.in_head, len(piece))
        self.shorten(block)

    def count(self, block, kind, gross, in_head, size=None):
        size = gross if size is None else size
        if in_head:
            block.head_size += size
            block.head_gross += gross
            block.before[kind == ERR] += size
        else:
            block.tail_size += size
            block.tail_gross += gross

    def shorten(self, block):
        """Drops the beginning of the tail."""
        while True:
            first = block.tail.all[block.tail.first] if block.tail.first < len(block.tail.all) else None
            if first is None or first is self.open:
                return
            size = len(first.payload)
            if block.tail_size - size < block.tail_room and block.tail_gross <= GROSS * block.tail_room + LONGEST:
                return
            block.tail.drop()
            block.tail_size -= size
            block.tail_gross -= size + COST
            block.before[first.kind == ERR] += size

    def after(self, number):
        """The next entry, and the last one that is missing before it, with the number of bytes of both kinds that precede it in its
        block, if they are known."""
        found, block = self.others.after(number), None
        for each in self.blocks[max(0, bisect_right(self.starts, number) - 1) :]:
            if found is not None and found.number <= each.start:
                break
            for entries in (each.head, each.tail):
                entry = entries.after(number)
                if entry is not None and (found is None or entry.number < found.number):
                    found, block = entry, each if entries is each.tail else None
        if found is None:
            return None, 0, None
        width = WIDTH.get(found.kind, 1)
        missing = found.number - width if found.number - width > number else 0
        if missing and block is None:
            # It is no text, and text before it was dropped: all that the reader does not have, if the head is read.
            each = self.blocks[bisect_left(self.starts, found.number) - 1]
            block = each if each.head.after(number) is None else None
        return found, missing, list(block.before) if missing and block is not None else None


def unfinished(data):
    """How many bytes at the end begin a character that is not complete; the same as in `output-collector.ts`."""
    if not data or data[-1] < 0x80:
        return 0
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            return back if back < length(byte) else 0
    return 0


def length(lead):
    if lead < 0xC2 or lead > 0xF4:
        return 1
    return 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2
