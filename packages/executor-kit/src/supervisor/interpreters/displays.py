"""Shows what a session's blocks display: values of expressions, and what they pass to IPython. Python 3.8 or later."""

import _thread
import base64
import builtins
import fcntl
import importlib.util
import json
import os
import struct
import sys
import termios

# Imported early, because libraries replace it for the programs that they run.
from time import sleep

# Maximum size of one display in bytes.
MOST = 33554432
# IPython's shell, if IPython is installed; and the pipe for displays while a block runs.
shell = pipe = None
# A module that is added to this program sets it, to show the values of expressions otherwise.
present = None
displaying = _thread.allocate_lock()


def show(value):
    """Shows a value the way IPython would if it is installed, otherwise the way interactive Python would."""
    if value is None:
        return
    if present is not None:
        return present(value)
    if shell is None:
        sys.displayhook(value)
        return
    shell.user_ns["_"] = value
    bundle, _ = shell.display_formatter.format(value)
    if bundle:
        display(bundle)


def display(bundle, display_id=None, update=False):
    """Displays one bundle of MIME types; the host prints what can be read of it."""
    if not tell({"data": bundle, "id": display_id, "update": update}) and isinstance(bundle.get("text/plain"), str):
        print(bundle["text/plain"])


def tell(message):
    """
    Sends a message and waits until it has been read, so that displays and output keep the program's order; returns
    whether it was sent.
    """
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        pass
    body = encoded(message).encode()
    if len(body) > MOST:
        print("A display larger than %d MiB was left out." % (MOST >> 20), file=sys.stderr)
        return False
    with displaying:
        way = pipe
        if way is None:
            return False
        try:
            way.write(struct.pack(">I", len(body)) + body)
            while struct.unpack("i", fcntl.ioctl(way.descriptor, termios.FIONREAD, b"\0\0\0\0"))[0]:
                sleep(0.0005)
        except OSError:
            return False
    return True


def encoded(message):
    try:
        return json.dumps(message, default=encode, allow_nan=False)
    except ValueError:
        # JSON has no infinite numbers, and none for "not a number".
        return json.dumps(finite(message), default=encode)


def finite(value):
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    return [finite(each) for each in value] if isinstance(value, (list, tuple)) else value


def encode(value):
    return base64.b64encode(value).decode() if isinstance(value, (bytes, bytearray)) else repr(value)


def finish():
    """Lets libraries show what they show at the end of a cell, such as figures."""
    if shell is not None:
        shell.events.trigger("post_execute")


def forget():
    """Call this in a fork of the interpreter: another thread may have held the lock at the time of the fork."""
    global displaying
    displaying = _thread.allocate_lock()


def start_shell(main):
    """Starts as much of IPython as programs need to display something. It does not run the blocks."""
    global shell
    from IPython.core import interactiveshell
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.history import HistoryManager
    from IPython.core.profiledir import ProfileDir

    class Publisher(DisplayPublisher):
        def publish(self, data, metadata=None, *, transient=None, update=False, **_):
            display(data, (transient or {}).get("display_id"), bool(update))

        def clear_output(self, wait=False):
            tell({"clear": True, "wait": bool(wait)})

    # It must have no files, which nobody would remove if the interpreter is killed: neither a history, nor a database, nor a
    # profile. Its directory has to exist.
    HistoryManager.enabled = False
    interactiveshell.PickleShareDB = lambda _: {}
    hooks = sys.excepthook, sys.displayhook
    shell = interactiveshell.InteractiveShell.instance(
        user_module=main, user_ns=vars(main), display_pub_class=Publisher, profile_dir=ProfileDir(), ipython_dir="/"
    )
    sys.excepthook, sys.displayhook = hooks
    # `!ls` prints what it prints, without a terminal in between; `%matplotlib` needs no event loop of a window system.
    shell.system, shell.enable_gui = shell.system_raw, lambda gui=None: None
    for name in ("exit", "quit"):
        vars(main).pop(name, None)
    vars(builtins)["get_ipython"] = shell.get_ipython
    if "MPLBACKEND" not in os.environ and importlib.util.find_spec("matplotlib_inline"):
        os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
