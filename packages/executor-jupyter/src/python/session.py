"""The module `_fenced`, beside the user's code in a Python kernel: starts and ends a session, and answers requests.

Python 3.8 or later, standard library only. It does not touch the user's variables.
"""

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings

import _fenced_block_surroundings as surroundings
import _fenced_blocks as blocks
import _fenced_calls as calls
import _fenced_files as files
import _fenced_kept as kept
import _fenced_loops as loops
import _fenced_mounts as mounts
import _fenced_processes as processes

leash_pipe = None
# What the host learned when the session began.
report = None
# Directories for a user's packages that did not exist before, deepest first.
packages = []


class Reply:
    """The result of an expression that is evaluated after a cell; the kernel sends it as JSON."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return "<Reply>"

    def _repr_mimebundle_(self, **_):
        return {"application/json": self.value}


def call(name, arguments):
    try:
        return {"value": actions[name](**arguments)}
    except files.Outside:
        return {"error": "outside"}
    except (files.NotAFile, IsADirectoryError, FileExistsError):
        return {"error": "not_a_file"}
    except files.InTheWay:
        return {"error": "in_the_way"}
    except (FileNotFoundError, NotADirectoryError):
        return {"error": "not_found"}
    except Exception as error:
        if getattr(error, "errno", None) == errno.ENAMETOOLONG:
            return {"error": "name"}
        if getattr(error, "errno", None) == errno.EXDEV:
            return {"error": "other_file_system"}
        return {"error": "failed", "reason": ("%s: %s" % (type(error).__name__, error))[:1000]}


def ask(name, arguments):
    return Reply(call(name, json.loads(arguments)))


def begin(mark, scratch, directory, create, env, has_functions, leash, keep=None):
    """With `keep`, the session outlives its host. Returns nothing if it has begun, for another host that does the same."""
    global report
    if kept.kept is not None:
        return None
    if keep is not None and keep["heir_of"] and not kept.take_files_over(keep["heir_of"]):
        if keep["is_left"]:
            # Without a keeper, nothing else would end them.
            is_abandoned = not kept.has_keeper(get_ipython().kernel.parent)
            if is_abandoned and keep["owns_workspace"]:
                remove_quietly(directory)
            return {"over": True, "abandoned": is_abandoned}
        if keep["owns_workspace"]:
            directory = rescue(directory)
            create = directory is None
    processes.note_session()
    packages[:] = surroundings.create_user_packages()
    aside = answer_aside()
    blocks.home = files.home = home = tempfile.mkdtemp(prefix="fenced-kernel-", dir=scratch)
    os.environ["FENCED_KERNEL"] = mark
    if keep is None:
        start_leash(leash, "FENCED_KERNEL=" + mark)
    os.environ.update(env)
    if create:
        directory = tempfile.mkdtemp(prefix="fenced-workspace-", dir=scratch)
    if directory is not None:
        os.makedirs(directory, exist_ok=True)
        os.chdir(directory)
    files.workspace = os.getcwd()
    functions = os.path.join(home, "functions")
    os.makedirs(functions)
    sys.path.insert(0, functions)
    if has_functions:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [functions, os.environ.get("PYTHONPATH")]))
    warnings.filterwarnings("ignore", message="To exit: use")
    watch_cells()
    loops.allow_loops()
    for stream in (sys.stdout, sys.stderr):
        blocks.watch_output(stream)
    keep_output()
    blocks.functions = functions
    can_call = aside and calls.offer(get_ipython().kernel, home)
    shells = [name for name in ("bash", "sh") if shutil.which(name)] if os.name == "posix" else []
    if keep is not None:
        try:
            begin_kept(keep, mark, create or keep["owns_workspace"])
        except kept.Problem as problem:
            end(create)
            return {"problem": str(problem)}
    report = {
        "workspace": files.workspace,
        "functions": functions,
        "commands": os.path.join(home, "commands"),
        "shells": shells,
        "aside": aside,
        "calls": can_call,
    }
    return report


def rescue(directory):
    """Returns a work directory under a name by which the keeper that it had, which is ending, does not remove it; `None` if it is gone."""
    place = tempfile.mkdtemp(prefix="fenced-workspace-", dir=os.path.dirname(directory))
    try:
        os.rename(directory, place)
        return place
    except OSError:
        os.rmdir(place)
        return None


def begin_kept(keep, mark, removes_workspace):
    kernel = get_ipython().kernel
    words = ["FENCED_KERNEL=" + mark, files.home, files.workspace if removes_workspace else "", keep["removal"]]

    def take_frames(send, parent):
        if send is None:
            calls.bridge.forget_host()
        else:
            calls.bridge.take(send, parent)

    kept.start(kernel, keep, words, call, take_frames)
    calls.takers[b'"fenced_link"'] = kept.kept.links.take, "fenced_link"
    processes.adopt_orphans()
    blocks.wait_for_room = kept.wait_for_room
    blocks.watch_displays(get_ipython().display_pub)


def adopt():
    """Another host uses the session. Returns what the first one learned, and whether a cell of an earlier one is still running."""
    return {"report": report, "busy": bool(kept.kept.busy)}


def settle():
    """Whatever earlier hosts were running is over; their blocks' variables are, too."""
    while blocks.outer_env:
        blocks.pop_env(blocks.outer_calls[-1])


def start_leash(leash, mark):
    """Ends all processes that the kernel has started when the kernel ends, however it ends."""
    global leash_pipe
    if not os.path.isdir("/proc/self") or not os.path.exists("/bin/sh"):
        return
    reading, leash_pipe = os.pipe()
    words = ["/bin/sh", "-c", 'exec 3<&0; (exec 0<&3 3<&-; eval "$0") &', leash, mark, files.home]
    path = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    nothing = subprocess.DEVNULL
    subprocess.Popen(
        words, stdin=reading, stdout=nothing, stderr=nothing, cwd="/", env=path, start_new_session=True
    ).wait()
    os.close(reading)
    pipe = leash_pipe
    os.register_at_fork(after_in_child=lambda: os.close(pipe))
    processes.adopt_orphans()


def watch_cells():
    processes.note_cell()
    try:
        get_ipython().events.register("pre_run_cell", processes.note_cell)
        get_ipython().events.register("pre_run_cell", lambda *_: surroundings.search_user_packages())
    except Exception:
        pass


def keep_output():
    # By default ZeroMQ drops messages that a slow server has not read, even the end of the cell. 0 keeps them all.
    try:
        import zmq

        thread = get_ipython().kernel.iopub_thread
        thread.schedule(lambda: thread.socket.setsockopt(zmq.SNDHWM, 0))
    except Exception:
        pass


def end(remove_workspace):
    global leash_pipe
    processes.kill(everything=True)
    calls.end()
    # Requests that come after this one would create files again.
    for name in file_actions:
        actions[name] = refuse
    remove_quietly(files.home)
    for directory in packages:
        try:
            os.rmdir(directory)
        except OSError:
            break
    if remove_workspace:
        os.chdir(os.path.dirname(files.workspace))
        remove_quietly(files.workspace)
    if leash_pipe is not None:
        os.close(leash_pipe)
        leash_pipe = None


def remove_quietly(directory):
    if not mounts.detach(directory):
        return
    try:
        files.remove_tree(directory)
    except OSError:
        shutil.rmtree(directory, ignore_errors=True)


def refuse(**_):
    raise RuntimeError("the executor was stopped")


def offer(module, names):
    """Also defines the names of a module that was set up as variables."""
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if files.home is None or file is None or not file.startswith(files.home):
        return False
    get_ipython().user_ns.update({name: getattr(loaded, name) for name in names})
    return True


def get_ipython():
    import IPython

    return IPython.get_ipython()


def answer_aside():
    """Answers on the control channel, which has its own thread, so that a busy kernel answers too."""
    kernel = getattr(get_ipython(), "kernel", None)
    if kernel is None or not hasattr(kernel, "control_handlers"):
        return False

    def on_request(stream, ident, parent):
        content = parent["content"]
        value = call(content["name"], content["arguments"])
        kernel.session.send(stream, "fenced_reply", value, parent, ident)

    kernel.control_handlers["fenced_request"] = on_request
    return True


file_actions = {
    each.__name__: each
    for each in (
        files.list_files,
        files.drop_listing,
        files.stat_file,
        files.read_file,
        files.write_file,
        files.drop_upload,
        files.move_file,
        files.make_directory,
        files.remove_file,
    )
}
actions = {
    each.__name__: each
    for each in (begin, adopt, settle, end, processes.kill, processes.interrupt, blocks.push_env, blocks.pop_env, offer)
}
actions.update(file_actions)
