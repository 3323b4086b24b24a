import { spawn, type ChildProcess, type ChildProcessByStdio } from "node:child_process";
// oxlint-disable-next-line no-restricted-imports
import { closeSync, openSync, readSync, rmSync, statSync } from "node:fs";
import { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { hostEnvironment } from "@fenced/executor-kit";
import type { SshExecutorOptions } from "../ssh-executor-options.ts";
import { sshArguments, type SshCall } from "./ssh-arguments.ts";

/** Milliseconds for which the outputs of a process that has ended may stay open. */
const openOutputsMs = 1000;

/** A run of `ssh` that uses a connection. */
export interface SshProcess {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** Messages of ssh itself so far. */
  readonly said: () => string;
  /** Kills it, including the programs that it connects through. */
  readonly kill: () => void;
  /** Lets Node end while it runs. */
  readonly unref: () => void;
}

/** Starts `ssh`, with `mark` in its environment and that of the programs that it starts. */
export function startSsh(
  options: SshExecutorOptions,
  call: SshCall,
  mark: { readonly name: string; readonly value: string },
): SshProcess {
  const child = spawn("ssh", sshArguments(options, call), {
    // Keys pressed in this program's terminal, such as Ctrl+C, are not meant for the connection.
    detached: true,
    env: { ...environmentOfSsh(), [mark.name]: mark.value },
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.stdin.on("error", () => {});
  let errors = "";
  if (call.role === "master") {
    child.stderr.on("data", (bytes: Buffer) => {
      errors = (errors + bytes.toString()).slice(-2000);
    });
  }
  child.on("exit", () => {
    killGroup(child);
    closeOutputs(child);
  });
  let last: string | undefined;
  child.on("close", () => {
    last = endOfFile(call.log);
    rmSync(call.log, { force: true });
  });
  return {
    child,
    said: () => `${errors}\n${last ?? endOfFile(call.log)}`,
    kill: () => {
      // Once it has ended, another process may have its id.
      if (child.exitCode === null && child.signalCode === null) killGroup(child);
    },
    unref: () => {
      child.unref();
      for (const each of [child.stdin, child.stdout, child.stderr]) if (each instanceof Socket) each.unref();
    },
  };
}

/** A `ProxyCommand` or `ProxyJump` is in ssh's group. It may outlive ssh and hold its outputs open. */
function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All of them are gone.
  }
}

/** Once all output of an ended process has been read, stops waiting for other processes that hold its outputs open. */
function closeOutputs({ stdin, stdout, stderr }: SshProcess["child"]): void {
  const outputs = [stdout, stderr];
  const late = setInterval(() => {
    if (outputs.some((each) => each.isPaused() && !each.readableEnded)) return;
    clearInterval(late);
    for (const each of [stdin, ...outputs]) each.destroy();
  }, openOutputsMs);
  let open = outputs.length;
  for (const each of outputs) each.once("close", () => (open -= 1) === 0 && clearInterval(late));
}

/** Variables that tell ssh where to find an agent and tickets. */
const neededBySsh = ["SSH_AUTH_SOCK", "SSH_AGENT_PID", "XDG_RUNTIME_DIR", "KRB5CCNAME"];

/**
 * Leaves out the locale variables, which ssh may send to the host, as it does with Debian's configuration. The language
 * of ssh does not matter here.
 */
function environmentOfSsh(): Record<string, string> {
  const all = Object.entries(hostEnvironment(neededBySsh));
  return Object.fromEntries(all.filter(([name]) => !/^(?:LANG|LANGUAGE|LC_.*)$/.test(name)));
}

/** The remote side decides what ssh logs, and how much, so only the end is read. */
function endOfFile(file: string): string {
  const bytes = Buffer.alloc(4000);
  try {
    const start = Math.max(0, Number(statSync(file, { bigint: true }).size) - bytes.length);
    const descriptor = openSync(file, "r");
    try {
      return bytes.toString("utf8", 0, readSync(descriptor, bytes, 0, bytes.length, start));
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return "";
  }
}
