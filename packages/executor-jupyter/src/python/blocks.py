"""Sets up the environment of the user's blocks, and runs shell blocks. Python 3.8 or later, standard library only."""

import codecs
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time

import _fenced_block_surroundings as surroundings

home = functions = None
outer_env, outer_calls = [], []
shell_exit = 0


def wait_for_room():
    """Called before something is printed or shown."""


def push_env(env, calls=None):
    """Sets a block's variables. `calls`: the modules and commands with which it can call host functions."""
    if calls is not None:
        env = dict(env)
        surroundings.choose_modules(functions, calls["modules"], calls["names"])
        env["PYTHONPATH"] = os.pathsep.join(
            filter(None, [calls["modules"], env.get("PYTHONPATH", outer("PYTHONPATH"))])
        )
        env["PATH"] = os.pathsep.join(filter(None, [calls["commands"], env.get("PATH", outer("PATH"))]))
    outer_env.append(surroundings.set_variables(env))
    outer_calls.append(calls)


def pop_env(calls=None):
    del outer_calls[-1:]
    if calls is not None:
        surroundings.choose_modules(functions, functions, calls["names"])
    surroundings.restore_variables(outer_env.pop() if outer_env else {})


def outer(name):
    return os.environ.get(name, "")


def shell(program, code, stdin):
    global shell_exit
    descriptor, script = tempfile.mkstemp(prefix="block-", suffix=".sh", dir=home)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(code)
        shell_exit = run_script([program, script], stdin)
    finally:
        # The block may have removed it.
        try:
            os.unlink(script)
        except OSError:
            pass


def run_script(words, stdin):
    hidden = ("MPLBACKEND", "JPY_PARENT_PID", "PYDEVD_USE_FRAME_EVAL")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    given = subprocess.DEVNULL if stdin is None else subprocess.PIPE
    process = subprocess.Popen(words, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    pieces = queue.Queue(64)
    if stdin is not None:
        start_thread(feed, process.stdin, stdin.encode("utf-8", "replace"))
    readers = [
        start_thread(read_pipe, process.stdout, sys.stdout, pieces),
        start_thread(read_pipe, process.stderr, sys.stderr, pieces),
    ]
    start_thread(wait_for, process, readers, pieces)
    try:
        while True:
            stream, text = pieces.get()
            if stream is None:
                break
            stream.write(text)
            stream.flush()
    finally:
        pieces.closed = True
        if process.poll() is None:
            process.kill()
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def start_thread(work, *arguments):
    thread = threading.Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


def feed(pipe, data):
    try:
        pipe.write(data)
        pipe.close()
    except OSError:
        pass


def read_pipe(pipe, stream, pieces):
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while True:
        data = os.read(pipe.fileno(), 65536)
        text = decoder.decode(data, final=not data)
        # Output that a child writes after its block has ended is discarded, but must not block the child.
        while text and not getattr(pieces, "closed", False):
            try:
                pieces.put((stream, text), timeout=0.1)
                break
            except queue.Full:
                pass
        if not data:
            return pipe.close()


def wait_for(process, readers, pieces):
    process.wait()
    # A child may hold the output open: read only what the pipes contain by now.
    for reader in readers:
        reader.join(0.05)
    while not getattr(pieces, "closed", False) and pieces.full():
        time.sleep(0.01)
    pieces.put((None, ""))


def watch_output(stream):
    """Sends a stream's output in pieces of bounded size, without the 0.2 seconds for which kernels collect it."""
    if not hasattr(stream, "flush_interval"):
        return
    write, most, waiting = stream.write, 1 << 20, 0

    def write_and_flush(text):
        nonlocal waiting
        if not isinstance(text, str):
            return write(text)
        for start in range(0, len(text), most):
            wait_for_room()
            write(text[start : start + most])
            waiting += min(most, len(text) - start)
            if waiting > most:
                waiting = 0
                stream.flush()
        return len(text)

    stream.flush_interval = 0.03
    stream.write = write_and_flush


def watch_displays(publisher):
    publish = publisher.publish

    def publish_later(*values, **named):
        wait_for_room()
        return publish(*values, **named)

    publisher.publish = publish_later
