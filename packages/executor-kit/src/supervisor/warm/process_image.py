"""Works on this process's memory through the kernel: its arguments, and the pages that it will write to. Python 3.8 or later."""

import sys

from _fenced_c_library import Number, Pointer, control_process, number_function, pointer_function

# Maximum number of bytes to copy ahead. If there are more, modules have taken most of them, and blocks will not write to them.
MOST_WRITTEN = 16777216

malloc, memmove, sbrk = [pointer_function(name) for name in ("malloc", "memmove", "sbrk")]
madvise = number_function("madvise")


def read_map():
    """Returns the addresses of this process's segments: start_code to start_stack, without brk, as in proc(5)."""
    with open("/proc/self/stat", "rb") as file:
        fields = [int(field) for field in file.read().rpartition(b")")[2].split()[1:]]
    code, data, stack = fields[22:24], fields[41:44], fields[24]
    return code + data, stack


memory = read_map()


def name_process(argv, variables):
    """Makes the kernel report these as the arguments and variables of the process, by which the supervisor also finds blocks.
    Returns whether the kernel allowed it."""
    texts = [b"".join(word + b"\0" for word in words) for words in (argv, variables)]
    place = malloc(Pointer(sum(map(len, texts))))
    memmove(Pointer(place), b"".join(texts), Pointer(sum(map(len, texts))))
    middle = place + len(texts[0])
    parts, stack = memory
    numbers = parts + [sbrk(Pointer(0)), stack, place, middle, middle, middle + len(texts[1]), 0]
    words = b"".join(number.to_bytes(8, sys.byteorder) for number in numbers)
    words += (0).to_bytes(4, sys.byteorder) + b"\xff" * 4
    request = malloc(Pointer(len(words)))
    memmove(Pointer(request), words, Pointer(len(words)))
    # PR_SET_MM, PR_SET_MM_MAP
    return control_process(35, 14, request, len(words)) == 0


def written_memory():
    """Returns the memory areas that a block is likely to write to."""
    with open("/proc/self/maps") as file:
        maps = [line.split() for line in file]
    found = []
    for place, mode, _, _, _, *name in maps:
        start, end = [int(each, 16) for each in place.split("-")]
        if mode == "rw-p" and name[:1] != ["[stack]"]:
            found.append((start, end - start))
    return found if sum(length for _, length in found) <= MOST_WRITTEN else []


def copy_ahead(places):
    """Makes the kernel copy this memory now, while nobody is waiting, instead of at the block's first write."""
    for start, length in places:
        # MADV_POPULATE_WRITE
        madvise(Pointer(start), Pointer(length), Number(23))
