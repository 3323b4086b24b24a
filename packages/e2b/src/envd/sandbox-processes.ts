import { readFileSync } from "node:fs";
import type { ExecutorProcesses, RunningProcess } from "@fenced/core";
import { afterMs, untilAborted } from "@fenced/core/abort";
import * as z from "zod";
import type { Guest } from "../guest/guest.ts";
import { ConnectError } from "./connect-error.ts";
import { ProcessOutput, type ProcessEvent } from "./process-output.ts";

const terminalProgram: string = readFileSync(new URL("./terminal.py", import.meta.url), "utf8");
/** Says its process id, and becomes the program. Images without bash have a shell that does for most commands. */
const launcher =
  'echo "$$" >&2; if [ "$1" = /bin/bash ] && [ ! -x /bin/bash ]; then shift; exec /bin/sh "$@"; fi; exec "$@"';

/** How long a process that has ended is remembered, in milliseconds, and how many are. */
const rememberedMs = 30_000;
const mostRemembered = 1000;
/** Bytes of input that all programs of a sandbox may have left unread, and what each piece of it counts besides. */
const [mostUnread, pieceBytes] = [16_777_216, 1024];
/** Where the process id must be in standard error. Loaders complain of variables before it. */
const longestStart = 16_384;

/** A program to start, as the protocol has it. */
interface ProcessConfig {
  readonly cmd: string;
  readonly args: readonly string[];
  readonly envs: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
}

/** How a program is started. */
export interface ProcessStart {
  readonly config: ProcessConfig;
  readonly tag: string | undefined;
  readonly hasInput: boolean;
  readonly terminal: TerminalSize | undefined;
  /** The program is killed after so many milliseconds. `undefined`: never. */
  readonly timeoutMs: number | undefined;
}

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

/** Names a process. */
export type ProcessSelector = { readonly pid: number } | { readonly tag: string };

/** What processes need of their sandbox. */
interface ProcessSurroundings {
  readonly processes: () => ExecutorProcesses;
  /** For every process. */
  readonly env: Readonly<Record<string, string>>;
  /** The home directory; `undefined` if it is not known. */
  readonly home: string | undefined;
  readonly guest: () => Promise<Guest>;
}

/** A process, from its start until it is forgotten. */
export interface SandboxProcess {
  readonly pid: number;
  readonly config: ProcessConfig;
  readonly tag: string | undefined;
  readonly output: ProcessOutput;
  readonly isTerminal: boolean;
  readonly running: RunningProcess;
  readonly input: WritableStreamDefaultWriter<Uint8Array> | undefined;
  /** The last signal that a client sent. */
  signal: "SIGKILL" | "SIGTERM" | undefined;
}

/** What is still known of a process that has ended. */
export type EndedProcess = Pick<SandboxProcess, "pid" | "tag" | "output">;

/** The processes that clients have started in a sandbox. */
export class SandboxProcesses {
  readonly #surroundings: ProcessSurroundings;
  readonly #processes = new Map<number, SandboxProcess>();
  readonly #ended = new Map<number, EndedProcess>();
  #unread = 0;

  constructor(surroundings: ProcessSurroundings) {
    this.#surroundings = surroundings;
  }

  get running(): readonly SandboxProcess[] {
    return [...this.#processes.values()];
  }

  /**
   * Starts a program. The events are read until the signal is aborted, which does not end the program.
   *
   * @throws ConnectError if it cannot be started.
   */
  async start(
    start: ProcessStart,
    signal: AbortSignal,
  ): Promise<{ readonly process: SandboxProcess; readonly events: AsyncIterable<ProcessEvent> }> {
    const { config, tag, hasInput, terminal, timeoutMs } = start;
    const running = await this.#launch(start);
    const stderr = running.stderr.getReader();
    const { pid, rest } = await untilAborted(processIdFrom(stderr), signal).catch(async (error: unknown) => {
      // Does nothing if it has ended by itself.
      await running.kill();
      await running.stdout.cancel();
      const { exitCode } = await running.wait();
      if (exitCode !== 125) throw error;
      throw new ConnectError("invalid_argument", `cwd '${config.cwd ?? ""}' does not exist`);
    });
    const output = new ProcessOutput();
    const input = hasInput || terminal ? writerOf(running) : undefined;
    const process: SandboxProcess = {
      pid,
      config,
      tag,
      output,
      isTerminal: terminal !== undefined,
      running,
      input,
      signal: undefined,
    };
    this.#ended.delete(pid);
    this.#processes.set(pid, process);
    // Nothing that it writes before this would be heard.
    const events = output.read(signal);
    void this.#follow(process, { stderr, rest, timeoutMs });
    return { process, events };
  }

  /**
   * Returns a process that runs or has just ended.
   *
   * @throws ConnectError if there is none.
   */
  find(selector: ProcessSelector): EndedProcess {
    const found = among(this.#processes, selector) ?? among(this.#ended, selector);
    if (found) return found;
    throw notFound(selector);
  }

  /** @throws ConnectError if there is none. */
  findRunning(selector: ProcessSelector): SandboxProcess {
    const found = among(this.#processes, selector);
    if (found) return found;
    throw notFound(selector);
  }

  /** Sends a signal to a process; SIGKILL also ends everything that it has started. */
  async signal(selector: ProcessSelector, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const process = this.findRunning(selector);
    process.signal = signal;
    if (signal === "SIGKILL") return process.running.kill();
    const guest = await this.#surroundings.guest();
    await guest.request("signal", { pid: process.pid, signal }, z.unknown());
  }

  /**
   * Resolves when a program's input has taken the bytes.
   *
   * @throws ConnectError if it takes none, or too much of the input of all programs waits to be read.
   */
  async write(selector: ProcessSelector, bytes: Uint8Array): Promise<void> {
    const { input } = this.findRunning(selector);
    if (!input) throw noInput();
    const size = bytes.length + pieceBytes;
    if (this.#unread > 0 && this.#unread + size > mostUnread) {
      throw new ConnectError("resource_exhausted", "The sandbox's programs have not read their input; send less of it");
    }
    this.#unread += size;
    try {
      await input.write(bytes);
    } catch (cause) {
      throw new ConnectError("failed_precondition", "The process reads no more input", { cause });
    } finally {
      this.#unread -= size;
    }
  }

  async closeInput(selector: ProcessSelector): Promise<void> {
    const { input, isTerminal } = this.findRunning(selector);
    if (isTerminal) throw new ConnectError("failed_precondition", "A terminal has no end of input: send Ctrl-D");
    if (!input) throw noInput();
    await input.close().catch(() => {});
  }

  async resize(selector: ProcessSelector, { rows, cols }: TerminalSize): Promise<void> {
    const { pid, isTerminal } = this.findRunning(selector);
    if (!isTerminal) throw new ConnectError("failed_precondition", "The process has no terminal");
    const guest = await this.#surroundings.guest();
    await guest.request("resize", { pid, rows, columns: cols }, z.unknown());
  }

  async #launch({ config, hasInput, terminal }: ProcessStart): Promise<RunningProcess> {
    const { processes, env, home } = this.#surroundings;
    const program = [config.cmd, ...config.args];
    const command: readonly [string, ...string[]] = terminal
      ? ["python3", "-ISc", terminalProgram, String(terminal.rows), String(terminal.cols), ...program]
      : ["/bin/sh", "-c", launcher, "sh", ...program];
    const given = config.cwd ?? ".";
    const cwd = given === "~" ? "." : given.replace(/^~\//, "./");
    const options = {
      command,
      cwd: cwd === "" ? "." : cwd,
      env: { ...(home !== undefined && { HOME: home }), ...env, ...config.envs },
    };
    return hasInput || terminal ? processes().start({ ...options, stdin: true }) : processes().start(options);
  }

  /** Passes a process's output on until it has ended. */
  async #follow(
    process: SandboxProcess,
    { stderr, rest, timeoutMs }: StderrSoFar & { readonly timeoutMs: number | undefined },
  ): Promise<void> {
    const { pid, output, running, isTerminal } = process;
    const lateness = new AbortController();
    const cancel = afterMs(timeoutMs ?? Infinity, () => {
      lateness.abort();
      void running.kill();
    });
    const write = (kind: "stdout" | "stderr" | "pty") => async (bytes: Uint8Array) => output.write({ kind, bytes });
    const stdout = running.stdout.getReader();
    const outputs = [
      pump(stdout, write(isTerminal ? "pty" : "stdout")),
      // The program that makes a terminal says nothing more.
      pump(stderr, isTerminal ? async () => {} : write("stderr"), rest),
    ];
    try {
      await Promise.all(outputs);
      const { exitCode } = await running.wait();
      output.end(lateness.signal.aborted ? late() : endOf(exitCode, process.signal));
    } catch (error) {
      output.end(new ConnectError("unavailable", "The sandbox has ended", { cause: error }));
    } finally {
      cancel();
      if (this.#processes.get(pid) === process) this.#processes.delete(pid);
      this.#remember(process);
    }
  }

  #remember({ pid, tag, output }: SandboxProcess): void {
    const ended: EndedProcess = { pid, tag, output };
    this.#ended.set(pid, ended);
    for (const oldest of this.#ended.keys()) {
      if (this.#ended.size <= mostRemembered) break;
      this.#ended.delete(oldest);
    }
    setTimeout(() => {
      if (this.#ended.get(pid) === ended) this.#ended.delete(pid);
    }, rememberedMs).unref();
  }
}

function among<P extends EndedProcess>(processes: ReadonlyMap<number, P>, selector: ProcessSelector): P | undefined {
  if ("pid" in selector) return processes.get(selector.pid);
  return [...processes.values()].findLast(({ tag }) => tag === selector.tag);
}

/** Standard error without the line that is the process id. */
interface StderrSoFar {
  readonly stderr: ReadableStreamDefaultReader<Uint8Array>;
  readonly rest: Uint8Array;
}

/** Reads standard error up to a line that is a process id. */
async function processIdFrom(
  stderr: ReadableStreamDefaultReader<Uint8Array>,
): Promise<{ readonly pid: number; readonly rest: Uint8Array }> {
  let text = Buffer.alloc(0);
  for (;;) {
    for (let start = 0, end = text.indexOf("\n"); end >= 0; start = end + 1, end = text.indexOf("\n", start)) {
      const line = text.toString("latin1", start, end);
      if (/^[1-9]\d{0,9}$/.test(line)) {
        return { pid: Number(line), rest: Buffer.concat([text.subarray(0, start), text.subarray(end + 1)]) };
      }
    }
    const { done, value } = await stderr.read();
    if (done || text.length > longestStart) {
      const said = text.toString().trim().slice(0, 500);
      throw new ConnectError("internal", `The process could not be started${said === "" ? "" : `: ${said}`}`);
    }
    text = Buffer.concat([text, value]);
  }
}

async function pump(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  write: (bytes: Uint8Array) => Promise<void>,
  first?: Uint8Array,
): Promise<void> {
  if (first && first.length > 0) await write(first);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    await write(value);
  }
}

function writerOf(running: RunningProcess): WritableStreamDefaultWriter<Uint8Array> | undefined {
  if (!("stdin" in running) || !(running.stdin instanceof WritableStream)) return undefined;
  const writer: WritableStreamDefaultWriter<Uint8Array> = running.stdin.getWriter();
  writer.closed.catch(() => {});
  return writer;
}

/** How a process ended: a program that a signal ends has no exit code of its own. */
function endOf(exitCode: number, signal: SandboxProcess["signal"]): ProcessEvent {
  const [expected, name] = signal === "SIGKILL" ? [137, "killed"] : [143, "terminated"];
  if (signal !== undefined && exitCode === expected) {
    return { kind: "end", exitCode: -1, exited: false, status: `signal: ${name}`, error: `signal: ${name}` };
  }
  const status = `exit status ${exitCode}`;
  return { kind: "end", exitCode, exited: true, status, ...(exitCode !== 0 && { error: status }) };
}

function noInput(): ConnectError {
  return new ConnectError("failed_precondition", "The process was started without input; start it with stdin: true");
}

function late(): ConnectError {
  return new ConnectError("deadline_exceeded", "The process was killed because its time was up");
}

function notFound(selector: ProcessSelector): ConnectError {
  const name = "pid" in selector ? `pid ${selector.pid}` : `tag ${selector.tag}`;
  return new ConnectError("not_found", `process with ${name} not found`);
}
