/** The beginning and the end of a session in the kernel, and how the helper is asked. */
export const sessionSource: string = String.raw`
import base64, codecs, errno, importlib, json, os, queue, shutil, signal, stat, subprocess, sys, tempfile, threading, time, warnings

home = workspace = leash_pipe = started = began = None
outer_env = []
shell_exit = 0


class Reply:
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return "<Reply>"

    def _repr_mimebundle_(self, **_):
        return {"application/json": self.value}


class Outside(Exception):
    pass


class NotAFile(Exception):
    pass


def call(name, arguments):
    try:
        return {"value": actions[name](**arguments)}
    except Outside:
        return {"error": "outside"}
    except (NotAFile, IsADirectoryError, FileExistsError):
        return {"error": "not_a_file"}
    except (FileNotFoundError, NotADirectoryError):
        return {"error": "not_found"}
    except Exception as error:
        if getattr(error, "errno", None) == errno.ENAMETOOLONG:
            return {"error": "name"}
        return {"error": "failed", "reason": "%s: %s" % (type(error).__name__, error)}


def ask(name, arguments):
    return Reply(call(name, json.loads(arguments)))


# A session's beginning and end.

leash_program = """
trap '' HUP INT TERM
while read -r line; do :; done
for round in 1 2 3 4 5; do
  found=$(grep -lsazxF -e "$1" /proc/[0-9]*/environ)
  [ -n "$found" ] || break
  for place in $found; do
    place=${"$"}{place#/proc/}
    kill -KILL "${"$"}{place%/environ}"
  done
done
rm -rf -- "$2"
"""


def begin(mark, scratch, directory, create, env, modules):
    global home, workspace, began
    began = now()
    aside = install_control()
    home = tempfile.mkdtemp(prefix="fenced-kernel-", dir=scratch)
    os.environ["FENCED_KERNEL"] = mark
    start_leash("FENCED_KERNEL=" + mark)
    os.environ.update(env)
    if create:
        directory = tempfile.mkdtemp(prefix="fenced-workspace-", dir=scratch)
    if directory is not None:
        os.makedirs(directory, exist_ok=True)
        os.chdir(directory)
    workspace = os.getcwd()
    functions = os.path.join(home, "functions")
    os.makedirs(functions)
    sys.path.insert(0, functions)
    if modules is not None:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [functions, os.environ.get("PYTHONPATH")]))
        for name, source in modules.items():
            with open(os.path.join(functions, name + ".py"), "w", encoding="utf-8", newline="\n") as file:
                file.write(source)
    warnings.filterwarnings("ignore", message="To exit: use")
    watch_cells()
    hurry_output()
    shells = [name for name in ("bash", "sh") if shutil.which(name)] if os.name == "posix" else []
    return {"workspace": workspace, "functions": functions, "shells": shells, "pid": os.getpid(), "aside": aside}


def start_leash(mark):
    # Ends what the kernel started when the kernel ends, in whatever way.
    global leash_pipe
    if not os.path.isdir("/proc/self") or not os.path.exists("/bin/sh"):
        return
    reading, leash_pipe = os.pipe()
    words = ["/bin/sh", "-c", 'exec 3<&0; (exec 0<&3 3<&-; eval "$0") &', leash_program, mark, home]
    path = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    nothing = subprocess.DEVNULL
    subprocess.Popen(words, stdin=reading, stdout=nothing, stderr=nothing, cwd="/", env=path, start_new_session=True).wait()
    os.close(reading)
    pipe = leash_pipe
    os.register_at_fork(after_in_child=lambda: os.close(pipe))
    adopt_orphans()


def adopt_orphans():
    # Whoever loses its parent becomes a child of the kernel, where kill() finds it (PR_SET_CHILD_SUBREAPER).
    try:
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)
    except Exception:
        pass


def watch_cells():
    def note_start(*_):
        global started
        started = now()

    note_start()
    try:
        get_ipython().events.register("pre_run_cell", note_start)
    except Exception:
        pass


def end(remove_workspace):
    global leash_pipe
    kill(everything=True)
    shutil.rmtree(home, ignore_errors=True)
    if remove_workspace:
        # What was asked behind this would make it again.
        for name in ("list_files", "read_file", "write_file", "remove_file"):
            actions[name] = refuse
        os.chdir(os.path.dirname(workspace))
        shutil.rmtree(workspace, ignore_errors=True)
    if leash_pipe is not None:
        os.close(leash_pipe)
        leash_pipe = None


def refuse(**_):
    raise RuntimeError("the executor was stopped")


def hurry_output():
    # Kernels collect output for 0.2 seconds: slow output comes late, and fast output as one message of any size.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "flush_interval"):
            stream.flush_interval = 0.03
            stream.write = flushing(stream, stream.write)


def flushing(stream, write):
    waiting = 0

    def write_and_flush(text):
        nonlocal waiting
        written = write(text)
        waiting += len(text)
        if waiting > 1 << 20:
            waiting = 0
            stream.flush()
        return written

    return write_and_flush


def get_ipython():
    import IPython

    return IPython.get_ipython()


def install_control():
    # The control channel is served by a thread of its own, so that a busy kernel answers too.
    kernel = getattr(get_ipython(), "kernel", None)
    if kernel is None or not hasattr(kernel, "control_handlers"):
        return False

    def on_request(stream, ident, parent):
        content = parent["content"]
        value = call(content["name"], content["arguments"])
        kernel.session.send(stream, "fenced_reply", value, parent, ident)

    kernel.control_handlers["fenced_request"] = on_request
    return True
`;
