"""
A session's supervisor (Python 3.8 or later, standard library only). It reads one task after another from standard input
as lines of JSON, lets a worker run it, captures what the worker and its children write, and answers on standard output.
When its input ends, which happens however the emulator dies, it kills everything that the session started.
"""

import json
import os
import select
import signal
import sys
import time
import types

# The longest answer of a worker, in bytes: only code that writes in the worker's place sends more.
LARGEST_REPLY = 64 * 1024 * 1024


class Capture:
    """Collects one output stream, up to a number of bytes."""

    def __init__(self):
        self.source, self.sink = os.pipe()
        os.set_blocking(self.source, False)
        self.begin(0)

    def begin(self, limit):
        self.data, self.limit = bytearray(), limit

    def drain(self, rounds):
        for _ in range(rounds):
            try:
                piece = os.read(self.source, 65536)
            except BlockingIOError:
                return
            self.data += piece[: max(0, self.limit - len(self.data))]

    def text(self):
        full = len(self.data) >= self.limit
        return bytes(self.data).decode("utf-8", "ignore" if full else "replace")


class Session:
    def __init__(self, config):
        self.config = config
        self.out, self.err = Capture(), Capture()
        self.task = None
        self.kill_at = None
        self.pid = None
        self.reply = None
        if config["kind"] != "shell":
            self.start_worker()

    def start_worker(self):
        task_source, task_sink = os.pipe()
        reply_source, reply_sink = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self.become_child()
            if self.config["kind"] == "node":
                become_node(self.config["command"], task_source, reply_sink)
            os.close(task_sink)
            os.close(reply_source)
            programs = self.config["programs"]
            worker = load("worker", programs["worker"])
            worker.work(os.fdopen(task_source), os.fdopen(reply_sink, "wb"), load("magics", programs["magics"]))
            os._exit(0)
        os.close(task_source)
        os.close(reply_sink)
        self.tasks, self.reply, self.buffer = os.fdopen(task_sink, "wb"), reply_source, bytearray()

    def become_child(self):
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for place, fd in enumerate((nothing, self.out.sink, self.err.sink)):
            os.dup2(fd, place)

    def begin(self, task):
        self.task, self.kill_at = task, None
        for capture in (self.out, self.err):
            capture.drain(16)
            capture.begin(task["limit"])
        code = task["code"]
        if self.config["rewrite"]:
            code = code.replace("/mnt/data", self.config["rewrite"])
        if self.config["kind"] == "shell":
            self.pid = os.fork()
            if self.pid == 0:
                self.become_child()
                run_program(["bash", "-c", code])
        else:
            try:
                self.tasks.write(json.dumps({"code": code}).encode() + b"\n")
                self.tasks.flush()
            except OSError:
                pass

    def interrupt(self):
        if self.task is None:
            return
        if self.config["kind"] == "python":
            self.kill_at = time.monotonic() + 2
            send(self.pid, signal.SIGINT)
        else:
            send(-self.pid, signal.SIGKILL)

    def end(self, answer):
        self.out.drain(16)
        self.err.drain(16)
        answer.update(id=self.task["id"], stdout=self.out.text(), stderr=self.err.text())
        self.task = self.kill_at = None
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()

    def read_reply(self):
        piece = os.read(self.reply, 1048576)
        if piece and len(self.buffer) < LARGEST_REPLY:
            self.buffer += piece
            if self.buffer.endswith(b"\n"):
                answer, self.buffer = read_answer(self.buffer), bytearray()
                if self.task is not None:
                    self.end(answer)
            return
        os.close(self.reply)
        send(-self.pid, signal.SIGKILL)
        self.start_worker()
        if self.task is not None:
            self.end({"status": "Failed", "error": {"code": "KernelDied", "message": "The session's kernel died"}})

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid and self.config["kind"] == "shell" and self.task is not None:
                code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
                self.end({"status": str(code)})

    def reset(self):
        """Replaces the worker. The end of the old one is not a failure of the session."""
        if self.config["kind"] != "shell":
            send(-self.pid, signal.SIGKILL)
            os.close(self.reply)
            self.start_worker()


def read_answer(line):
    """Reads the answer of a worker, or what code writes in its place."""
    try:
        answer = json.loads(line)
        if isinstance(answer, dict) and isinstance(answer.get("status"), str):
            return answer
    except (ValueError, RecursionError):
        pass
    return {"status": "Failed", "error": {"code": "KernelDied", "message": "The session's kernel sent no valid answer"}}


def load(name, source):
    module = types.ModuleType(name)
    exec(compile(source, "<%s>" % name, "exec"), module.__dict__)
    return module


def run_program(command):
    for number in (signal.SIGPIPE, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, ("%s: %s\n" % (command[0], error)).encode())
        os._exit(127)


def become_node(command, tasks, replies):
    import fcntl

    high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (tasks, replies)]
    for place, fd in enumerate(high):
        os.dup2(fd, 3 + place)
        os.close(fd)
    run_program(command)


def send(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        pass


def become_subreaper():
    """Makes orphans of the session children of this process, so that it finds them."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    except Exception:
        pass


def descendants():
    parents = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        try:
            with open("/proc/%s/stat" % int(name)) as file:
                fields = file.read().rpartition(")")[2].split()
            parents[int(name)] = (int(fields[1]), fields[0])
        except (ValueError, OSError):
            pass
    found = {os.getpid()}
    size = 0
    while size != len(found):
        size = len(found)
        found.update(pid for pid, (parent, _) in parents.items() if parent in found)
    return [pid for pid in found if pid != os.getpid() and parents[pid][1] != "Z"]


def kill_all(session):
    if session.pid:
        send(-session.pid, signal.SIGKILL)
    give_up = time.monotonic() + 10
    while time.monotonic() < give_up:
        session.task = None
        left = descendants()
        for pid in left:
            send(pid, signal.SIGKILL)
        session.reap()
        if not left:
            return
        time.sleep(0.005)


def main():
    config = json.loads(sys.argv[1])
    sys.argv[:] = [""]
    # A terminal's interrupt is for the emulator, which ends its sessions itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    become_subreaper()
    session = Session(config)
    commands = bytearray()
    while True:
        session.reap()
        sources = [0, session.out.source, session.err.source] + ([session.reply] if session.reply else [])
        busy = session.kill_at or config["kind"] == "shell" and session.task
        ready = select.select(sources, [], [], 0.01 if busy else 1)[0]
        for capture in (session.out, session.err):
            if capture.source in ready:
                capture.drain(16)
        if session.reply in ready:
            session.read_reply()
        if session.kill_at and time.monotonic() > session.kill_at:
            session.kill_at = None
            send(session.pid, signal.SIGKILL)
        if 0 in ready:
            piece = os.read(0, 1048576)
            if not piece:
                kill_all(session)
                os._exit(0)
            commands += piece
            if piece.endswith(b"\n"):
                lines, commands = bytes(commands).splitlines(), bytearray()
                for line in lines:
                    command = json.loads(line)
                    {
                        "run": session.begin,
                        "interrupt": lambda _: session.interrupt(),
                        "reset": lambda _: session.reset(),
                    }[command["do"]](command)


main()
