import { spawn, type ChildProcess } from "node:child_process";
import { closeSync } from "node:fs";
import { readFile } from "node:fs/promises";
import net from "node:net";
import path from "node:path";
import { Readable, Writable } from "node:stream";
import { BackendUnavailableError, FencedError } from "@fenced/core";
import { within } from "@fenced/core/abort";
import { inGroups } from "@fenced/executor-kit";
import { closePipe, type Pipe } from "../processes/pipes.ts";
import { NoPython, type SupervisorProcess } from "../running-supervisor.ts";
import {
  filterDescriptor,
  firstSettingsDescriptor,
  infoDescriptor,
  type SandboxPlan,
  sandboxStart,
} from "./bubblewrap-command.ts";
import { explainStart, unsupportedSystem } from "./sandbox-problems.ts";
import { systemCallFilter } from "./system-call-filter.ts";

/** Time limits for a sandbox to end by itself, and after it was killed, in milliseconds. */
const [endMs, killMs] = [2000, 10_000];
const longestWords = 4000;
/** Bytes to read at once. */
const readSize = 262_144;

/** A bubblewrap that has been started. */
interface StartedBubblewrap {
  readonly child: ChildProcess;
  /** What to write to its standard input first. */
  readonly input: Uint8Array;
  /** What to write to `filterDescriptor`. */
  readonly filter: Uint8Array;
}

/**
 * Starts bubblewrap. Keeps only the end of the pipe to read from; if it throws, neither.
 *
 * @throws BackendUnavailableError on processors for whose system calls there is no filter.
 */
function startBubblewrap(
  plan: SandboxPlan,
  env: Readonly<Record<string, string>>,
  output: Pipe | undefined,
): StartedBubblewrap {
  try {
    if (process.arch !== "x64" && process.arch !== "arm64") throw unsupportedSystem();
    const { command, input } = sandboxStart(plan);
    const [program, ...words] = inGroups(plan.limits.groups, command, env);
    const stdio = Array.from({ length: firstSettingsDescriptor + plan.settings.length }, (_, descriptor) =>
      descriptor === 1 && output ? output.writeEnd : ("pipe" as const),
    );
    const child = spawn(program, words, { cwd: "/", env, stdio, detached: true });
    if (output) closeSync(output.writeEnd);
    // Afterwards, beside bubblewrap's start.
    return { child, input, filter: systemCallFilter(process.arch) };
  } catch (error) {
    if (output) closePipe(output);
    throw error;
  }
}

/** A stream of what a pipe contains, whose chunks are all in the same memory: a gigabyte of output makes no garbage. */
function readInto(fd: number): net.Socket {
  const buffer = Buffer.allocUnsafeSlow(readSize);
  const callback = (count: number): boolean => {
    socket.emit("data", buffer.subarray(0, count));
    return true;
  };
  const options: net.SocketConstructorOpts & { readonly onread: net.OnReadOpts } = {
    fd,
    readable: true,
    writable: false,
    onread: { buffer, callback },
  };
  const socket = new net.Socket(options);
  socket.resume();
  return socket;
}

/**
 * The bubblewrap process, which lives as long as the sandbox. The supervisor is the first process in the sandbox; when
 * it ends, the kernel kills all others.
 */
export class SandboxProcess implements SupervisorProcess {
  readonly name: string = "The sandbox";
  readonly lostRemedy: string = "Call again to start a new one. If it happens again, raise `memoryBytes`.";
  readonly streams: { readonly stdin: Writable; readonly stdout: Readable; readonly stderr: Readable };
  readonly #child: ChildProcess;
  readonly #plan: SandboxPlan;
  readonly #ended: Promise<void>;
  #said = "";
  #info = "";

  /**
   * @param env - environment variables of its first process, which all programs in it can read.
   * @param output - the pipe for its standard output, closed in the end; `undefined` for a socket, which is slower.
   */
  constructor(plan: SandboxPlan, env: Readonly<Record<string, string>>, output: Pipe | undefined) {
    this.#plan = plan;
    const { child, input, filter: filterRules } = startBubblewrap(plan, env, output);
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      this.#child.once("exit", () => resolve());
      this.#child.once("error", (error) => {
        this.#said += String(error);
        resolve();
      });
    });
    const { stdin, stderr, stdio: all } = this.#child;
    const stdout = output ? readInto(output.readEnd) : this.#child.stdout;
    const [filter, info] = [all[filterDescriptor], all[infoDescriptor]];
    if (!stdin || !stdout || !stderr || !(filter instanceof Writable) || !(info instanceof Readable)) {
      throw explainStart("");
    }
    this.streams = { stdin, stdout, stderr };
    stderr.on("data", (bytes: Buffer) => {
      this.#said = (this.#said + bytes.toString()).slice(-longestWords);
    });
    info.on("data", (bytes: Buffer) => {
      this.#info = (this.#info + bytes.toString()).slice(0, longestWords);
    });
    for (const stream of [stdin, filter, info]) stream.on("error", () => {});
    stdin.write(input);
    filter.end(filterRules);
    for (const [index, { text }] of plan.settings.entries()) {
      const file = all[firstSettingsDescriptor + index];
      if (!(file instanceof Writable)) throw explainStart("");
      file.on("error", () => {});
      file.end(text);
    }
  }

  explain(cause: unknown): Error {
    if (cause instanceof NoPython) return explainStart("execvp python3");
    const failed = this.#child.exitCode !== null && this.#child.exitCode !== 0;
    return FencedError.isInstance(cause) && !failed ? cause : explainStart(this.#said, cause);
  }

  /** @throws BackendUnavailableError if the sandbox is not in the control groups that enforce its limits. */
  async check(): Promise<void> {
    const members = this.#plan.limits.groups.map(async ({ directory }) => {
      return { directory, list: await readFile(path.join(directory, "cgroup.procs"), "utf8").catch(() => "") };
    });
    for (const { directory, list } of await Promise.all(members)) {
      if (list.split("\n").includes(String(this.#child.pid))) continue;
      throw new BackendUnavailableError(`The sandbox could not enter its control group ${directory}`, {
        remedy: "Let this program move processes there, or run it where it cannot create any control groups.",
      });
    }
  }

  /** Kills the first process, and with it the whole sandbox. */
  kill(): void {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const [, first] = /"child-pid": (\d+)/.exec(this.#info) ?? [];
    try {
      // Bubblewrap is its parent and waits for it, so no other process can have this id.
      if (first !== undefined) process.kill(Number(first), "SIGKILL");
      else this.#child.kill("SIGKILL");
    } catch {
      // It is already dead.
    }
  }

  /**
   * Resolves when all processes are dead.
   *
   * @throws BackendUnavailableError if the system does not end them.
   */
  async end(): Promise<void> {
    this.streams.stdin.destroy();
    const ended = this.#ended.then(() => true);
    if ((await within(endMs, ended)) !== true) this.kill();
    if ((await within(killMs, ended)) !== true) throw this.#notEnded();
    const { stdout, stderr } = this.streams;
    for (const stream of [stdout, stderr]) stream.destroy();
  }

  #notEnded(): BackendUnavailableError {
    return new BackendUnavailableError(`The sandbox did not end within ${killMs / 1000} s after it was killed`, {
      remedy: `Find out what blocks the processes below process ${this.#child.pid}; usually it is a device or a network disk.`,
    });
  }
}
