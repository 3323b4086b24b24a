"""Searches a directory by names (glob) or by contents (grep), with the limits of Claude's agent toolset."""

import fnmatch
import heapq
import os
import re
import stat
import sys

WALK_MAX_DEPTH = 40
WALK_MAX_ENTRIES = 50000
GLOB_RESULT_LIMIT = 200
GLOB_MAX_ALTERNATIVES = 1000
GREP_MAX_LINE_LENGTH = 2000
PRUNED = (b".git", b"node_modules")


def refuse(why):
    sys.stderr.write(why)
    sys.exit(3)


def entries_of(directory):
    try:
        with os.scandir(directory) as found:
            return sorted((entry for entry in found if entry.name not in PRUNED), key=lambda entry: entry.name)
    except OSError:
        return []


def is_directory(entry):
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


# ---- glob ----


def alternatives(pattern):
    """Expands braces: {a,b} and {1..3}, also nested ones."""
    waiting, done = [pattern], []
    while waiting:
        if len(waiting) + len(done) > GLOB_MAX_ALTERNATIVES:
            refuse("the pattern has more than %d alternatives" % GLOB_MAX_ALTERNATIVES)
        current = waiting.pop()
        inner = re.search(r"\{([^{}]*)\}", current)
        numbers = inner and re.fullmatch(r"(-?\d{1,9})\.\.(-?\d{1,9})", inner.group(1))
        if numbers:
            low, high = sorted((int(numbers.group(1)), int(numbers.group(2))))
            choices = [str(number) for number in range(low, min(high, low + GLOB_MAX_ALTERNATIVES) + 1)]
        elif inner and "," in inner.group(1):
            choices = inner.group(1).split(",")
        else:
            done.append(current)
            continue
        waiting.extend(current[: inner.start()] + choice + current[inner.end() :] for choice in choices)
    return done


def matcher(segment):
    """A function that tells whether a name matches one part of a pattern; wildcards leave out names with a dot."""
    if re.search(r"[@+*?!]\(|\[\[:|\\", segment):
        refuse("patterns with backslashes, [[:class:]] or +(...) are not supported")
    compiled = re.compile(fnmatch.translate(segment.replace("[^", "[!")))
    return lambda name: (not name.startswith(".") or segment.startswith(".")) and compiled.match(name) is not None


def with_skipped(states):
    """Adds what is left of each pattern if its leading ** stands for no directories."""
    result = set()
    for state in states:
        result.add(state)
        while state and state[0] is None:
            state = state[1:]
            result.add(state)
    return result


def glob(root, pattern):
    starts = set()
    for alternative in alternatives(pattern):
        if alternative.endswith("/"):
            continue
        parts = [part for part in alternative.split("/") if part not in ("", ".")]
        starts.add(tuple(None if part == "**" else matcher(part) for part in parts))
    matches = []
    waiting = [(root, with_skipped(starts))]
    while waiting and len(matches) < WALK_MAX_ENTRIES:
        directory, states = waiting.pop()
        for entry in entries_of(directory):
            name = os.fsdecode(entry.name)
            left = set()
            for state in states:
                if state and state[0] is None:
                    if not name.startswith("."):
                        left.add(state)
                elif state and state[0](name):
                    left.add(state[1:])
            left = with_skipped(left)
            if is_directory(entry):
                if any(left):
                    waiting.append((entry.path, left))
            elif () in left:
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if stat.S_ISREG(status.st_mode):
                    matches.append((status.st_mtime_ns, entry.path))
    newest = heapq.nlargest(GLOB_RESULT_LIMIT, matches)
    sys.stdout.buffer.write(b"\n".join(path for _, path in newest))


# ---- grep ----


def grep(root, pattern):
    try:
        # JavaScript's way to name a group; \d and \w mean ASCII there.
        compiled = re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", pattern), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        refuse("invalid regex: %s" % error)
    if not os.path.isdir(root):
        grep_file(root, compiled)
        return
    seen = 0
    waiting = [(root, 0)]
    while waiting:
        directory, depth = waiting.pop()
        below = []
        for entry in entries_of(directory):
            seen += 1
            if seen > WALK_MAX_ENTRIES:
                return
            if not is_directory(entry):
                grep_file(entry.path, compiled)
            elif depth < WALK_MAX_DEPTH:
                below.append((entry.path, depth + 1))
        waiting.extend(reversed(below))


def grep_file(path, compiled):
    try:
        # Without waiting for somebody to write to a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return
        try:
            for number, line in lines_of(file):
                if compiled.search(line):
                    text = "%s:%d:%s\n" % (os.fsdecode(path), number, line)
                    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
                    sys.stdout.buffer.flush()
        except OSError:
            return


def lines_of(file):
    """Yields lines with their numbers up to the first NUL, without those that are too long."""
    most = 4 * GREP_MAX_LINE_LENGTH + 2
    number = 0
    is_start = True
    while True:
        piece = file.readline(most)
        if piece == b"" or b"\0" in piece:
            return
        is_end = piece.endswith(b"\n")
        number += is_start
        line = piece.decode("utf-8", "replace").rstrip("\r\n")
        if is_start and (is_end or len(piece) < most) and len(line) <= GREP_MAX_LINE_LENGTH:
            yield number, line
        is_start = is_end


if __name__ == "__main__":
    search, where, wanted = sys.argv[1:]
    {"glob": glob, "grep": grep}[search](os.fsencode(where), wanted)
