import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Writable } from "node:stream";
import { ControlGroup, listProcesses } from "@fenced/executor-kit";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { hostCommand } from "./support/host-command.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

type Host = ChildProcessByStdio<Writable, null, null>;

/** Gives attacks the processes of the session: the supervisor, and all below it. */
const look = `
import os, signal, subprocess, sys, time
def table():
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            found[int(name)] = int(open("/proc/%s/stat" % name).read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    return found
def is_supervisor(pid):
    line = open("/proc/%d/cmdline" % pid, "rb").read()
    return b"_fenced_supervisor" in line and b"/sh\\0" not in line[:9]
def lineage():
    parents, pid, found = table(), os.getpid(), []
    while pid in parents:
        found.append(pid)
        pid = parents[pid]
    return found
supervisor = [pid for pid in lineage() if is_supervisor(pid)][-1]
def below(root):
    parents = table()
    found = {root}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more
`;
/** A process in its own session that has lost its parent, with the block's variables. */
const escape = `
read, write = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        os.write(write, b"%10d" % os.getpid())
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2): os.dup2(null, fd)
        time.sleep(1000)
    os._exit(0)
os.wait()
escaped = int(os.read(read, 10))
`;
/** Reports the session's processes, without the help of the supervisor. */
const tell = (file: string): string => `
with open(${JSON.stringify(file)} + ".new", "w") as told:
    told.write(" ".join(map(str, sorted(below(supervisor)))))
os.rename(told.name, ${JSON.stringify(file)})
`;
const stopOthers = `
others = below(supervisor) - {os.getpid()}
for pid in others: os.kill(pid, signal.SIGSTOP)
`;

/** What a block does before it reports the processes, and after that. */
const attacks: Readonly<Record<string, readonly [before: string, after: string]>> = {
  nothing: ["", ""],
  "a process that escaped": [escape, ""],
  "one that also has no variables": [
    escape.replace(
      "time.sleep(1000)",
      "os.execve(sys.executable, [sys.executable, '-c', 'import time; time.sleep(1000)'], {})",
    ),
    "",
  ],
  "all others stopped": ["", `${stopOthers}time.sleep(1000)\n`],
  "all others stopped, and the supervisor killed": [
    "",
    `${stopOthers}os.kill(supervisor, signal.SIGKILL)\ntime.sleep(1000)\n`,
  ],
};

async function alive(pids: readonly number[]): Promise<number[]> {
  const all = new Set((await listProcesses()).map(({ pid }) => pid));
  return pids.filter((pid) => all.has(pid));
}

interface Started {
  readonly host: Host;
  /** The processes of its session. */
  readonly pids: readonly number[];
  readonly temporary: string;
}

/** Starts a program that runs an attack, and waits until the attack has reported the processes. */
async function startHost(user: number, stateful: boolean, attack: readonly [string, string]): Promise<Started> {
  const [outer, temporary] = [await temporaryDirectory(), await temporaryDirectory()];
  const [request, told] = [path.join(outer, "request"), path.join(outer, "told")];
  for (const each of [outer, temporary]) await chown(each, user, user);
  const block = `${look}${attack[0]}${tell(told)}${attack[1]}`;
  // The interpreter waits after the first block.
  await writeFile(request, JSON.stringify({ user, stateful, temporary, home: outer, blocks: ["print(1)", block] }));
  await chmod(request, 0o644);
  const [program, ...words] = await hostCommand("supervised-host.ts");
  const host = spawn(program, [...words, request], { stdio: ["pipe", "ignore", "inherit"] });
  const text = async (): Promise<string> => readFile(told, "utf8").catch(() => "");
  await expect.poll(text, { timeout: 60_000 }).toMatch(/\d/);
  return { host, pids: (await text()).split(" ").map(Number), temporary };
}

const ends = {
  "stop()": (host: Host) => host.stdin.end(),
  "the death of this program": (host: Host) => host.kill("SIGKILL"),
};
const users = process.getuid?.() === 0 ? [0, 65_534] : [process.getuid?.() ?? 0];
const group = await ControlGroup.plan("fenced-probe");
const hasGroups = (await group?.make()) === true;
await group?.remove();
/** Then only a control group can hold a process that has no variables. */
const needsGroup = (how: string, what: string): boolean =>
  how !== "stop()" && what === "one that also has no variables";
/** All of them every night; otherwise, each kind of session and each user once. */
const sessions = [false, true]
  .flatMap((stateful) => users.map((user) => ({ stateful, user })))
  .filter(
    ({ stateful, user }) => process.env.FENCED_SUITE === "full" || users.length === 1 || stateful === (user === 0),
  );
const cases = sessions.flatMap((session) =>
  Object.entries(ends).flatMap(([how, end]) =>
    Object.entries(attacks)
      .filter(([what]) => !needsGroup(how, what) || (hasGroups && session.user === 0))
      .map(([what, attack]) => ({ ...session, how, end, what, attack })),
  ),
);

describe.skipIf(process.platform !== "linux")("a session with a supervisor on this host", needs("python3"), () => {
  it.each(cases)(
    "leaves nothing behind after $how when a block leaves $what (user $user, stateful: $stateful)",
    async ({ stateful, user, end, attack }) => {
      const { host, pids, temporary } = await startHost(user, stateful, attack);
      expect(pids.length).toBeGreaterThan(1);
      end(host);
      await once(host, "exit");
      await expect.poll(() => alive(pids), { timeout: 60_000 }).toEqual([]);
      await expect.poll(() => readdir(temporary), { timeout: 60_000 }).toEqual([]);
    },
  );
});
