"""The main process of a place whose session outlives the programs that use it: starts the supervisor, and ends with the session.

Arguments: the descriptor of a socket that is open as long as the standard streams are used, or nothing; the name of the session's
abstract socket; the supervisor's program, and its arguments, of which the sixth is ours to fill in. Or, where another program contains
the supervisor, such as a sandbox: nothing in place of the supervisor's program, then a descriptor and that program's command. It gets the
descriptors up to this one, which is the supervisor's way to this process. No signal from inside a container stops or kills its first
process, and nothing inside a sandbox reaches this one. Python 3.8 or later, Linux, standard library only.
"""

import os
import signal as signals
import sys
import time

import _fenced_processes as processes
import _fenced_session_server as server
import _socket


def start(begin, words):
    """Starts the supervisor; returns the sockets that lead to it, and the process."""
    control, theirs = _socket.socketpair()
    stream, inner = _socket.socketpair()
    supervisor = os.fork()
    if supervisor:
        theirs.close()
        inner.close()
        return control, stream, supervisor
    control.close()
    stream.close()
    os.dup2(inner.fileno(), 0)
    os.dup2(inner.fileno(), 1)
    inner.close()
    begin(theirs.detach(), *words)
    os._exit(1)


def become_supervisor(number, program, *words):
    # Whatever else this process was given stays open as long as it lives, not as long as the supervisor does.
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in (0, 1, 2, number):
            try:
                os.close(int(name))
            except OSError:
                pass
    sys.argv[1:] = [*words[:5], "server:%d" % number, *words[6:]]
    exec(compile(program, "<fenced>", "exec"), {})


def become_container(number, descriptor, *command):
    """The last descriptor that this process was given is its own, and its end a sign to others: nobody else may have it."""
    os.dup2(number, int(descriptor))
    processes.default_signals()
    os.execv(command[0], command)


def is_ended():
    """Returns whether somebody outside has asked this process to end. What runs in a container has a number here."""
    asked = signals.sigtimedwait([signals.SIGTERM], 0)
    return asked is not None and asked.si_pid == 0


def check():
    if is_ended():
        os._exit(0)


def await_end(supervisor):
    """Waits a moment until the supervisor has cleaned up, which ends with this process."""
    for _ in range(40):
        try:
            os.kill(supervisor, 0)
        except OSError:
            return
        time.sleep(0.05)


def main(held, name, program, *words):
    if program:
        control, stream, supervisor = start(become_supervisor, (program, *words))
    else:
        control, stream, supervisor = start(become_container, words)
        for each in range(3, int(words[0])):
            os.close(each)
    listener = server.listen(name)
    processes.protect(0)
    # The first process of a container receives only signals that it handles, also from code: it obeys those from outside. Orphans
    # become its children; with SIGCHLD ignored, they leave no zombies.
    signals.pthread_sigmask(signals.SIG_BLOCK, [signals.SIGTERM])
    signals.signal(signals.SIGINT, signals.SIG_IGN)
    signals.signal(signals.SIGCHLD, signals.SIG_IGN)
    served = server.Server(control, stream, listener, (0, 1, _socket.socket(fileno=int(held)) if held else None))
    served.serve(check)
    served.stream.close()
    control.close()
    await_end(supervisor)


try:
    main(*sys.argv[1:])
except BaseException:
    sys.excepthook(*sys.exc_info())
finally:
    os._exit(0)
