"""Tells the host about the place in which the supervisor runs. Python 3.8 or later, standard library only."""

import os
import select
import sys

import _fenced_processes as processes


# Milliseconds after which `node` is taken to hang.
VERSION_LIMIT = 5000


def greeting(directory, probe_file, path, programs, known_node):
    """Returns the lines of the greeting. Creates the session's directory. `known_node`: the version of a Node that need not be asked
    for it, and its real path; or nothing."""
    path = path or os.environ.get("PATH", os.defpath)
    places = [(name, processes.which(name, path)) for name in programs]
    node = dict(places).get("node")
    version, _, known = known_node.partition(" ")
    asked = ask_version(node) if node and os.path.realpath(node) != known else None
    lines = ["self %d" % processes.SELF, "uid %d" % os.getuid(), "gid %d" % os.getgid(), "probe " + probe(probe_file)]
    lines += ["program %s %s" % each for each in places if each[1]]
    installed = packages(path)
    if installed is not None:
        lines.append("packages " + " ".join(installed))
    for name in ("", "home", "functions"):
        try:
            os.makedirs(os.path.join(directory, name), 0o700, exist_ok=True)
        except OSError as error:
            lines.append("problem " + str(error))
    if asked:
        version = answer(*asked)
    if node and version:
        lines.append("node " + version)
    if sys.executable and can_watch():
        lines.append("watcher " + sys.executable)
    return lines


def can_watch():
    """Whether this Python can watch directories. Not all have `ctypes`, which takes long to import."""
    return sys.platform == "linux" and any(each.find_spec("_ctypes", None) for each in sys.meta_path)


def identities(mounts):
    """Which device and inode each mount is, and which kernel says so: only on the same kernel can the host compare them. A mount below
    a directory that this user may not enter is `?`."""
    if not mounts:
        return []
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            lines = ["kernel " + file.read().strip()]
    except OSError:
        return []
    for mount in mounts:
        try:
            found = os.stat(mount)
            lines.append("mount %d:%d %s" % (found.st_dev, found.st_ino, mount))
        except PermissionError:
            lines.append("mount ? " + mount)
        except OSError:
            pass
    return lines


MOST_PACKAGES = 200


def packages(path):
    """Returns the names of the packages of the Python that blocks use, or None if this is another one: that of a virtual environment
    has packages of its own."""
    if sys.executable != (processes.which("python3", path) or processes.which("python", path)):
        return None
    if os.path.exists(os.path.join(os.path.dirname(os.path.dirname(sys.executable)), "pyvenv.cfg")):
        return None
    import site

    names = set()
    for place in site.getsitepackages():
        try:
            entries = os.listdir(place)
        except OSError:
            continue
        names.update(entry.split("-")[0] for entry in entries if entry.endswith((".dist-info", ".egg-info")))
    return sorted(names - {"pip", "setuptools", "wheel"}, key=str.lower)[:MOST_PACKAGES]


def ask_version(program):
    reading, writing = os.pipe()
    asked = os.fork()
    if asked == 0:
        try:
            os.dup2(writing, 1)
            os.execv(program, [program, "--version"])
        finally:
            os._exit(1)
    os.close(writing)
    return asked, reading


def answer(asked, reading):
    """Returns what the program says, or nothing if it hangs."""
    waiting = select.poll()
    waiting.register(reading, select.POLLIN)
    said = os.read(reading, 100) if waiting.poll(VERSION_LIMIT) else b""
    os.close(reading)
    os.kill(asked, processes.signal.SIGKILL)
    os.waitpid(asked, 0)
    return said.decode("utf-8", "replace").strip()


def probe(file):
    """Proves to the host that both see the same work directory, and that the supervisor can write to it."""
    if not file:
        return ""
    try:
        with open(file, "r+") as opened:
            question = opened.read(100)
            opened.write("r")
            return question.strip()
    except OSError as error:
        return os.strerror(error.errno)


def own_variables():
    """The variables that the host gave this program, by which it finds processes."""
    return {name: value for name, value in os.environ.items() if name.startswith("FENCED_")}


def block_environment(directory, workspace, alone):
    """Returns the variables of blocks. A user without a home directory gets one, since pip and others write there; so does a user
    whose home is the work directory, which is Podman's choice for users known only by number. A user without a name gets one for
    programs that ask the environment. In a place of its own, pip may install packages although the image's distribution manages
    its Python: it does so in the user's home directory. On somebody's host, over SSH, that is for the account's owner to decide."""
    given = dict(os.environ)
    if not os.access(given.get("HOME") or "/nowhere", os.W_OK) or given["HOME"] in ("/", workspace):
        given["HOME"] = os.path.join(directory, "home")
    given["PATH"] = given.get("PATH", os.defpath) + ":" + os.path.join(given["HOME"], ".local", "bin")
    if alone:
        given.setdefault("PIP_BREAK_SYSTEM_PACKAGES", "1")
    if not has_name():
        for name in ("USER", "LOGNAME"):
            given.setdefault(name, "sandbox")
    return given


def has_name():
    try:
        import pwd

        pwd.getpwuid(os.getuid())
    except (ImportError, KeyError):
        return False
    return True
