/** What the user's blocks need around them, and shell blocks. Part of the helper. */
export const blocksSource: string = String.raw`
# Blocks.


def push_env(env):
    outer_env.append({name: os.environ.get(name) for name in env})
    os.environ.update(env)


def pop_env():
    for name, value in (outer_env.pop() if outer_env else {}).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def offer(module, names):
    # Names of a module that was set up become variables too.
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if home is None or file is None or not file.startswith(home):
        return False
    get_ipython().user_ns.update({name: getattr(loaded, name) for name in names})
    return True


def load(module):
    importlib.invalidate_caches()
    importlib.import_module(module)


def shell(program, code, stdin):
    global shell_exit
    script = os.path.join(home, "block-%d.sh" % time.monotonic_ns())
    with open(script, "w", encoding="utf-8", newline="") as file:
        file.write(code)
    hidden = ("MPLBACKEND", "JPY_PARENT_PID", "PYDEVD_USE_FRAME_EVAL")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    given = subprocess.DEVNULL if stdin is None else subprocess.PIPE
    process = subprocess.Popen([program, script], stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
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
        os.unlink(script)
    shell_exit = process.returncode if process.returncode >= 0 else 128 - process.returncode


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
        # What a child writes after its block has ended goes nowhere, but must not block it.
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
    # A child may hold the output open: what is in the pipes by now is taken along.
    for reader in readers:
        reader.join(0.05)
    while not getattr(pieces, "closed", False) and pieces.full():
        time.sleep(0.01)
    pieces.put((None, ""))
`;
