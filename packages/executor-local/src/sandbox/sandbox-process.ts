import { spawn, type ChildProcess } from "node:child_process";
import { closeSync } from "node:fs";
import net from "node:net";
import type { Readable, Writable } from "node:stream";
import { BackendUnavailableError, FencedError } from "@fenced/core";
import { within } from "@fenced/core/abort";
import { closePipe, type Pipe } from "../processes/pipes.ts";
import { NoPython, type SupervisorProcess } from "../running-supervisor.ts";
import type { SandboxPlan } from "./bubblewrap-command.ts";
import { explainStart } from "./sandbox-problems.ts";
import { bubblewrapStart, StartedBubblewrap } from "./started-bubblewrap.ts";

/** Time limits for a sandbox to end by itself, and after it was killed, in milliseconds. */
const [endMs, killMs] = [2000, 10_000];
/** Bytes to read at once. */
const readSize = 262_144;

/** Starts bubblewrap. Keeps only the end of the pipe to read from; if it throws, neither. */
function startBubblewrap(
  plan: SandboxPlan,
  env: Readonly<Record<string, string>>,
  output: Pipe | undefined,
): { readonly child: ChildProcess; readonly input: Uint8Array } {
  try {
    const { command, input, descriptors } = bubblewrapStart(plan, env, false);
    const [program, ...words] = command;
    const stdio = Array.from({ length: descriptors }, (_, descriptor) =>
      descriptor === 1 && output ? output.writeEnd : ("pipe" as const),
    );
    const child = spawn(program, words, { cwd: "/", env, stdio, detached: true });
    // Even if this process has no descriptors for its streams.
    child.on("error", () => {});
    if (output) closeSync(output.writeEnd);
    return { child, input };
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
  readonly #bubblewrap: StartedBubblewrap;
  readonly #ended: Promise<void>;

  /**
   * @param env - environment variables of its first process, which all programs in it can read.
   * @param output - the pipe for its standard output, closed in the end; `undefined` for a socket, which is slower.
   */
  constructor(plan: SandboxPlan, env: Readonly<Record<string, string>>, output: Pipe | undefined) {
    const { child, input } = startBubblewrap(plan, env, output);
    this.#child = child;
    this.#bubblewrap = new StartedBubblewrap(child, plan);
    this.#ended = new Promise((resolve) => {
      child.once("exit", () => resolve());
      child.once("error", (error) => {
        this.#bubblewrap.say(String(error));
        resolve();
      });
    });
    const { stdin, stderr } = child;
    const stdout = output ? readInto(output.readEnd) : child.stdout;
    if (!stdin || !stdout || !stderr) throw explainStart("");
    this.streams = { stdin, stdout, stderr };
    stdin.on("error", () => {});
    stdin.write(input);
  }

  explain(cause: unknown): Error {
    if (cause instanceof NoPython) return explainStart("execvp python3");
    const failed = this.#child.exitCode !== null && this.#child.exitCode !== 0;
    return FencedError.isInstance(cause) && !failed ? cause : explainStart(this.#bubblewrap.said, cause);
  }

  async check(): Promise<void> {
    await this.#bubblewrap.checkGroups();
  }

  /** Kills the first process, and with it the whole sandbox. */
  kill(): void {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const { firstProcess } = this.#bubblewrap;
    try {
      // Bubblewrap is its parent and waits for it, so no other process can have this id.
      if (firstProcess !== undefined) process.kill(firstProcess, "SIGKILL");
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
