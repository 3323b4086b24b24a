"""The first program in a sandbox: closes inherited descriptors, checks what is shown, and applies the limits. The supervisor's loader
follows it in the same program.

Arguments: a descriptor for the supervisor, or nothing; the maximum number of processes, or nothing; the maximum bytes of data of each
process, or nothing; paths of files of the whole machine, separated by spaces; for each path to check, the device and inode numbers that it
must have, and the path. Python 3.8 or later, standard library only.
"""

import os
import resource
import sys

import _signal


def limit(kind, most):
    """Lowers a limit; leaves one that is already lower."""
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(kind, (most, most))


def may_change(place):
    """Whether code could take a file away from everybody on this machine."""
    try:
        os.chmod(place, os.stat(place).st_mode & 0o7777)
        return True
    except OSError:
        return False


def identity(place):
    try:
        found = os.lstat(place)
        return "%d:%d" % (found.st_dev, found.st_ino)
    except OSError as error:
        return str(error)


CONTROL, PROCESSES, DATA, HOST, *CHECKED = sys.argv[1:]
for name in os.listdir("/proc/self/fd"):
    if name == CONTROL:
        # Not for the programs that the supervisor starts.
        os.set_inheritable(int(name), False)
    elif int(name) > 2:
        try:
            os.close(int(name))
        except OSError:
            pass
for place in HOST.split():
    if may_change(place):
        sys.exit("fenced: code in the sandbox could change the machine's " + place)
for expected, place in zip(CHECKED[::2], CHECKED[1::2]):
    if identity(place) != expected:
        sys.exit("fenced: something replaced " + place)
# The kernel keeps all signals of code from the first process but those that it handles, as Python does with this one.
_signal.signal(_signal.SIGINT, _signal.SIG_DFL)
# Disable core dumps: unlike with 0, with 1 the kernel does not call the host's core dump handler either.
limit(resource.RLIMIT_CORE, 1)
if PROCESSES:
    limit(resource.RLIMIT_NPROC, int(PROCESSES))
if DATA:
    limit(resource.RLIMIT_DATA, int(DATA))
