/** Python that stops the supervisor of its pod, and goes on. */
export const stopsSupervisor = `
import os, signal, time
def parent(pid):
    return int(open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[1])
supervisor = os.getppid()
while parent(supervisor) not in (0, 1):
    supervisor = parent(supervisor)
os.kill(supervisor, signal.SIGSTOP)
time.sleep(600)
`;
