"""Runs jupyter_server 1.x or 2.x for `LocalJupyterServer`.

It reads its settings from standard input, so that the token appears neither in a process list nor in an environment that
kernels would inherit. It ends when its standard input ends.
"""

import json
import os
import socket
import sys
import threading

settings = json.loads(sys.stdin.readline())

try:
    import jupyter_server
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_server.serverapp import ServerApp
    from tornado import ioloop
    from traitlets.config import Config
except ImportError as error:
    sys.exit("fenced: no jupyter_server: %s" % error)


class LimitedKernelSpecManager(KernelSpecManager):
    """Starts each kernel through a shell that limits the memory of the kernel and of each process that it starts."""

    def get_kernel_spec(self, kernel_name):
        spec = super().get_kernel_spec(kernel_name)
        limit = 'ulimit -d %d; exec "$@"' % (settings["memoryBytes"] // 1024)
        spec.argv = ["/bin/sh", "-c", limit, "fenced", *spec.argv]
        return spec


class QuietServerApp(ServerApp):
    # Both would write the token to files.
    def write_server_info_file(self):
        pass

    def write_browser_open_files(self):
        pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def adopt_orphans():
    # Processes that a kernel leaves behind become children of the server and end with it (PR_SET_CHILD_SUBREAPER).
    try:
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)
    except Exception:
        pass


def bury_orphans():
    # The kernel managers wait for kernels themselves.
    kernels = {manager.provisioner.pid for manager in app.kernel_manager._kernels.values() if manager.provisioner}
    while True:
        try:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if dead is None or dead.si_pid in kernels:
                return
            os.waitpid(dead.si_pid, os.WNOHANG)
        except ChildProcessError:
            return


config = Config()
config.ServerApp.update(
    ip="127.0.0.1",
    port=free_port(),
    port_retries=0,
    open_browser=False,
    allow_root=True,
    root_dir=os.path.abspath(os.sep),
    terminals_enabled=False,
    jpserver_extensions={},
    tornado_settings={"websocket_max_message_size": 1 << 30},
)
if settings.get("memoryBytes") is not None:
    config.ServerApp.kernel_spec_manager_class = LimitedKernelSpecManager
config.FileContentsManager.delete_to_trash = False
config.KernelManager.shutdown_wait_time = 2.0
config.KernelRestarter.time_to_dead = 1.0
if int(jupyter_server.__version__.split(".")[0]) < 2:
    config.ServerApp.update(token=settings["token"], iopub_data_rate_limit=0, iopub_msg_rate_limit=0)
else:
    config.IdentityProvider.token = settings["token"]
    config.ZMQChannelsWebsocketConnection.limit_rate = False

adopt_orphans()
app = QuietServerApp(config=config)
app.initialize(argv=[])


def stop_at_end_of_input():
    sys.stdin.read()
    app.io_loop.add_callback_from_signal(app.stop)


def announce():
    print("fenced:" + json.dumps({"port": config.ServerApp.port, "version": jupyter_server.__version__}), flush=True)


threading.Thread(target=stop_at_end_of_input, daemon=True).start()
app.io_loop.add_callback(announce)
if hasattr(os, "waitid"):
    ioloop.PeriodicCallback(bury_orphans, 1000).start()
app.start()
