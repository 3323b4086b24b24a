import { execFile } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { promisify } from "node:util";
import { errorCode } from "../workspace/workspace-errors.ts";

/** A process of this host. */
export interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
  /** The id of its process group. */
  readonly group: number;
  /** The id of its session; on systems other than Linux, of its group. */
  readonly session: number;
  /** True if it is stopped, for example by SIGSTOP, and does nothing until it is continued. */
  readonly stopped: boolean;
  /** When it was started, in ticks of the system's clock since its boot; 0 on systems other than Linux. */
  readonly started: number;
}

/** For what `/proc/PID/stat` contains, which is some 400 bytes. */
const statBuffer = Buffer.alloc(4096);

/** All living processes of this host, without zombies. Reads `/proc` on Linux, and asks `ps` on other Unix systems. */
export async function listProcesses(): Promise<ProcessInfo[]> {
  return process.platform === "linux" ? listProc() : listWithPs();
}

/**
 * True if a process was started with the environment variable `name=value`, or inherited it. Works only on Linux, and
 * only for the caller's own processes.
 */
export function hasVariable(pid: number, name: string, value: string): boolean {
  if (process.platform !== "linux") return false;
  try {
    return `\0${readEnviron(pid)}`.includes(`\0${name}=${value}\0`);
  } catch {
    return false;
  }
}

/** Falls back to other threads if the first thread of the process has ended. */
function readEnviron(pid: number): string {
  const environ = environOf(`/proc/${pid}`);
  if (environ !== "") return environ;
  const other = readdirSync(`/proc/${pid}/task`).find((thread) => thread !== String(pid));
  return other === undefined ? "" : environOf(`/proc/${pid}/task/${other}`);
}

/** Empty for a thread that has ended: Linux returns nothing or fails, depending on its version. */
function environOf(place: string): string {
  try {
    return readFileSync(`${place}/environ`, "latin1");
  } catch (error) {
    if (errorCode(error) === "ESRCH") return "";
    throw error;
  }
}

function listProc(): ProcessInfo[] {
  const found: ProcessInfo[] = [];
  for (const name of readdirSync("/proc")) {
    const info = /^\d+$/.test(name) ? readStat(Number(name)) : undefined;
    if (info) found.push(info);
  }
  return found;
}

/** Fields of `/proc/PID/stat` (proc(5)) after the name, which is in parentheses and may contain anything. */
function readStat(pid: number): ProcessInfo | undefined {
  let stat: string;
  try {
    stat = readStatFile(`/proc/${pid}/stat`);
  } catch {
    return undefined;
  }
  const fields = statFields(stat);
  const [state, parent, group, session] = fields;
  // A process whose first thread has ended looks like a zombie, but its other threads are running.
  const threads = Number(fields[17]);
  if ((state === "Z" && threads <= 1) || state === "X") return undefined;
  const stopped = state === "T" || state === "t";
  const started = Number(fields[19]);
  return { pid, parent: Number(parent), group: Number(group), session: Number(session), stopped, started };
}

/** Linux counts processor time in hundredths of a second for programs. */
const tickMs = 10;

/**
 * Processor time that a process has used, in milliseconds, to ten milliseconds; without that of its children. `undefined` if it
 * has ended, or this is not Linux.
 */
export function processorTime(pid: number): number | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const [user, system] = statFields(readStatFile(`/proc/${pid}/stat`))
      .slice(11, 13)
      .map(Number);
    return user === undefined || system === undefined ? undefined : (user + system) * tickMs;
  } catch {
    return undefined;
  }
}

function statFields(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** Takes half the time of `readFileSync`, which also asks for the file's size and allocates for one of 64 KiB. */
function readStatFile(file: string): string {
  const descriptor = openSync(file, "r");
  try {
    return statBuffer.toString("latin1", 0, readSync(descriptor, statBuffer));
  } finally {
    closeSync(descriptor);
  }
}

async function listWithPs(): Promise<ProcessInfo[]> {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-o", "pid=,ppid=,pgid=,stat="]);
  return stdout.split("\n").flatMap((line) => {
    const [pid, parent, group, state] = line.trim().split(/\s+/);
    if (pid === undefined || pid === "" || state?.startsWith("Z") === true) return [];
    const stopped = state?.startsWith("T") === true;
    const ids = { pid: Number(pid), parent: Number(parent), group: Number(group), session: Number(group) };
    return [{ ...ids, stopped, started: 0 }];
  });
}
