import { spawn, type ChildProcess, type ChildProcessByStdio } from "node:child_process";
import { Writable, type Readable } from "node:stream";
import { hostEnvironment } from "@fenced/executor-kit";
import type { SshExecutorOptions } from "../ssh-executor-options.ts";
import { sshArguments } from "./ssh-arguments.ts";
import { tooManyFiles } from "./ssh-error.ts";

/** Milliseconds for which the outputs of a process that has ended may stay open. */
const openOutputsMs = 1000;
/** Maximum number of characters of messages to keep. */
const longestMessages = 2000;

/** A run of `ssh`. */
export interface SshProcess {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** Resolves when it has ended, and its outputs with it. */
  readonly ended: Promise<void>;
  /** The last messages of ssh itself, and of the programs on the remote host. */
  readonly said: () => string;
  /** Kills it, including the programs that it connects through. */
  readonly kill: () => void;
}

/**
 * Starts `ssh`, with `mark` in its environment and that of the programs that it starts.
 *
 * @throws BackendUnavailableError if this program has too many open files. A missing ssh is an event of the child.
 */
export function startSsh(
  options: SshExecutorOptions,
  command: string,
  mark: { readonly name: string; readonly value: string },
): SshProcess {
  const child = spawn("ssh", sshArguments(options, command), {
    // Keys pressed in this program's terminal, such as Ctrl+C, are not meant for the connection.
    detached: true,
    env: { ...environmentOfSsh(), [mark.name]: mark.value },
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.on("error", () => {});
  if (!hasStreams(child)) throw tooManyFiles();
  child.stdin.on("error", () => {});
  let said = "";
  child.stderr.on("data", (bytes: Buffer) => {
    said = (said + bytes.toString()).slice(-longestMessages);
  });
  child.on("exit", () => {
    killGroup(child);
    closeOutputs(child);
  });
  return {
    child,
    ended: new Promise((resolve) => {
      child.once("close", () => resolve());
    }),
    said: () => said,
    kill: () => {
      // Once it has ended, another process may have its id.
      if (child.exitCode === null && child.signalCode === null) killGroup(child);
    },
  };
}

/** Without descriptors for its streams, Node leaves them out, although the types do not say so, and emits an error later. */
function hasStreams({ stdin }: ChildProcess): boolean {
  return stdin instanceof Writable;
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
