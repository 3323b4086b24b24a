/** Python: frames from the host, the greeting, and the loop that waits for all of it. */
export const supervisorLoop: string = String.raw`
def receive(kind, number, payload):
    global resetting
    if kind == RUN:
        # No argument and no variable can contain a NUL character.
        mark, credit, count, *words = payload.split(b"\0")
        argv, variables = words[:int(count)], words[int(count):]
        environ = dict(os.fsdecode(each).split("=", 1) for each in variables)
        start(number, mark, int(credit), [os.fsdecode(each) for each in argv], environ)
    elif kind == INPUT:
        if number not in inputs:
            inputs[number] = os.memfd_create("stdin") if hasattr(os, "memfd_create") else scratch()
        view = memoryview(payload)
        while len(view):
            view = view[os.write(inputs[number], view):]
    elif kind == RESET:
        resetting = True
    elif number in blocks:
        if kind == KILL:
            kill(blocks[number])
        elif kind == CREDIT:
            block = blocks[number]
            block.credit += struct.unpack(">I", payload)[0]
            if block.credit > 0:
                resume(block)


def listen():
    """A socket beside the probe file: a way around the daemon for a host that sees the same directory."""
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


def scratch():
    import tempfile
    return os.dup(tempfile.TemporaryFile(dir=DIRECTORY).fileno())


def take_frames():
    global incoming, synced
    chunk = os.read(channel.source, READ)
    if not chunk:
        leave()
    incoming += chunk
    if not synced:
        # Podman hands the body of the request that attaches to the container to its main process.
        start = incoming.find(MAGIC)
        if start < 0:
            return
        del incoming[:start + len(MAGIC)]
        synced = True
        deafen()
    while len(incoming) >= 4:
        length = struct.unpack_from(">I", incoming)[0]
        if len(incoming) < length + 4:
            return
        kind, number = struct.unpack_from(">BI", incoming, 4)
        payload = bytes(incoming[9:length + 4])
        del incoming[:length + 4]
        receive(kind, number, payload)


def clear_workspace():
    """What the host would have removed: it died, and all that watches over it may have died with it, in its container."""
    # .fenced-SESSION-REST
    own = os.path.basename(PROBE).split("-")[:2]
    for name in os.listdir("/workspace") if PROBE else ():
        if name.split("-")[:2] == own:
            try:
                os.unlink("/workspace/" + name)
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
        for _ in range(1000):
            for block in list(blocks.values()):
                block.killing = block.ended = True
                kill_step(block)
                if select.select([block.status], [], [], 0.005)[0]:
                    read_status(block)
            if not blocks:
                break
        shutil.rmtree(DIRECTORY, ignore_errors=True)
    os._exit(0)


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


def hello():
    path = PATH or os.environ.get("PATH", os.defpath)
    places = [(name, which(name, path)) for name in PROGRAMS]
    asked = ask_version(dict(places)["node"]) if dict(places).get("node") else None
    lines = ["uid %d" % os.getuid(), "gid %d" % os.getgid(), "probe " + probe()]
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


incoming = bytearray()
environment = block_environment()
inputs, blocks, readers = {}, {}, {}
resetting = synced = False
events, data = select.epoll(), select.epoll()
channel = Channel()
adopt_orphans()
protect(0)
os.write(1, b"FENCED1\n")
os.set_blocking(1, False)
widen(1, CAPACITY)
listener = listen()
if listener is not None:
    events.register(listener.fileno(), select.EPOLLIN)
events.register(0, select.EPOLLIN)
events.register(data.fileno(), select.EPOLLIN)
channel.send(HELLO, 0, os.fsencode(hello()))
try:
    while True:
        killing = resetting or any(block.killing for block in blocks.values())
        for descriptor, mask in events.poll(0.005 if killing else 5):
            if descriptor == channel.sink and mask != select.EPOLLIN and channel.waiting:
                channel.flush()
            if descriptor == channel.source and mask != select.EPOLLOUT:
                take_frames()
            elif descriptor == 0:
                # Only its end means something: that of the program which started the container.
                if not os.read(0, READ):
                    leave()
            elif listener is not None and descriptor == listener.fileno():
                accept()
            elif descriptor == data.fileno():
                for end, _ in data.poll(0):
                    if end in readers and not channel.waiting:
                        read_pipe(readers[end], end)
            elif descriptor in readers:
                read_status(readers[descriptor])
        for block in list(blocks.values()):
            if block.killing:
                kill_step(block)
        if resetting and reset_step():
            resetting = False
            channel.send(DONE, 0)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
except ConnectionError:
    leave()
`;
