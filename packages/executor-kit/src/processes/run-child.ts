import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { constants } from "node:os";
import { BackendUnavailableError } from "@fenced/core";
import { timeIsUp, type BlockOutcome } from "../run/block-run.ts";
import { OutputStreams } from "../run/output-streams.ts";
import type { Sink } from "../run/sink.ts";
import { killProcesses, type ProcessFamily } from "./kill-processes.ts";

/** A program of this host to run as a block. */
export interface ChildProgram {
  readonly command: readonly [program: string, ...words: string[]];
  readonly cwd: string;
  /** The complete environment; `FENCED_BLOCK` is added. */
  readonly env: Readonly<Record<string, string>>;
  /** `undefined`: standard input is closed. */
  readonly stdin?: string;
  /**
   * Called with the process id; the process leads its own session. Pass the id in `endedRoots` to a later
   * `killProcesses`.
   */
  readonly onStart?: (pid: number) => void;
}

/**
 * Runs a program of this host as a block: writes its output to the sink, returns its exit code and the time of its end.
 * The sink's signal kills everything that it started. Processes that it leaves running stay alive until `killProcesses`
 * ends them by a mark, which `env` should contain.
 *
 * @throws BackendUnavailableError if the program cannot be started.
 */
export async function runChild(program: ChildProgram, sink: Sink): Promise<BlockOutcome> {
  const { command, cwd, stdin, onStart } = program;
  const { signal } = sink;
  const mark = { name: "FENCED_BLOCK", value: randomUUID() };
  const [file, ...words] = command;
  const child = spawn(file, words, {
    cwd,
    env: { ...program.env, [mark.name]: mark.value },
    stdio: ["pipe", "pipe", "pipe"],
    detached: process.platform !== "win32",
    windowsHide: true,
  });
  if (child.pid !== undefined) onStart?.(child.pid);
  const output = new OutputStreams();
  output.follow(child.stdout, (data) => sink.write({ type: "stdout", data }));
  output.follow(child.stderr, (data) => sink.write({ type: "stderr", data }));
  // A program need not read its input.
  child.stdin.on("error", () => {});
  child.stdin.end(stdin);
  let endedAt: number | undefined;
  let killed: Promise<void> | undefined;
  let end: (exitCode: number) => void = () => {};
  let fail: (error: unknown) => void = () => {};
  const ended = new Promise<number>((resolve, reject) => {
    end = resolve;
    fail = reject;
  });
  child.on("error", (error) => fail(notStarted(error, file, cwd)));
  child.on("exit", (code, name) => {
    endedAt = performance.now();
    end(code ?? 128 + (name ? constants.signals[name] : 0));
  });
  const kill = (): void => {
    // The program finished in time and only its output is still read, so what it left running stays alive.
    if (endedAt !== undefined && signal.reason === timeIsUp) return;
    // If the system cannot end the program (because a process is stuck in a driver), use the output so far.
    killed ??= killProcesses({ ...rootOf(child), mark });
    killed.then(() => end(128 + constants.signals.SIGKILL), fail);
  };
  signal.addEventListener("abort", kill, { once: true });
  if (signal.aborted) kill();
  try {
    const exitCode = await ended;
    await output.drained();
    await killed;
    return { exitCode, ...(endedAt === undefined ? {} : { endedAt }) };
  } finally {
    signal.removeEventListener("abort", kill);
    output.end();
  }
}

/** The id by which to find a child's family. Once the child has been reaped, another process may have its id. */
function rootOf({ pid, exitCode, signalCode }: ChildProcess): Omit<ProcessFamily, "mark"> {
  if (pid === undefined) return {};
  return exitCode === null && signalCode === null ? { root: pid } : { endedRoots: [pid] };
}

function notStarted(cause: unknown, program: string, cwd: string): BackendUnavailableError {
  return new BackendUnavailableError(`"${program}" could not be started in ${cwd}: ${String(cause)}`, {
    remedy: "Check that the program and the directory exist, then call stop() and start().",
    cause,
  });
}
