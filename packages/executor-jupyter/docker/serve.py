"""Runs jupyter_server 1.x or 2.x for `DockerJupyterServer`, on port 8888 of its container.

The server's token gives its holder all kernels, so code must not find it: it comes over standard input if FENCED_LEASHED is set,
as variables, one a line, up to an empty line; otherwise in the variable TOKEN. It is in no argument, no file and no environment of
a kernel, and no other process may read this one's memory. If FENCED_LEASHED is set, this program ends when its standard input ends.
"""

import ctypes
import os
import sys
import threading

# PR_SET_DUMPABLE
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
leashed = os.environ.pop("FENCED_LEASHED", None) is not None
source = os.fdopen(os.dup(0), "rb", buffering=0)


def read_line():
    line = b""
    while not line.endswith(b"\n"):
        byte = source.read(1)
        if not byte:
            os._exit(1)
        line += byte
    return os.fsdecode(line[:-1])


def end_with_input():
    while source.read(65536):
        pass
    os._exit(0)


if leashed:
    for line in iter(read_line, ""):
        name, value = line.split("=", 1)
        os.environ[name] = value
    # Kernels inherit the standard streams.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=end_with_input, daemon=True).start()
token = os.environ.pop("TOKEN")

import jupyter_server
from jupyter_server.serverapp import ServerApp
from traitlets.config import Config


class QuietServerApp(ServerApp):
    # Both would write the token to files.
    def write_server_info_file(self):
        pass

    def write_browser_open_files(self):
        pass


config = Config()
config.ServerApp.update(
    ip="0.0.0.0",
    port=8888,
    port_retries=0,
    open_browser=False,
    allow_root=True,
    root_dir="/workspace",
    # It would be in a file otherwise.
    cookie_secret=os.urandom(32),
)
config.FileContentsManager.delete_to_trash = False
if int(jupyter_server.__version__.split(".")[0]) < 2:
    config.ServerApp.update(token=token, iopub_data_rate_limit=0, iopub_msg_rate_limit=0)
else:
    config.IdentityProvider.token = token
    config.ZMQChannelsWebsocketConnection.limit_rate = False
QuietServerApp.launch_instance(argv=[], config=config)
