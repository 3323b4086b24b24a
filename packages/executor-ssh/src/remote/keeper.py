"""Keeps a session on the remote host: creates its directories, starts the supervisor, and when that or the connection has ended, ends
everything that is left and removes the session's files. Python 3.8 or later, Linux, standard library only.

Standard input begins with the supervisor's program, as in `load.py`; the rest belongs to the supervisor. Arguments: a mark for the
session's processes, the work directory (empty: a temporary one), the prefix of our own files in it, `keep` if the files of blocks
stay, the functions' module, its owner, the file in it that names the owner, the seconds for which the client may be silent, and, for a
session that outlives its connections, the abstract socket on which the server of the session takes later ones.

The supervisor is a fork of this process, which adopts everything below it that loses its parent. So whatever blocks start is found,
however it hides, unless code kills this process; then sshd closes the supervisor's input, and the supervisor ends the blocks.
"""

import os
import select
import sys
import time

import _fenced_mounts as mounts
import _fenced_processes as processes
import _socket

MARK, GIVEN, PREFIX, KEEP, MODULE, OWNER, MARKER, SILENCE, SERVER = sys.argv[1:10]
NAME = b"fenced-session"
# Seconds for the supervisor to end by itself.
GRACE = 3
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
if SERVER:
    import _fenced_session_server as server


def take(size):
    taken = b""
    while len(taken) < size:
        piece = os.read(0, size - len(taken))
        if not piece:
            os._exit(1)
        taken += piece
    return taken


def say(word, *texts):
    """The texts are paths, which may contain any byte."""
    os.write(1, " ".join([word] + [os.fsencode(text).hex() for text in texts]).encode() + b"\n")


def rename():
    """Changes the name and the command line that others see, so that a block's `pkill python3` does not end the session."""
    processes.set_process(15, NAME)
    try:
        with open("/proc/self/stat", "rb") as file:
            start, end = [int(each) for each in file.read().rpartition(b")")[2].split()[45:47]]
        with open("/proc/self/mem", "r+b", 0) as memory:
            memory.seek(start)
            memory.write(NAME.ljust(end - start, b"\0")[: end - start])
    except (OSError, ValueError):
        pass


def refuse(what, error):
    say("problem", "%s: %s" % (what, error))
    sys.exit(1)


def make_directory():
    directory = os.path.join(os.path.abspath(os.environ.get("TMPDIR") or "/tmp"), "fenced-remote-" + MARK[-12:])
    try:
        if ":" in directory:
            raise OSError("TMPDIR contains a colon, which separates directories in a PATH")
        os.mkdir(directory, 0o700)
    except OSError as error:
        refuse("a temporary directory could not be created", error)
    return directory


def withdraw(directory):
    """Removes the session's directory before anything has run in it."""
    for place in (os.path.join(directory, "workspace"), directory):
        try:
            os.rmdir(place)
        except OSError:
            pass


def enter_workspace(directory):
    """Returns the work directory, which becomes the current one, without links."""
    workspace = os.path.expanduser(GIVEN) if GIVEN.startswith("~/") else GIVEN or os.path.join(directory, "workspace")
    try:
        os.makedirs(workspace, exist_ok=True)
        os.chdir(workspace)
        if not os.access(".", os.W_OK):
            raise OSError("%s is not writable" % workspace)
    except OSError as error:
        withdraw(directory)
        refuse("the work directory cannot be used", error)
    workspace = os.environ["PWD"] = os.getcwd()
    for name in ("OLDPWD", "_"):
        os.environ.pop(name, None)
    return workspace


def leave_connection():
    """Continues in a process that is not sshd's. The process that sshd has started stays until the socket that this returns is closed:
    with its end, sshd closes the streams."""
    held, theirs = _socket.socketpair()
    if os.fork() == 0:
        theirs.close()
        os.setsid()
        processes.SELF = os.getpid()
        return held
    held.close()
    os.dup2(theirs.fileno(), 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        os.execvp("cat", ["cat"])
    except OSError:
        while os.read(0, 1):
            pass
    os._exit(0)


def serve(supervisor, stream, listener, held):
    """Returns when the session is over, and lets nobody wait for it any longer."""
    first = os.dup(0), os.dup(1), held
    close_streams()
    server.Server(supervisor, stream, listener, first).serve()
    listener.close()


def close_streams():
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nothing, each)
    os.close(nothing)


def watch(supervisor):
    """Returns when the supervisor has ended, or has to be ended."""
    poll = select.poll()
    poll.register(supervisor, select.POLLIN)
    poll.register(0, select.POLLRDHUP)
    limit = time.monotonic() + float(SILENCE)
    connected = True
    while True:
        ready = [descriptor for descriptor, _ in poll.poll(max(0, limit - time.monotonic()) * 1000)]
        if not ready:
            return
        if 0 in ready:
            # What the supervisor has not read yet does not count.
            poll.unregister(0)
            connected = False
            limit = time.monotonic() + GRACE
        if supervisor.fileno() in ready:
            try:
                if not supervisor.recv(4096):
                    return
            except OSError:
                return
            if connected:
                limit = time.monotonic() + float(SILENCE)


class Family:
    stopped = set()
    empty = 0


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def end_processes():
    """Finds processes by descent and, where Python cannot ask the kernel to adopt orphans, by the mark."""
    for _ in range(1000):
        if processes.kill_step(Family, processes.members(processes.SELF, os.fsencode(MARK))):
            return
        reap()
        time.sleep(0.002)


def remove(directory, work):
    for name in os.listdir(work):
        if name.startswith(PREFIX) and (not KEEP or name.endswith(".part")):
            try:
                os.unlink(name, dir_fd=work)
            except OSError:
                pass
    try:
        remove_functions(work)
    except OSError:
        pass
    os.chdir("/")
    remove_tree(directory)


def remove_tree(directory):
    """Leaves a directory in which something stays mounted."""
    if not mounts.detach(directory):
        return
    for command in (["rm", "-rf"], ["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        if not os.path.lexists(directory):
            return
        silently(command + ["--", directory])


def silently(command):
    """Runs a program of the system: trees that code made can be deeper than Python's recursion."""
    if os.fork() == 0:
        try:
            os.dup2(os.open("/dev/null", os.O_RDWR), 2)
            os.execvp(command[0], command)
        finally:
            os._exit(127)
    os.wait()


def remove_functions(work):
    """Removes the JavaScript functions if this session created them. Code may have put a link or a pipe in place of anything."""
    os.fchdir(os.open("node_modules", FOLDER, dir_fd=work))
    place = os.open(MODULE, FOLDER)
    marker = os.open(MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
    if os.read(marker, 200) == os.fsencode(OWNER):
        remove_tree(os.path.join(os.getcwd(), MODULE))
        os.rmdir("node_modules", dir_fd=work)


def main():
    if sys.version_info < (3, 8):
        sys.exit("its Python is too old: " + sys.version.split()[0])
    program, *words = take(int(take(10))).split(b"\0")
    rename()
    if not os.path.exists("/proc/self/stat"):
        refuse("it does not run Linux", "there is no /proc")
    directory = make_directory()
    try:
        workspace = enter_workspace(directory)
        work = os.open(workspace, FOLDER)
        if SERVER:
            held = leave_connection()
            listener = server.listen(SERVER)
            stream, inner = _socket.socketpair()
        ours, theirs = _socket.socketpair()
        words[:2] = directory, workspace
        words[5] = "%s%d" % ("server:" if SERVER else "", theirs.fileno())
        name, value = MARK.split("=", 1)
        os.environ[name] = value
        processes.adopt_orphans()
        supervisor = os.fork()
    except OSError as error:
        withdraw(directory)
        refuse("the supervisor could not be started", error)
    if supervisor == 0:
        # Not before, because what fails there could no longer be told. If nobody listens, the keeper removes everything.
        say("place", directory, workspace, sys.executable)
        ours.close()
        theirs.detach()
        if SERVER:
            for each in (held, listener, stream):
                each.close()
            close_streams()
            os.dup2(inner.fileno(), 0)
            os.dup2(inner.fileno(), 1)
            inner.close()
        sys.argv[1:] = [os.fsdecode(word) for word in words]
        exec(compile(program, "<fenced>", "exec"), {})
    theirs.close()
    processes.protect(0)
    for name in ("SIGHUP", "SIGINT", "SIGTERM"):
        processes.signal.signal(getattr(processes.signal, name), processes.signal.SIG_IGN)
    if SERVER:
        inner.close()
        serve(ours, stream, listener, held)
    else:
        watch(ours)
    end_processes()
    remove(directory, work)
    os._exit(0)


main()
