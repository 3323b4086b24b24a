"""Starts and ends blocks for a host that sends frames over one stream. Python 3.8 or later, standard library only.

Arguments, where all but the first two and the last may be empty: the session's directory, which it creates; the directory in
which blocks run; a probe file in it; the PATH to search for programs; `alone` if nothing else is meant to run here, or `host` if
this is the host itself; the abstract socket of a keeper, or a descriptor; the version and the real path of a Node; a number of mounts,
and these; the programs to look for. It imports little, and only the C cores of `signal` and `collections`, because every module that Python loads delays the start.
"""

import os
import select
import struct
import sys

import _fenced_block_files as block_files
import _fenced_block_output as output
import _fenced_blocks as blocks
import _fenced_channel as channels
import _fenced_wire as wire
import _fenced_feeds as feeds
import _fenced_greeting as greeting
import _fenced_keeper as keeper
import _fenced_mounts as mounts
import _fenced_new_host as new_host
import _fenced_processes as processes
import _fenced_programs as programs
import _fenced_relay as relay
import _fenced_shortcut as shortcut
import _fenced_tunnels as tunnels
import _fenced_used_resources as used_resources
import _fenced_user_site as user_site
from _fenced_channel import channel, events

DIRECTORY, WORKSPACE, PROBE, PATH, KIND, KEEPER, NODE, COUNT = sys.argv[1:9]
ALONE = KIND == "alone"
MOUNTS, PROGRAMS = sys.argv[9 : 9 + int(COUNT)], sys.argv[9 + int(COUNT) :]

# As in `function-modules.ts`.
MARKER = ".fenced-functions"

resetting = False
tunnel_orders = {
    wire.TUNNEL_CONNECT: tunnels.connect,
    wire.TUNNEL_WRITE: tunnels.write,
    wire.TUNNEL_CREDIT: tunnels.give_credit,
    wire.TUNNEL_END: tunnels.end,
    wire.TUNNEL_DROP: tunnels.drop,
}


def obey(kind, number, payload):
    global resetting
    if kind == wire.RUN:
        # No argument and no variable can contain a NUL character.
        mark, credit, how, label, count, *words = payload.split(b"\0")
        argv, variables = words[: int(count)], words[int(count) :]
        environ = dict(os.fsdecode(each).split("=", 1) for each in variables)
        wishes = how.split()
        if b"feed" in wishes:
            blocks.inputs[number] = feeds.begin(number)
        special = ()
        if label:
            size = [int(each) for each in wishes[1:3]] if b"terminal" in wishes else None
            special = programs.Program(label), size
        blocks.start(number, mark, int(credit), [os.fsdecode(each) for each in argv], environ, *special)
    elif kind == wire.INPUT:
        if number not in blocks.inputs:
            blocks.inputs[number] = blocks.scratch()
        view = memoryview(payload)
        while len(view):
            view = view[os.write(blocks.inputs[number], view) :]
    elif kind == wire.FEED:
        feeds.write(number, payload)
    elif kind == wire.FILE:
        block_files.write(number, WORKSPACE, payload)
    elif kind == wire.PING:
        channel.send(wire.PONG, 0)
    elif kind == wire.RESET:
        resetting = True
        if blocks.runs is not None:
            blocks.runs.stop()
        end_waiting()
    elif kind == wire.WARM:
        keep_warm(number, *payload.split(b"\0", 1))
    elif kind == wire.SESSION:
        if blocks.sessions is None:
            # The first frame contains the program itself.
            blocks.sessions = load("sessions", payload)
        else:
            blocks.sessions.obey(number, payload)
    elif kind == wire.RUNS:
        if blocks.runs is None:
            # So does it here.
            blocks.runs = load("runs", payload)
        else:
            blocks.runs.obey(number, payload)
    elif kind == wire.CONTROL:
        programs.order(number, payload)
    elif kind == wire.PROGRAMS:
        programs.tell()
    elif kind == wire.HEAR:
        programs.hear(number, struct.unpack(">I", payload)[0])
    elif kind == wire.MEASURE:
        most, source = payload.split(b"\0", 1)
        if blocks.measure is None:
            blocks.measure = load("measure", source)
        blocks.measure.ask(number, int(most))
    elif kind == wire.USAGE:
        if blocks.usage is None:
            blocks.usage = load("usage", payload)
        channel.send(wire.USED, number, blocks.usage.read(ALONE))
    elif kind == wire.LISTEN:
        network = number == tunnels.NETWORK
        place = os.path.join(DIRECTORY, "calls")
        answer = relay.listen(DIRECTORY, payload) if network else tunnels.listen_for_calls(place)
        channel.send(wire.LISTENING, number, os.fsencode(answer))
    elif kind in tunnel_orders:
        tunnel_orders[kind](number, payload)
    elif kind == wire.KILL and blocks.sessions is not None and blocks.sessions.forget(number):
        pass
    elif number in blocks.blocks:
        if kind == wire.KILL:
            blocks.kill(blocks.blocks[number])
        elif kind == wire.CREDIT:
            output.give_credit(blocks.blocks[number], struct.unpack(">I", payload)[0])


def keep_warm(number, source, settings):
    """Loads the program that comes with the request, so that it is sent only when needed. 0: for Python, 1: for JavaScript."""
    name = ("warm", "spare")[number]
    if getattr(blocks, name) is None:
        setattr(blocks, name, load(name, source))
    getattr(blocks, name).configure(settings)


def load(name, program):
    exec(program, {})
    return sys.modules["_fenced_" + name]


def end_waiting():
    for each in (blocks.warm, blocks.spare):
        if each is not None:
            each.end()


def own_limits():
    """What every block inherits from this program: its limits, and how it is scheduled."""
    found = []
    for name in ("limits", "oom_score_adj"):
        try:
            with open("/proc/self/" + name, "rb") as file:
                found.append(file.read())
        except OSError:
            pass
    return found, os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.sched_getaffinity(0)


def take_frames():
    frames = channel.receive()
    if frames is None:
        leave()
    # A ping may wait behind a lot of input.
    keeper.beat()
    if channel.synced:
        shortcut.close()
    for kind, number, payload in frames:
        obey(kind, number, payload)


def clear_workspace():
    """Removes the host's files after the host has died. If it ran in a container, everything that would clean up may have died
    with it."""
    # .fenced-SESSION-REST
    own = os.path.basename(PROBE).split("-")[:2]
    for name in os.listdir(WORKSPACE) if PROBE else ():
        if name.split("-")[:2] == own:
            try:
                os.unlink(os.path.join(WORKSPACE, name))
            except OSError:
                pass
    if PROBE and keeper.is_server:
        clear_functions(own[-1])


def clear_functions(session):
    """Removes the functions that a session has put into the work directory, when no host is left that would."""
    import shutil

    modules = os.path.join(WORKSPACE, "node_modules")
    try:
        for name in os.listdir(modules):
            place = os.path.join(modules, name)
            try:
                marker = os.open(os.path.join(place, MARKER), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError:
                continue
            if os.read(marker, 8) == os.fsencode(session):
                shutil.rmtree(place, ignore_errors=True)
            os.close(marker)
        os.rmdir(modules)
    except OSError:
        pass


def leave():
    shortcut.close()
    if ALONE:
        clear_workspace()
    else:
        import shutil

        os.set_blocking(1, True)
        blocks.end_all()
        end_waiting()
        user_site.remove()
        if mounts.detach(DIRECTORY):
            shutil.rmtree(DIRECTORY, ignore_errors=True)
    os._exit(0)


def reset_step():
    """Takes the next step towards emptying the place; returns whether it is empty."""
    for block in blocks.blocks.values():
        block.killing = True
    if blocks.blocks or blocks.sessions is not None and not blocks.sessions.ends.end_all():
        return False
    left = everything_else() if ALONE else processes.below([processes.SELF])
    processes.stop(left)
    processes.kill(left)
    return not left


def everything_else():
    """All processes here but the first one and this one. Next to a session's server, those that were started from outside belong to it:
    they have no parent here."""
    table = processes.processes()
    return {pid for pid, parent in table.items() if pid not in (1, processes.SELF) and (parent or not keeper.is_server)}


def reap():
    try:
        pid, ended = os.waitpid(-1, os.WNOHANG)
        while pid:
            if ended:
                blocks.forget_used(pid)
            pid, ended = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        pass


def serve(descriptor, mask):
    if descriptor == channel.sink and mask != select.EPOLLIN and channel.waiting:
        channel.flush()
    if descriptor == channel.source and mask != select.EPOLLOUT:
        take_frames()
    elif descriptor == keeper.descriptor():
        hear_server()
    elif descriptor == 0 and not keeper.is_server:
        # Only the end of input matters: it means that the program that started this one has ended.
        if not os.read(0, channels.READ):
            leave()
    elif shortcut.listener is not None and descriptor == shortcut.listener.fileno():
        shortcut.accept()
    elif descriptor == channels.data.fileno():
        read_ready()
    elif descriptor == channels.apart.fileno():
        read_apart()
    elif descriptor in tunnels.listeners:
        tunnels.accept(descriptor)
    elif descriptor in tunnels.tunnels:
        tunnels.flush(descriptor)
    elif descriptor in feeds.writers:
        feeds.serve(descriptor, mask)
    elif blocks.warm is not None and blocks.warm.template and descriptor == blocks.warm.template.control.fileno():
        blocks.warm.hear()
    elif descriptor in output.readers:
        blocks.read_status(output.readers[descriptor])
    elif blocks.runs is not None and blocks.runs.serve(descriptor, mask):
        pass
    elif blocks.sessions is not None:
        blocks.sessions.hear(descriptor)


def hear_server():
    """Another host may have connected, or the session is over."""
    try:
        stream = keeper.next_host()
    except EOFError:
        leave()
    if stream is not None:
        new_host.begin(stream)
    elif keeper.is_cut:
        tunnels.rest(tunnels.NETWORK)
    else:
        tunnels.attend(tunnels.NETWORK)


def read_ready():
    for end, _ in channels.data.poll(0):
        if channel.waiting:
            return
        if end in output.readers:
            output.read_pipe(output.readers[end], end)
        elif end in tunnels.tunnels:
            tunnels.read(end)


def read_apart():
    for end, _ in channels.apart.poll(0):
        if end in output.readers:
            output.read_pipe(output.readers[end], end)


def greet(lines):
    channel.greet(wire.HELLO, os.fsencode("\n".join(lines + new_host.lines())))


def main():
    global resetting
    keeper.find(KEEPER)
    blocks.programs = programs
    blocks.commands = os.path.join(DIRECTORY, "bin")
    blocks.workspace = WORKSPACE
    blocks.lasting_home = not ALONE
    blocks.environment = (
        greeting.own_variables() if KIND == "host" else greeting.block_environment(DIRECTORY, WORKSPACE, ALONE)
    )
    used_resources.prepare(processes.getrusage, processes.minus_one)
    processes.adopt_orphans()
    processes.hidden = KIND != "host"
    if processes.hidden:
        processes.protect(0)
    channel.begin()
    lines = greeting.greeting(DIRECTORY, PROBE, PATH, PROGRAMS, NODE) + greeting.identities(MOUNTS)
    for name in PROGRAMS:
        blocks.prepare_python(name, blocks.environment)
    if PROBE and shortcut.listen(PROBE + ".sock"):
        lines.append("socket " + os.path.basename(PROBE) + ".sock")
    greet(lines)
    if keeper.is_server:
        events.register(keeper.descriptor(), select.EPOLLIN)
    ending = False
    limits = own_limits()
    while True:
        changing = new_host.began is not None
        killing = changing or resetting or ending or any(block.killing for block in blocks.blocks.values())
        measuring = blocks.measure is not None and blocks.measure.step()
        due = 5 if blocks.runs is None else blocks.runs.step()
        # A run may have asked for a measurement just now.
        measuring = measuring or blocks.measure is not None and bool(blocks.measure.waiting)
        for descriptor, mask in events.poll(0 if measuring else min(due, 0.005) if killing else due):
            serve(descriptor, mask)
        if keeper.is_stopped():
            # Its end is what cleans up after the session. No signal from inside kills the first process of a container.
            processes.kill([os.getppid()])
            leave()
        blocks.kill_on()
        ending = blocks.sessions is not None and blocks.sessions.ends.keep_ending()
        if resetting and reset_step():
            if own_limits() != limits:
                # A block has changed them, and may not let them be changed back, so the host needs another place.
                leave()
            resetting = False
            channel.send(wire.DONE, 0)
        if new_host.began is not None and new_host.step(resetting):
            greet(lines)
        reap()
        for each in () if resetting else (blocks.warm, blocks.spare):
            if each is not None:
                each.keep()


try:
    main()
except ConnectionError as error:
    sys.stderr.write(str(error))
    leave()
