"""The first program in a sandbox: closes inherited descriptors, applies the limits, and becomes the next program.

Arguments: the maximum number of processes, or nothing; the maximum bytes of data of each process, or nothing; the next program
and its arguments. Python 3.8 or later, standard library only.
"""

import os
import resource
import sys


def limit(kind, most):
    """Lowers a limit; leaves one that is already lower."""
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
# Disable core dumps: unlike with 0, with 1 the kernel does not call the host's core dump handler either.
limit(resource.RLIMIT_CORE, 1)
if PROCESSES:
    limit(resource.RLIMIT_NPROC, int(PROCESSES))
if DATA:
    limit(resource.RLIMIT_DATA, int(DATA))
os.execvp(NEXT[0], NEXT)
