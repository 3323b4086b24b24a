import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { constants } from "node:os";
import { BackendUnavailableError } from "@fenced/core";
import { timeIsUp, type BlockEvent, type BlockOutcome } from "../run/block-run.ts";
import { OutputQueue } from "../run/output-queue.ts";
import { killProcesses, type ProcessFamily } from "./kill-processes.ts";

/** A program of this host to run as a block. */
export interface ChildProgram {
  readonly command: readonly [program: string, ...words: string[]];
  readonly cwd: string;
  /** The complete environment; `FENCED_BLOCK` is added. */
  readonly env: Readonly<Record<string, string>>;
  /** `undefined`: standard input is closed. */
  readonly stdin?: string;
  /** Kills everything that the program started. */
  readonly signal: AbortSignal;
  /**
   * Called with the process id; the process leads its own session. Pass the id in `endedRoots` to a later
   * `killProcesses`.
   */
  readonly onStart?: (pid: number) => void;
}

/**
 * Runs a program of this host as a block: yields its output, returns its exit code and the time of its end. Processes
 * that it leaves running stay alive until `killProcesses` ends them by a mark, which `env` should contain.
 *
 * @throws BackendUnavailableError if the program cannot be started.
 */
export async function* runChild(program: ChildProgram): AsyncGenerator<BlockEvent, BlockOutcome, void> {
  const { command, cwd, stdin, signal, onStart } = program;
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
  const output = new OutputQueue<BlockOutcome>();
  output.follow("stdout", child.stdout);
  output.follow("stderr", child.stderr);
  // A program need not read its input.
  child.stdin.on("error", () => {});
  child.stdin.end(stdin);
  child.on("error", (error) => output.fail(notStarted(error, file, cwd)));
  let endedAt: number | undefined;
  let killed: Promise<void> | undefined;
  const end = async (exitCode: number): Promise<void> => {
    await output.drained();
    output.end({ exitCode, ...(endedAt === undefined ? {} : { endedAt }) });
  };
  child.on("exit", (code, name) => {
    endedAt = performance.now();
    void end(code ?? 128 + (name ? constants.signals[name] : 0));
  });
  const kill = (): void => {
    // The program finished in time and only its reader is slow, so what it left running stays alive.
    if (endedAt !== undefined && signal.reason === timeIsUp) return;
    // If the system cannot end the program (because a process is stuck in a driver), use the output so far.
    killed ??= killProcesses({ ...rootOf(child), mark }).then(() => end(128 + constants.signals.SIGKILL));
    killed.catch((error: unknown) => output.fail(error));
  };
  signal.addEventListener("abort", kill, { once: true });
  if (signal.aborted) kill();
  try {
    const outcome = yield* output.events();
    await killed;
    return outcome;
  } finally {
    signal.removeEventListener("abort", kill);
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
