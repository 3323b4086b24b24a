"""The first program in a sandbox: lets go of descriptors that it inherited, takes on the limits, and becomes the next program.

Arguments: the most processes, or nothing; the most bytes of data of each process, or nothing; the next program and its arguments.
Python 3.8 or later, standard library only.
"""

import os
import resource
import sys


def limit(kind, most):
    """Lowers a limit; one that is lower already stays."""
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(kind, (most, most))


PROCESSES, DATA, *NEXT = sys.argv[1:]
for name in os.listdir("/proc/self/fd"):
    if int(name) > 2:
        try:
            os.close(int(name))
        except OSError:
            pass
# No core dumps: with 1, unlike 0, the kernel does not call the host's program for them either.
limit(resource.RLIMIT_CORE, 1)
if PROCESSES:
    limit(resource.RLIMIT_NPROC, int(PROCESSES))
if DATA:
    limit(resource.RLIMIT_DATA, int(DATA))
os.execvp(NEXT[0], NEXT)
