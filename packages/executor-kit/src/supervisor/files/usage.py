"""Reads what the place uses: its processes, and its control group if it has one of its own. Python 3.8 or later, Linux; standard
library only. All of it comes from the kernel, so code cannot forge it."""

import _fenced_processes as processes

GROUP = "/sys/fs/cgroup/"
# Version 1 says a number near this where there is no limit.
UNLIMITED = 1 << 60


def words_in(*names):
    """Returns the words of the first file that exists, of both versions of control groups."""
    for name in names:
        try:
            with open(GROUP + name) as file:
                return file.read().split()
        except (OSError, ValueError):
            pass
    return []


def number_in(*names):
    words = words_in(*names)
    return int(words[0]) if words and words[0].isdigit() else None


def number_after(word, *names):
    words = words_in(*names)
    index = words.index(word) + 1 if word in words else 0
    return int(words[index]) if 0 < index < len(words) and words[index].isdigit() else None


def memory():
    used = number_in("memory.current", "memory/memory.usage_in_bytes")
    if used is None:
        return {}
    cached = (
        number_after("inactive_file", "memory.stat") or number_after("total_inactive_file", "memory/memory.stat") or 0
    )
    limit = number_in("memory.max", "memory/memory.limit_in_bytes")
    found = {"memory": max(0, used - cached)}
    if limit is not None and limit < UNLIMITED:
        found["memory_limit"] = limit
    return found


def processor():
    found = {}
    used = number_after("usage_usec", "cpu.stat")
    if used is None:
        used = number_in("cpuacct/cpuacct.usage", "cpu,cpuacct/cpuacct.usage")
        used = None if used is None else used // 1000
    if used is not None:
        found["processor_us"] = used
    quota, period = number_in("cpu/cpu.cfs_quota_us", "cpu,cpuacct/cpu.cfs_quota_us"), None
    if quota is not None:
        period = number_in("cpu/cpu.cfs_period_us", "cpu,cpuacct/cpu.cfs_period_us")
    words = words_in("cpu.max")
    if len(words) == 2 and words[0].isdigit():
        quota, period = int(words[0]), int(words[1])
    if quota and period:
        found["processors_thousandths"] = quota * 1000 // period
    return found


def read(has_group):
    """Returns lines of a name and a number. The top of a hierarchy, which is the whole machine, says nothing about memory."""
    found = {"processes": len(processes.below([processes.SELF])) + 1}
    if has_group:
        used = memory()
        found.update(used)
        if used:
            found.update(processor())
    return "".join("%s %d\n" % each for each in found.items()).encode()
