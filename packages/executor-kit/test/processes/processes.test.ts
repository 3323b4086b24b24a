import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { access, lstat, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ControlGroup, hasVariable, killProcesses, Leash, listProcesses } from "@fenced/executor-kit";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { freeze } from "../../src/processes/kill-processes.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const newMark = () => ({ name: "FENCED_TEST", value: randomUUID() });

async function living(mark: { name: string; value: string }): Promise<number[]> {
  return (await listProcesses()).map(({ pid }) => pid).filter((pid) => hasVariable(pid, mark.name, mark.value));
}

/** Starts a shell script as the leader of a marked group and waits until it has written a line. */
async function start(script: string, mark: { name: string; value: string }): Promise<number> {
  const child = spawn("sh", ["-c", script], {
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
    env: { PATH: process.env["PATH"], [mark.name]: mark.value },
  });
  onTestFinished(async () => killProcesses({ mark }));
  await once(child.stdout, "data");
  child.stdout.destroy();
  return child.pid ?? 0;
}

/** The leashes of a mark, which is in their command lines. */
async function leashesOf({ value }: { value: string }): Promise<number[]> {
  const found: number[] = [];
  for (const { pid } of await listProcesses()) {
    const words = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (words.includes("fenced-leash") && words.includes(value)) found.push(pid);
  }
  return found;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20);
}

const missing = async (file: string): Promise<boolean> =>
  access(file).then(
    () => false,
    () => true,
  );

/** Spends nearly all its time in the kernel, starting processes that do not count as its children. */
const slowForks = `
import ctypes, os, time
clone = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
vfork_of_parent = 0x4000 | 0x8000 | 17
libc = ctypes.PyDLL(None)
while True:
    if libc.syscall(clone, vfork_of_parent, 0, 0, 0, 0) == 0:
        os.setsid()
        print("ready", flush=True)
        time.sleep(0.2)
        os._exit(0)
`;

/** Starts a process for each line that it reads. */
const forksWhenTold = `
import os, sys, time
print("ready", flush=True)
for _ in sys.stdin:
    if os.fork() == 0:
        os.setsid()
        time.sleep(1000)
`;

/** Looks like a zombie, because its first thread ends while another one keeps running. */
const withoutFirstThread = `
import ctypes, os, threading, time
def run():
    while open("/proc/self/stat").read().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    print("ready", flush=True)
    time.sleep(1000)
threading.Thread(target=run).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
`;

describe.skipIf(process.platform !== "linux")("killProcesses", needs("python3"), () => {
  it("ends children, processes in other sessions, and orphans", async () => {
    const mark = newMark();
    const root = await start("sleep 1000 & setsid sleep 1000 & (setsid sleep 1000 &) ; echo ready; wait", mark);
    await until(async () => (await living(mark)).length === 4);
    await killProcesses({ root, mark });
    expect(await living(mark)).toEqual([]);
  });

  it("ends a descendant that dropped the mark", async () => {
    const mark = newMark();
    const other = newMark();
    const root = await start(`env -i ${other.name}=${other.value} setsid sleep 1000 & echo ready; wait`, mark);
    await until(async () => (await living(other)).length === 1);
    await killProcesses({ root, mark });
    expect(await living(other)).toEqual([]);
  });

  it("ends orphans that dropped the mark but stayed in the session, even after its leader has ended", async () => {
    const mark = newMark();
    const other = newMark();
    const root = await start(`env -i ${other.name}=${other.value} sleep 1000 > /dev/null & echo ready`, mark);
    await until(async () => (await living(mark)).length === 0 && (await living(other)).length === 1);
    await killProcesses({ mark, endedRoots: [root] });
    expect(await living(other)).toEqual([]);
  });

  it("does not end a living leader that has the process id of an ended root", async () => {
    const other = newMark();
    const stranger = await start("echo ready; sleep 1000", other);
    await killProcesses({ mark: newMark(), endedRoots: [stranger] });
    expect((await living(other)).length).toBeGreaterThan(0);
  });

  it("ends processes that ignore all signals or keep starting others", async () => {
    const mark = newMark();
    const root = await start("trap '' TERM INT HUP; (while :; do sleep 0.01 & done) & echo ready; wait", mark);
    await killProcesses({ root, mark });
    expect(await living(mark)).toEqual([]);
  });

  it("stops a process that was started while the process table was read", async () => {
    const mark = newMark();
    const fifo = path.join(await temporaryDirectory(), "lines");
    execFileSync("mkfifo", [fifo]);
    const root = await start(`exec python3 -c '${forksWhenTold}' <> ${fifo}`, mark);
    let reads = 0;
    const list: typeof listProcesses = async () => {
      const names = await listProcesses();
      reads += 1;
      if (reads > 1) return names;
      // What happens between reading the names and reading the states, if that takes long.
      process.kill(root, "SIGCONT");
      await writeFile(fifo, "\n");
      await until(async () => (await living(mark)).length === 2);
      process.kill(root, "SIGSTOP");
      await until(async () => (await listProcesses()).some(({ pid, stopped }) => pid === root && stopped));
      return (await listProcesses()).filter(({ pid }) => names.some((each) => each.pid === pid));
    };
    const frozen = await freeze({ root, mark: newMark() }, list);
    expect([...frozen].toSorted((one, other) => one - other)).toEqual(await living(mark));
    expect(frozen.size).toBe(2);
  });

  it("waits until each process is stopped, even in the middle of a fork", async () => {
    const mark = newMark();
    const root = await start(`exec python3 -c '${slowForks}'`, mark);
    const frozen = await freeze({ root, mark: newMark() });
    expect([...frozen]).toEqual([root]);
    expect((await listProcesses()).find(({ pid }) => pid === root)).toMatchObject({ stopped: true });
  });

  it("does not wait forever for a process that cannot stop", async () => {
    const mark = newMark();
    // A process waits in the kernel after vfork until its child, stopped here, starts a program or ends.
    const vfork = `
import ctypes, time
libc = ctypes.PyDLL(None)
print("ready", flush=True)
if libc.vfork() == 0:
    time.sleep(1000)
`;
    const root = await start(`exec python3 -c '${vfork}'`, mark);
    await until(async () => (await living(mark)).length === 2);
    await killProcesses({ root, mark });
    expect(await living(mark)).toEqual([]);
  });

  it("ends an orphan in its own session whose first thread has ended", async () => {
    const mark = newMark();
    const root = await start(`setsid python3 -c '${withoutFirstThread}' & exit`, mark);
    await until(async () => !(await listProcesses()).some(({ pid }) => pid === root));
    expect(await living(mark)).toHaveLength(1);
    await killProcesses({ mark });
    expect(await living(mark)).toEqual([]);
  });

  it("does not end other processes", async () => {
    const mark = newMark();
    await start("echo ready; sleep 1000", mark);
    await killProcesses({ mark: newMark() });
    expect((await living(mark)).length).toBeGreaterThan(0);
  });
});

describe.skipIf(process.platform !== "linux")("Leash", () => {
  it("ends the processes and removes the files of a killed program", async () => {
    const mark = newMark();
    const directory = await temporaryDirectory();
    const owned = path.join(directory, "owned");
    const foreign = path.join(directory, "foreign");
    for (const [place, owner] of [
      [owned, mark.value],
      [foreign, "somebody else"],
    ] as const) {
      await mkdir(place);
      await writeFile(path.join(place, ".fenced-functions"), owner);
    }
    // A named pipe in place of the marker once blocked everything.
    const piped = path.join(directory, "piped");
    await mkdir(piped);
    execFileSync("mkfifo", [path.join(piped, ".fenced-functions")]);
    await mkdir(path.join(directory, "session"));
    await writeFile(path.join(directory, ".own-1"), "");
    await writeFile(path.join(directory, "user"), "");
    await start("echo ready; sleep 1000", mark);
    const options = (removeOwned: string) => ({
      mark,
      remove: [path.join(directory, "session")],
      removePrefixes: [path.join(directory, ".own-")],
      removeOwned,
    });
    const program = `
      import { Leash } from ${JSON.stringify(new URL("../../src/processes/leash.ts", import.meta.url).href)};
      new Leash(${JSON.stringify(options(owned))});
      new Leash(${JSON.stringify(options(foreign))});
      new Leash(${JSON.stringify(options(piped))});
      console.log("held");
      setInterval(() => {}, 1000);
    `;
    const host = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(host.stdout, "data");
    host.kill("SIGKILL");
    await until(async () => (await living(mark)).length === 0);
    await until(async () => missing(path.join(directory, "session")));
    await until(async () => missing(path.join(directory, ".own-1")));
    await until(async () => missing(owned));
    expect(await missing(foreign)).toBe(false);
    expect(await missing(path.join(directory, "user"))).toBe(false);
    await until(async () => (await leashesOf(mark)).length === 0);
  });

  it("removes several control groups, which need not exist", async ({ skip }) => {
    const mark = newMark();
    const planned = await ControlGroup.plan(`fenced-test-${mark.value}`);
    if (planned === undefined || !(await planned.make())) {
      skip("no control group can be made here");
      return;
    }
    const other = ControlGroup.at(`${planned.directory}-[o]ther`);
    await other.makeAny();
    await mkdir(path.join(other.directory, "inner"));
    const options = { mark, remove: [], controlGroups: [planned, ControlGroup.at("/no/such/group"), other] };
    const program = `
      import { Leash } from ${JSON.stringify(new URL("../../src/processes/leash.ts", import.meta.url).href)};
      new Leash(${JSON.stringify(options)});
      console.log("held");
      setInterval(() => {}, 1000);
    `;
    const host = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(host.stdout, "data");
    host.kill("SIGKILL");
    await until(async () => missing(planned.directory));
    await until(async () => (await leashesOf(mark)).length === 0);
    expect(await missing(other.directory)).toBe(true);
  });

  it("makes a named pipe whenever nothing is in its place", async () => {
    const directory = await temporaryDirectory();
    const pipe = path.join(directory, "a 'pipe'");
    const leash = new Leash({ mark: newMark(), remove: [], pipe });
    expect(await leash.makePipe()).toBe(true);
    expect((await lstat(pipe)).isFIFO()).toBe(true);
    expect(await leash.makePipe()).toBe(false);
    await rm(pipe);
    expect(await leash.makePipe()).toBe(true);
    await leash.release();
    expect(await leash.makePipe()).toBe(false);
    const without = new Leash({ mark: newMark(), remove: [] });
    expect(await without.makePipe()).toBe(false);
    await without.release();
  });

  it("ends without doing anything when it is released", async () => {
    const mark = newMark();
    const directory = await temporaryDirectory();
    await start("echo ready; sleep 1000", mark);
    const leash = new Leash({ mark, remove: [directory] });
    expect(await leashesOf(mark)).toHaveLength(1);
    await Promise.all([leash.release(), leash.release()]);
    await leash.release();
    expect(await leashesOf(mark)).toEqual([]);
    expect(await missing(directory)).toBe(false);
    expect((await living(mark)).length).toBeGreaterThan(0);
  });
});
