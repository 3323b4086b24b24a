import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { promisify } from "node:util";

/** A process of this host. */
export interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
  /** The id of its process group. */
  readonly group: number;
  /** The id of its session; on systems other than Linux its group. */
  readonly session: number;
}

/** All living processes of this host; zombies are not alive. Linux reads `/proc`, other Unix systems ask `ps`. */
export async function listProcesses(): Promise<ProcessInfo[]> {
  return process.platform === "linux" ? listProc() : listWithPs();
}

/**
 * Whether a process was started with the environment variable `name=value`, or inherited it. Only Linux tells, and
 * only of the caller's own processes.
 */
export function hasVariable(pid: number, name: string, value: string): boolean {
  if (process.platform !== "linux") return false;
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, "latin1")}`.includes(`\0${name}=${value}\0`);
  } catch {
    return false;
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

/** Fields of `/proc/PID/stat` (proc(5)) behind the name, which stands in brackets and may contain anything. */
function readStat(pid: number): ProcessInfo | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return undefined;
  }
  const [state, parent, group, session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (state === "Z" || state === "X") return undefined;
  return { pid, parent: Number(parent), group: Number(group), session: Number(session) };
}

async function listWithPs(): Promise<ProcessInfo[]> {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-o", "pid=,ppid=,pgid=,stat="]);
  return stdout.split("\n").flatMap((line) => {
    const [pid, parent, group, state] = line.trim().split(/\s+/);
    if (pid === undefined || pid === "" || state?.startsWith("Z") === true) return [];
    return [{ pid: Number(pid), parent: Number(parent), group: Number(group), session: Number(group) }];
  });
}
