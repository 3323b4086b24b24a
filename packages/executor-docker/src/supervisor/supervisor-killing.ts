/** Python: finds all processes of a block, and ends them. */
export const supervisorKilling: string = String.raw`
def processes():
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/" + name + "/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[0] not in (b"Z", b"X"):
                found[int(name)] = int(fields[1])
    return found


def has_mark(pid, mark):
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False


def members(block):
    table = processes()
    children = {}
    for pid, parent in table.items():
        children.setdefault(parent, []).append(pid)
    mark = block.mark
    queue = list(children.get(block.shepherd, ()))
    queue += [pid for pid in table if pid not in (1, SELF, block.shepherd) and has_mark(pid, mark)]
    found = set()
    while queue:
        pid = queue.pop()
        if pid not in found and pid != SELF:
            found.add(pid)
            queue += children.get(pid, ())
    return found


def send_signal(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def kill_step(block):
    alive = members(block)
    fresh = alive - block.stopped
    if fresh:
        send_signal(fresh, signal.SIGSTOP)
        block.stopped |= fresh
        return
    block.stopped = set()
    send_signal(alive, signal.SIGKILL)
    block.empty = 0 if alive else block.empty + 1
    if block.empty > 2:
        send_signal([block.shepherd], signal.SIGKILL)


def kill(block):
    if not block.killing:
        block.killing = True
        kill_step(block)
        kill_step(block)


def strangers():
    return set(processes()) - {1, SELF} if ALONE else set()


def reset_step():
    for block in blocks.values():
        block.killing = True
    if blocks:
        return False
    left = strangers()
    send_signal(left, signal.SIGSTOP)
    send_signal(left, signal.SIGKILL)
    return not left
`;
