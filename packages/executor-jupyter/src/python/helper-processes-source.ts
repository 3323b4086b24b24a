/** Finding and ending what the kernel has started. Part of the helper. */
export const processesSource: string = String.raw`
# Processes.


def now():
    if hasattr(time, "CLOCK_BOOTTIME") and os.path.isdir("/proc/self"):
        return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
    return time.time()


def processes():
    if not os.path.isdir("/proc/self"):
        import psutil

        return {each.pid: (each.ppid(), each.create_time()) for each in psutil.Process().children(recursive=True)}
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name, "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] not in (b"Z", b"X"):
            table[int(name)] = (int(fields[1]), int(fields[19]))
    return table


def descendants(since):
    # Those that began later, except children of processes that did not.
    table = processes()
    children = {}
    for pid, (parent, _) in table.items():
        children.setdefault(parent, []).append(pid)
    found, look = [], list(children.get(os.getpid(), []))
    while look:
        pid = look.pop()
        if table[pid][1] >= since:
            found.append(pid)
            look.extend(children.get(pid, []))
    return found


def kill(everything=False):
    since = began if everything else started
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        found = descendants(since)
        if not found:
            return True
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.005)
    return False


def interrupt():
    # To this process alone: the server would interrupt the whole group, and with it what earlier blocks left running.
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    else:
        os.kill(os.getpid(), signal.SIGINT)
`;
