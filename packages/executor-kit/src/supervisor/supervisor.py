"""Starts and ends blocks for a host that talks to it over one stream, in frames. Python 3.8 or later, standard library only.

Arguments: a directory of the session's own, which is made here; the directory in which blocks run; a probe file in it, or
nothing; the PATH to look for programs on, or nothing; `alone` if nothing else is meant to run here, or nothing; the abstract
socket of a keeper, or nothing; the programs to look for. It imports little, and `signal` and `collections` only by their cores: what Python loads, the start waits for.
"""

import os
import select
import struct
import sys

import _fenced_block_files as block_files
import _fenced_blocks as blocks
import _fenced_channel as channels
import _fenced_feeds as feeds
import _fenced_keeper as keeper
import _fenced_processes as processes
import _fenced_relay as relay
import _fenced_tunnels as tunnels
from _fenced_channel import channel, events

DIRECTORY, WORKSPACE, PROBE, PATH, ALONE, KEEPER = sys.argv[1:7]
PROGRAMS = sys.argv[7:]

listener = None
resetting = False
tunnel_orders = {
    channels.TUNNEL_CONNECT: tunnels.connect,
    channels.TUNNEL_WRITE: tunnels.write,
    channels.TUNNEL_CREDIT: tunnels.give_credit,
    channels.TUNNEL_END: tunnels.end,
    channels.TUNNEL_DROP: tunnels.drop,
}


def obey(kind, number, payload):
    global resetting
    if kind == channels.RUN:
        # No argument and no variable can contain a NUL character.
        mark, credit, feed, count, *words = payload.split(b"\0")
        argv, variables = words[: int(count)], words[int(count) :]
        environ = dict(os.fsdecode(each).split("=", 1) for each in variables)
        if feed:
            blocks.inputs[number] = feeds.begin(number)
        blocks.start(number, mark, int(credit), [os.fsdecode(each) for each in argv], environ)
    elif kind == channels.INPUT:
        if number not in blocks.inputs:
            blocks.inputs[number] = blocks.scratch()
        view = memoryview(payload)
        while len(view):
            view = view[os.write(blocks.inputs[number], view) :]
    elif kind == channels.FEED:
        feeds.write(number, payload)
    elif kind == channels.FILE:
        block_files.write(number, WORKSPACE, payload)
    elif kind == channels.PING:
        keeper.beat()
        channel.send(channels.PONG, 0)
    elif kind == channels.RESET:
        resetting = True
        end_waiting()
    elif kind == channels.WARM:
        keep_warm(number, *payload.split(b"\0", 1))
    elif kind == channels.SESSION:
        if blocks.sessions is None:
            # The first one is the program itself.
            blocks.sessions = load("sessions", payload)
        else:
            blocks.sessions.obey(number, payload)
    elif kind == channels.LISTEN:
        network = number == tunnels.NETWORK
        place = os.path.join(DIRECTORY, "calls")
        answer = relay.listen(DIRECTORY, payload) if network else tunnels.listen_for_calls(place)
        channel.send(channels.LISTENING, number, os.fsencode(answer))
    elif kind in tunnel_orders:
        tunnel_orders[kind](number, payload)
    elif number in blocks.blocks:
        if kind == channels.KILL:
            blocks.kill(blocks.blocks[number])
        elif kind == channels.CREDIT:
            blocks.give_credit(blocks.blocks[number], struct.unpack(">I", payload)[0])


def keep_warm(number, source, settings):
    """The program comes with the order: those that keep nothing warm do not have to load it. 0: for Python, 1: for JavaScript."""
    name = ("warm", "spare")[number]
    if getattr(blocks, name) is None:
        setattr(blocks, name, load(name, source))
    getattr(blocks, name).configure(settings)


def load(name, source):
    module = type(sys)("_fenced_" + name)
    exec(compile(source, "<_fenced_" + name + ">", "exec"), module.__dict__)
    return module


def end_waiting():
    for each in (blocks.warm, blocks.spare):
        if each is not None:
            each.end()


def listen():
    """A socket beside the probe file: a way around whoever carries the stream, for a host that sees the same directory."""
    if not PROBE:
        return None
    try:
        import _socket

        made = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        before = os.umask(0o077)
        try:
            made.bind(PROBE + ".sock")
        finally:
            os.umask(before)
        made.listen(1)
        made.setblocking(False)
        events.register(made.fileno(), select.EPOLLIN)
        return made
    except (ImportError, OSError):
        return None


def accept():
    try:
        descriptor = listener._accept()[0]
    except OSError:
        return
    os.set_blocking(descriptor, False)
    channel.switch(descriptor)
    deafen()


def deafen():
    """The host has chosen its way: nobody else gets to talk to this program."""
    global listener
    if listener is not None:
        events.unregister(listener.fileno())
        listener.close()
        listener = None
        forget_socket()


def forget_socket():
    try:
        os.unlink(PROBE + ".sock")
    except OSError:
        pass


def take_frames():
    frames = channel.receive()
    if frames is None:
        leave()
    if channel.synced:
        deafen()
    for kind, number, payload in frames:
        obey(kind, number, payload)


def clear_workspace():
    """What the host would have removed: it died, and all that watches over it may have died with it, in its container."""
    # .fenced-SESSION-REST
    own = os.path.basename(PROBE).split("-")[:2]
    for name in os.listdir(WORKSPACE) if PROBE else ():
        if name.split("-")[:2] == own:
            try:
                os.unlink(os.path.join(WORKSPACE, name))
            except OSError:
                pass


def leave():
    if listener is not None:
        forget_socket()
    if ALONE:
        clear_workspace()
    else:
        import shutil

        os.set_blocking(1, True)
        blocks.end_all()
        end_waiting()
        shutil.rmtree(DIRECTORY, ignore_errors=True)
    os._exit(0)


def reset_step():
    """Takes the next step to an empty place; returns whether it is empty."""
    for block in blocks.blocks.values():
        block.killing = True
    if blocks.blocks or blocks.sessions is not None and not blocks.sessions.end_all():
        return False
    left = set(processes.processes()) - {1, processes.SELF} if ALONE else set()
    processes.stop(left)
    processes.kill(left)
    return not left


def hello():
    path = PATH or os.environ.get("PATH", os.defpath)
    places = [(name, processes.which(name, path)) for name in PROGRAMS]
    asked = ask_version(dict(places)["node"]) if dict(places).get("node") else None
    lines = ["self %d" % processes.SELF, "uid %d" % os.getuid(), "gid %d" % os.getgid(), "probe " + probe()]
    lines += ["program %s %s" % each for each in places if each[1]]
    if listener is not None:
        lines.append("socket " + os.path.basename(PROBE) + ".sock")
    for name in ("", "home", "functions"):
        try:
            os.makedirs(os.path.join(DIRECTORY, name), 0o700, exist_ok=True)
        except OSError as error:
            lines.append("problem " + str(error))
    if asked:
        lines.append("node " + os.read(asked[1], 100).decode("utf-8", "replace").strip())
        os.close(asked[1])
        os.waitpid(asked[0], 0)
    return "\n".join(lines)


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


def probe():
    """Proves to the host that the work directory is the one that it means, and can be written to."""
    if not PROBE:
        return ""
    try:
        with open(PROBE, "r+") as file:
            question = file.read(100)
            file.write("r")
            return question.strip()
    except OSError as error:
        return os.strerror(error.errno)


def block_environment():
    """A user without a home, as most are that only have a number, gets one: pip and others write there."""
    given = dict(os.environ)
    if not os.access(given.get("HOME") or "/nowhere", os.W_OK) or given["HOME"] == "/":
        given["HOME"] = os.path.join(DIRECTORY, "home")
    given["PATH"] = given.get("PATH", os.defpath) + ":" + os.path.join(given["HOME"], ".local", "bin")
    return given


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def serve(descriptor, mask):
    if descriptor == channel.sink and mask != select.EPOLLIN and channel.waiting:
        channel.flush()
    if descriptor == channel.source and mask != select.EPOLLOUT:
        take_frames()
    elif descriptor == 0:
        # Only its end means something: that of the program which started this one.
        if not os.read(0, channels.READ):
            leave()
    elif listener is not None and descriptor == listener.fileno():
        accept()
    elif descriptor == channels.data.fileno():
        read_ready()
    elif descriptor in tunnels.listeners:
        tunnels.accept(descriptor)
    elif descriptor in tunnels.tunnels:
        tunnels.flush(descriptor)
    elif descriptor in feeds.writers:
        feeds.serve(descriptor, mask)
    elif blocks.warm is not None and blocks.warm.template and descriptor == blocks.warm.template.control.fileno():
        blocks.warm.hear()
    elif descriptor in blocks.readers:
        blocks.read_status(blocks.readers[descriptor])
    elif blocks.sessions is not None and descriptor in blocks.sessions.readers:
        blocks.sessions.readers[descriptor]()


def read_ready():
    for end, _ in channels.data.poll(0):
        if channel.waiting:
            return
        if end in blocks.readers:
            blocks.read_pipe(blocks.readers[end], end)
        elif end in tunnels.tunnels:
            tunnels.read(end)


def main():
    global listener, resetting
    keeper.find(KEEPER)
    blocks.commands = os.path.join(DIRECTORY, "bin")
    blocks.workspace, blocks.environment = WORKSPACE, block_environment()
    processes.adopt_orphans()
    processes.protect(0)
    os.write(1, b"FENCED1\n")
    channel.begin()
    listener = listen()
    channel.send(channels.HELLO, 0, os.fsencode(hello()))
    ending = False
    while True:
        killing = resetting or ending or any(block.killing for block in blocks.blocks.values())
        for descriptor, mask in events.poll(0.005 if killing else 5):
            serve(descriptor, mask)
        blocks.kill_on()
        ending = blocks.sessions is not None and blocks.sessions.keep_ending()
        if resetting and reset_step():
            resetting = False
            channel.send(channels.DONE, 0)
        reap()
        for each in () if resetting else (blocks.warm, blocks.spare):
            if each is not None:
                each.keep()


try:
    main()
except ConnectionError as error:
    sys.stderr.write(str(error))
    leave()
