/** Python: starts a block under its shepherd, hands on its output, tells its end. */
export const supervisorBlocks: string = String.raw`
def start(number, mark, credit, argv, environ):
    given = inputs.pop(number, None)
    if given is not None:
        os.lseek(given, 0, os.SEEK_SET)
    stdin = given if given is not None else os.open("/dev/null", os.O_RDONLY)
    out, err, status = os.pipe(), os.pipe(), os.pipe()
    widen(out[1], READ)
    try:
        shepherd = os.fork()
    except OSError as error:
        for end in (stdin,) + out + err + status:
            os.close(end)
        report(number, None, None, False, no_process(error.errno))
        return
    if shepherd == 0:
        try:
            herd((argv, environ), stdin, out[1], err[1], status[1])
        finally:
            os._exit(1)
    for end in (stdin, out[1], err[1], status[1]):
        os.close(end)
    block = Block(number, mark, credit, shepherd, status[0], {out[0]: STDOUT, err[0]: STDERR})
    blocks[number] = block
    for end in block.pipes:
        os.set_blocking(end, False)
        readers[end] = block
        data.register(end, select.EPOLLIN)
    readers[block.status] = block
    events.register(block.status, select.EPOLLIN)


def herd(request, stdin, out, err, status):
    keep = sorted((stdin, out, err, status))
    for lower, upper in zip([-1] + keep, keep + [keep[-1] + 256]):
        os.closerange(lower + 1, upper)
    adopt_orphans()
    try:
        program = os.fork()
    except OSError as error:
        os.write(status, struct.pack(">I", FAILED | error.errno))
        return
    if program == 0:
        try:
            become(request, stdin, out, err)
        finally:
            os._exit(127)
    for end in (stdin, out, err):
        os.close(end)
    while True:
        try:
            pid, ended = os.waitpid(-1, 0)
        except ChildProcessError:
            os._exit(0)
        if pid == program:
            code = 128 + os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended)
            os.write(status, struct.pack(">I", code))


def become(request, stdin, out, err):
    os.setsid()
    for target, source in enumerate((stdin, out, err)):
        os.dup2(source, target)
    for each in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(each, signal.SIG_DFL)
    protect(1)
    try:
        # The kernel, short of memory, ends blocks and not their supervisor.
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass
    argv, environ = request
    try:
        os.chdir("/workspace")
        os.execvpe(argv[0], argv, dict(environment, **environ))
    except OSError as error:
        os.write(2, (argv[0] + " could not be started: " + os.strerror(error.errno) + "\n").encode())
        os._exit(127 if error.errno == errno.ENOENT else 126)


def read_pipe(block, end):
    try:
        chunk = os.read(end, READ)
    except BlockingIOError:
        return 0
    if not chunk:
        forget(block, end)
        return 0
    if not block.ended:
        channel.send(block.pipes[end], block.number, chunk)
        block.credit -= len(chunk)
        if block.credit <= 0 and not block.paused:
            block.paused = True
            for each in block.pipes:
                data.unregister(each)
    return len(chunk)


def forget(block, end):
    del block.pipes[end], readers[end]
    if not block.paused:
        data.unregister(end)
    os.close(end)


def resume(block):
    if block.paused:
        block.paused = False
        for end in block.pipes:
            data.register(end, select.EPOLLIN)


def end_block(block):
    for end in list(block.pipes):
        left = CAPACITY
        while left > 0:
            count = read_pipe(block, end)
            if count == 0:
                break
            left -= count
    block.ended = True
    # What the block left running may go on writing: it is read and dropped, or it would be stopped by a full pipe.
    resume(block)
    now = oom_kills()
    memory = None if now is None or block.oom is None else now > block.oom
    report(block.number, block.code, memory, block.killing, block.problem)


def read_status(block):
    word = os.read(block.status, 4)
    if word:
        word = struct.unpack(">I", word)[0]
        if word & FAILED:
            block.problem = no_process(word ^ FAILED)
        else:
            block.code = word
        if not block.killing:
            end_block(block)
        return
    events.unregister(block.status)
    del readers[block.status], blocks[block.number]
    os.close(block.status)
    try:
        os.waitpid(block.shepherd, 0)
    except ChildProcessError:
        pass
    if not block.ended:
        if block.code is None and not block.killing:
            kill_orphans(block)
        end_block(block)
    for end in list(block.pipes):
        forget(block, end)


def kill_orphans(block):
    """Something killed the shepherd: what is left of the block tells itself by its mark alone."""
    for _ in range(100):
        alive = members(block)
        if not alive:
            return
        send_signal(alive, signal.SIGSTOP)
        send_signal(alive, signal.SIGKILL)
        time.sleep(0.002)
`;
