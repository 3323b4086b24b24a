"""The interpreter of a session: runs blocks in one namespace, and forks itself. Python 3.8 or later; run by `python -c`.

Arguments: this text, the directory of the host's commands, and modules to import. Descriptor 3 is a socket to the supervisor: with
`run` come a block's code, its input, output and errors, a pipe for what it displays, and one to say how it ended; with `fork`, what
the fork has in place of these descriptors. 4 is a pipe to say that it is ready.
"""

import os
import sys

# Nothing of the work directory is imported here.
safe = os.environ.get("PYTHONSAFEPATH")
if safe == "fenced":
    del os.environ["PYTHONSAFEPATH"]
if sys.path[:1] in ([""], [os.getcwd()]):
    del sys.path[0]

import _socket  # noqa: E402
import _thread  # noqa: E402
import ast  # noqa: E402
import base64  # noqa: E402
import builtins  # noqa: E402
import fcntl  # noqa: E402
import importlib.util  # noqa: E402
import io  # noqa: E402
import json  # noqa: E402
import linecache  # noqa: E402
import signal  # noqa: E402
import struct  # noqa: E402
import termios  # noqa: E402
import time  # noqa: E402
import traceback  # noqa: E402
import types  # noqa: E402
import warnings  # noqa: E402

try:
    import ctypes

    library = ctypes.CDLL(None)
except Exception:
    library = None

CONTROL, SAID = 3, 4
HIGH = (500, 100, 16)
DISPLAYS = 67108864
FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
OWN = "<fenced>"
# Libraries replace some of these for programs that they run.
do_fork, wait_for, exit_now, write_all, close_one, sleep = os.fork, os.waitpid, os._exit, os.write, os.close, time.sleep
commands, preload = sys.argv[2], sys.argv[3:]
given = dict(os.environ)
main = types.ModuleType("__main__")
pid = os.getpid()
control = shell = None
# Of the block that runs: where it displays, and where it says how it ended; and what they were when it came.
rich = status = None
displaying = _thread.allocate_lock()
forking = False
loop = None


def keep_high(descriptor):
    """Where programs do not expect descriptors, and do not close them."""
    for lowest in HIGH:
        try:
            high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
        except OSError:
            continue
        close_one(descriptor)
        return high
    return descriptor


class Held:
    """A descriptor of ours, which code may have closed, and something else may have its number."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.kind = self.look()

    def look(self):
        found = os.fstat(self.descriptor)
        return found.st_dev, found.st_ino

    def write(self, content):
        if self.look() != self.kind:
            raise OSError("closed")
        view = memoryview(content)
        while len(view):
            view = view[write_all(self.descriptor, view) :]

    def close(self):
        try:
            if self.look() == self.kind:
                close_one(self.descriptor)
        except OSError:
            pass


def serve():
    while True:
        try:
            verb, rights, _, _ = control.recvmsg(16, _socket.CMSG_SPACE(24))
        except OSError:
            exit_now(1)
        if not verb:
            exit_now(0)
        descriptors = struct.unpack("=%di" % (len(rights[0][2]) // 4), rights[0][2])
        if verb == b"fork":
            fork(*descriptors)
        else:
            run(*descriptors)


def run(*descriptors):
    global rich, status
    # Where the last block has closed its streams, these have their numbers.
    source, stdin, out, err, shown, said = [keep_high(each) for each in descriptors]
    for target, stream in enumerate((stdin, out, err)):
        os.dup2(stream, target)
        close_one(stream)
    rich, status = Held(shown), Held(said)
    with open(source, "rb") as file:
        request = json.loads(file.read())
    renew_streams()
    outer = enter(request["env"], request["modules"])
    code = 1
    try:
        code = execute(request["code"], request["name"])
        finish_displays()
    except BaseException:
        report()
    flush()
    if os.getpid() != pid:
        # A fork that the block has made, and that has come to the block's end.
        exit_now(code)
    leave(outer, request["modules"])
    rich.close()
    rich = None
    status.write(struct.pack(">I", code))
    status.close()


def renew_streams():
    """Each block has an input of its own; its outputs are there even if the last one has closed them."""
    old = sys.__stdin__
    sys.stdin = sys.__stdin__ = io.open(0, encoding=old.encoding, errors=old.errors, closefd=False)
    for number, name in ((1, "stdout"), (2, "stderr")):
        first = getattr(sys, "__%s__" % name)
        if first.closed:
            binary = io.open(number, "wb", closefd=False)
            made = io.TextIOWrapper(binary, encoding="utf-8", errors=first.errors, write_through=True)
            setattr(sys, "__%s__" % name, made)
        if getattr(getattr(sys, name), "closed", True) is True:
            setattr(sys, name, getattr(sys, "__%s__" % name))


def enter(env, modules):
    """Sets the variables that the session does not have, and has blocks import functions from their call's directory."""
    changed = {name: value for name, value in env.items() if given.get(name) != value}
    if "FENCED_HOST_CALLS" in env:
        changed["PATH"] = commands + os.pathsep + env.get("PATH", os.environ.get("PATH", os.defpath))
    outer = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    if modules is not None:
        choose_modules(modules, modules["directory"])
    return outer


def leave(outer, modules):
    if modules is not None:
        choose_modules(modules, modules["root"])
    for name, value in outer.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def choose_modules(modules, directory):
    """Has blocks import functions from a directory, and not those that another call had."""
    root, packages = modules["root"], modules["packages"]
    sys.path[:] = [each for each in sys.path if each not in (directory, packages) and os.path.dirname(each) != root]
    sys.path[:0] = [directory, packages]
    for name in modules["names"]:
        file = getattr(sys.modules.get(name), "__file__", None) or ""
        if file.startswith(root + os.sep) and os.path.dirname(file) != directory:
            del sys.modules[name]


def execute(source, name):
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    try:
        tree = parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) and not is_quiet(source) else None
        evaluate(compile(tree, name, "exec", flags=FLAGS, dont_inherit=True))
        if last is not None:
            show(evaluate(compile(ast.Expression(last.value), name, "eval", flags=FLAGS, dont_inherit=True)))
        return 0
    except SystemExit as end:
        return exit_code(end.code)
    except KeyboardInterrupt:
        report()
        return 130
    except BaseException:
        report()
        return 1


def parse(source, name):
    try:
        return compile(source, name, "exec", flags=FLAGS | ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError:
        if shell is None:
            raise
        # `%pip install`, `!ls`.
        changed = shell.transform_cell(source)
        if changed.strip() == source.strip():
            raise
        return compile(changed, name, "exec", flags=FLAGS | ast.PyCF_ONLY_AST, dont_inherit=True)


def is_quiet(source):
    """Whether the last line ends as it does in notebooks for its value not to be shown."""
    return source.rstrip().endswith(";")


def evaluate(code):
    global loop
    value = eval(code, vars(main))
    if code.co_flags & 128 and hasattr(value, "send"):
        import asyncio

        if loop is None or loop.is_closed():
            loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        value = loop.run_until_complete(value)
    return value


def exit_code(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 255
    print(code, file=sys.stderr)
    return 1


def report():
    """Prints the error, without the part of the traceback that is not the program's."""
    kind, error, trace = sys.exc_info()
    while trace is not None and trace.tb_frame.f_code.co_filename == OWN:
        trace = trace.tb_next
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    error = error.with_traceback(trace)
    if sys.excepthook is not sys.__excepthook__:
        try:
            return sys.excepthook(kind, error, trace)
        except BaseException:
            pass
    # Python's own reads the lines of files only.
    traceback.print_exception(kind, error, trace)


def flush():
    for stream in {id(each): each for each in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)}.values():
        try:
            stream.flush()
        except BaseException:
            pass
    if library is not None:
        library.fflush(None)


def show(value):
    """As interactive Python shows a value, or by IPython's rules."""
    if value is None:
        return
    if shell is None:
        sys.displayhook(value)
        return
    shell.user_ns["_"] = value
    bundle, _ = shell.display_formatter.format(value)
    if bundle:
        display(bundle)


def display(bundle, display_id=None, update=False):
    """Displays the same content in several types; what a terminal would show of it is output, too."""
    text = next((bundle[kind] for kind in ("text/plain", "text/markdown", "text/latex") if bundle.get(kind)), None)
    if isinstance(text, str):
        print(text)
    tell({"data": bundle, "id": display_id, "update": update})


def tell(message):
    """Says something beside the output, and waits until that is taken, so that the order is that of the program."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        pass
    body = json.dumps(message, default=encode).encode()
    if len(body) > DISPLAYS:
        print("A display of more than %d MiB was left out." % (DISPLAYS >> 20), file=sys.stderr)
        return
    with displaying:
        way = rich
        if way is None:
            return
        try:
            way.write(struct.pack(">I", len(body)) + body)
            while struct.unpack("i", fcntl.ioctl(way.descriptor, termios.FIONREAD, b"\0\0\0\0"))[0]:
                sleep(0.0005)
        except OSError:
            pass


def encode(value):
    return base64.b64encode(value).decode() if isinstance(value, (bytes, bytearray)) else repr(value)


def finish_displays():
    """Has libraries show what they show at the end of a block, such as figures."""
    if shell is not None:
        shell.events.trigger("post_execute")


def start_shell():
    """IPython, as far as programs expect it where it shows what they display. It does not run the blocks."""
    global shell
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.history import HistoryManager
    from IPython.core.interactiveshell import InteractiveShell

    class Publisher(DisplayPublisher):
        def publish(self, data, metadata=None, *, transient=None, update=False, **_):
            display(data, (transient or {}).get("display_id"), bool(update))

        def clear_output(self, wait=False):
            tell({"clear": True, "wait": bool(wait)})

    HistoryManager.enabled = False
    hooks = sys.excepthook, sys.displayhook
    shell = InteractiveShell.instance(user_module=main, user_ns=vars(main), display_pub_class=Publisher)
    sys.excepthook, sys.displayhook = hooks
    for name in ("exit", "quit"):
        vars(main).pop(name, None)
    vars(builtins)["get_ipython"] = shell.get_ipython
    if "MPLBACKEND" not in os.environ and importlib.util.find_spec("matplotlib_inline"):
        os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"


def fork(way, said_status, said):
    """Below a shepherd of its own, which is not a child of this process, whose children are the program's."""
    global forking
    forking = True
    try:
        with warnings.catch_warnings():
            # Of threads, which do not come along.
            warnings.simplefilter("ignore")
            first = do_fork()
            if first == 0:
                fork_further(way, said_status, said)
                return
        wait_for(first, 0)
    except OSError:
        pass
    finally:
        forking = False
    for each in (way, said_status, said):
        close_one(each)


def fork_further(way, said_status, said):
    """Returns in the new interpreter."""
    try:
        if do_fork():
            exit_now(0)
        os.setsid()
        if library is not None:
            # PR_SET_CHILD_SUBREAPER
            library.prctl(36, 1, 0, 0, 0)
        program = do_fork()
    except BaseException:
        exit_now(1)
    if program:
        herd(program, said_status, said)
    become(way)
    close_one(said_status)
    close_one(said)


def herd(program, said_status, said):
    """The same as `herd` in blocks.py."""
    try:
        for each in ("SIGCHLD", "SIGINT", "SIGTERM", "SIGHUP"):
            signal.signal(getattr(signal, each), signal.SIG_DFL)
        write_all(said, b"%d %d\n" % (os.getpid(), program))
        os.dup2(said_status, 0)
        for each in os.listdir("/proc/self/fd"):
            if each != "0":
                close_quietly(int(each))
        while True:
            ended, how = wait_for(-1, 0)
            if ended == program:
                code = 128 + os.WTERMSIG(how) if os.WIFSIGNALED(how) else os.WEXITSTATUS(how)
                write_all(0, struct.pack(">I", code))
    finally:
        exit_now(0)


def close_quietly(descriptor):
    try:
        close_one(descriptor)
    except OSError:
        pass


def become(way):
    """What a fork has of its own: nothing of it goes where that of the first one goes."""
    global pid, control, displaying, forking
    os.setsid()
    pid, forking, displaying = os.getpid(), False, _thread.allocate_lock()
    nothing = os.open(os.devnull, os.O_RDWR)
    for target in range(3):
        os.dup2(nothing, target)
    close_one(nothing)
    control.close()
    control = open_control(way)


def open_control(descriptor):
    return _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, keep_high(descriptor))


def forget():
    """A fork that a program makes has nothing to say here, and nothing to hear."""
    global rich
    if forking:
        return
    control.close()
    for each in (rich, status):
        if each is not None:
            each.close()
    rich = None


def begin():
    global control, main
    control = open_control(CONTROL)
    has_displays = importlib.util.find_spec("IPython") is not None
    write_all(SAID, b"%d %d\n" % (pid, has_displays))
    close_one(SAID)
    for name in preload:
        try:
            __import__(name)
        except BaseException:
            sys.exc_info()
    sys.argv = [""]
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    if has_displays:
        try:
            start_shell()
        except Exception:
            sys.exc_info()
    sys.modules["__main__"] = main
    if safe in (None, "", "fenced"):
        sys.path.insert(0, "")
    os.register_at_fork(after_in_child=forget)


begin()
serve()
