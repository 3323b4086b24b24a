import { spawn, type ChildProcess, type StdioOptions } from "node:child_process";
import { closeSync, existsSync, writeSync } from "node:fs";
import net from "node:net";
import { constants as osConstants } from "node:os";
import type { Writable } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import {
  feedProgram,
  isLiveInput,
  killProcesses,
  timeIsUp,
  type BlockOutcome,
  type ControlGroup,
  type ProcessFamily,
  type ProgramRun,
  type Sink,
} from "@fenced/executor-kit";
import { blockGroup, newBlockMark } from "./block-group.ts";
import { OutputReader, type InputPipe, type Pipe, type PipeSupply } from "./pipes.ts";
import { openUnnamed } from "./unnamed-file.ts";
import type { WaitingShells } from "./waiting-shells.ts";

/** A program to run as a block. */
export interface ProcessSpec {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  /** The complete environment; the block's mark is added. */
  readonly env: Readonly<Record<string, string>>;
  readonly stdin?: ProgramRun["stdin"];
  /** A directory of the session for short-lived files. */
  readonly scratch: string;
  /** Called with the process id; the process leads its own session. */
  readonly onStart: (pid: number) => void;
  /** The control group in which the block gets its own group, if there is one. */
  readonly group: ControlGroup | undefined;
  /** Shells that are in such a group already. */
  readonly shells: WaitingShells;
  /** Collects pipes to which processes left running by the program still write; destroyed when the session ends. */
  readonly leftOpen: Set<net.Socket>;
}

/**
 * Runs a program to its end: writes its output to the sink, returns its exit code and the time of its end. Children that
 * it leaves running stay alive, but the sink's signal kills everything that it started.
 *
 * @throws BackendUnavailableError if the program cannot be started.
 */
export async function runProcess(spec: ProcessSpec, pipes: PipeSupply, sink: Sink): Promise<BlockOutcome> {
  const reader = new OutputReader(sink, spec.leftOpen);
  const { child, mark, group, feed } = becomeProgram(spec, reader) ?? (await startProgram(spec, pipes, reader));
  const { signal } = sink;
  if (child.pid !== undefined) spec.onStart(child.pid);
  spec.shells.prepare();
  const exited = exitOf(child, spec);
  let endedAt: number | undefined;
  let killed: Promise<void> | undefined;
  let end = (): void => {};
  const over = new Promise<void>((resolve) => {
    end = resolve;
  });
  void exited.then(end, end);
  child.once("exit", () => {
    endedAt = performance.now();
  });
  const kill = (): void => {
    // The program finished in time and only its output is still read, so what it left running stays alive.
    if (endedAt !== undefined && signal.reason === timeIsUp) return;
    killed ??= Promise.all([group?.kill(), killProcesses({ ...rootOf(child), mark })]).then(() => {});
    // If the system cannot end the program (because a process is stuck in a driver), use the output so far.
    void killed.then(end, end);
  };
  signal.addEventListener("abort", kill, { once: true });
  if (signal.aborted) kill();
  try {
    await over;
    await reader.finish();
    await killed;
    const exitCode = killed ? 128 + osConstants.signals.SIGKILL : await exited;
    const processorMs = group?.processorMs();
    return {
      exitCode,
      ...(endedAt === undefined ? {} : { endedAt }),
      ...(processorMs !== undefined && { usage: { processorMs } }),
    };
  } finally {
    signal.removeEventListener("abort", kill);
    // Nobody will read the rest of the input.
    feed?.destroy();
    // This leaves the group in place while it contains a process that the block left running.
    await group?.remove();
  }
}

/** A program that has been started. */
interface StartedProgram {
  readonly child: ChildProcess;
  readonly mark: ProcessFamily["mark"];
  readonly group: ControlGroup | undefined;
  /** Where its input is written. */
  readonly feed?: Writable | null | undefined;
}

/** Makes the waiting shell the program, if there is one; its input is empty. */
function becomeProgram({ shells, ...spec }: ProcessSpec, reader: OutputReader): StartedProgram | undefined {
  // A program that cannot be started in its directory fails with a reason.
  const shell = spec.stdin === undefined && existsSync(spec.cwd) ? shells.take(spec) : undefined;
  const [out, err] = shell?.outputs ?? [];
  if (out === undefined || err === undefined) return undefined;
  reader.addPipe("stdout", out);
  reader.addPipe("stderr", err);
  return shell;
}

async function startProgram(spec: ProcessSpec, pipes: PipeSupply, reader: OutputReader): Promise<StartedProgram> {
  const mark = newBlockMark();
  const env = { ...spec.env, [mark.name]: mark.value };
  const group = await blockGroup(spec.group, mark.value);
  const command = group?.wrap(spec.command, env) ?? spec.command;
  const { stdin } = spec;
  const live = stdin !== undefined && isLiveInput(stdin) ? stdin : undefined;
  const input = live && (await pipes.takeInput());
  const child = startProcess({ ...spec, command, env }, reader, [await pipes.take(), await pipes.take(), input]);
  const feed = input?.writer ?? child.stdin;
  if (feed && live) void feedProgram(live, feed);
  return { child, mark, group, feed };
}

function startProcess(
  { command: [program, ...words], cwd, env, stdin, scratch }: ProcessSpec,
  reader: OutputReader,
  [out, err, live]: readonly [Pipe | undefined, Pipe | undefined, InputPipe | undefined],
): ChildProcess {
  if (out) reader.addPipe("stdout", out.readEnd);
  if (err) reader.addPipe("stderr", err.readEnd);
  let input = live?.readEnd;
  try {
    const given = stdin !== undefined && !isLiveInput(stdin);
    if (given) input = stdinFile(stdin, scratch);
    const stdio: StdioOptions = [
      input ?? (stdin === undefined ? "ignore" : "pipe"),
      out?.writeEnd ?? "pipe",
      err?.writeEnd ?? "pipe",
    ];
    const child = spawn(program, words, { cwd, env, stdio, detached: process.platform !== "win32", windowsHide: true });
    if (child.stdout instanceof net.Socket) reader.addSocket("stdout", child.stdout);
    if (child.stderr instanceof net.Socket) reader.addSocket("stderr", child.stderr);
    return child;
  } catch (error) {
    void reader.finish();
    live?.writer.destroy();
    throw startFailure(error, program, cwd);
  } finally {
    for (const fd of [input, out?.writeEnd, err?.writeEnd]) if (fd !== undefined) closeSync(fd);
  }
}

/** The id by which to find a child's family. Once the child has been reaped, another process may have its id. */
export function rootOf({ pid, exitCode, signalCode }: ChildProcess): Omit<ProcessFamily, "mark"> {
  if (pid === undefined) return {};
  return exitCode === null && signalCode === null ? { root: pid } : { endedRoots: [pid] };
}

/**
 * Uses a file, because it accepts any amount at once, can be reopened as `/dev/stdin`, and does not have to be read.
 */
function stdinFile(text: string | Uint8Array, scratch: string): number {
  const fd = openUnnamed(scratch);
  try {
    const bytes = Buffer.from(text);
    // Writes at explicit positions leave the descriptor's own position at the start.
    for (let done = 0; done < bytes.length;) done += writeSync(fd, bytes, done, bytes.length - done, done);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function exitOf(child: ChildProcess, { command, cwd }: ProcessSpec): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("exit", (code, signal) => resolve(code ?? 128 + (signal ? osConstants.signals[signal] : 0)));
    child.once("error", (error) => reject(startFailure(error, command[0], cwd)));
  });
}

function startFailure(cause: unknown, program: string, cwd: string): BackendUnavailableError {
  const problem = existsSync(cwd) ? String(cause) : `the work directory ${cwd} is gone`;
  return new BackendUnavailableError(`"${program}" could not be started: ${problem}`, {
    remedy: "Check that the program is installed and the work directory exists, then call stop() and start().",
    cause,
  });
}
