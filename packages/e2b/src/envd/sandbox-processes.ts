import {
  type ConnectedProcess,
  type ExecutorProcesses,
  InvalidInputError,
  type ListedProcess,
  type ProcessExit,
  type RunningProcess,
} from "@fenced/core";
import { ConnectError } from "./connect-error.ts";
import { type ProcessEvent, processEvents } from "./process-events.ts";

/**
 * Becomes the program, whose tag is before it. Images without bash have a shell that does for most commands. What is started
 * with it is a client's process.
 */
const launcher = 'shift; if [ "$1" = /bin/bash ] && [ ! -x /bin/bash ]; then shift; exec /bin/sh "$@"; fi; exec "$@"';

/** How long the tag of a process that has ended is remembered, in milliseconds, and of how many. */
const rememberedMs = 30_000;
const mostRemembered = 1000;
/** Bytes of input that all programs of a sandbox may have left unread, and what each piece of it counts besides. */
const [mostUnread, pieceBytes] = [16_777_216, 1024];
/** The exit code of a program whose directory is missing. */
const noDirectory = 125;

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
}

/** A process and what it does, for one client. */
export interface FollowedProcess {
  readonly pid: number;
  readonly events: AsyncIterable<ProcessEvent>;
}

/** A process as it is listed. */
export interface SandboxProcess {
  readonly pid: number;
  readonly config: ProcessConfig;
  readonly tag: string | undefined;
}

/** What this server knows of a process besides what its executor does. */
interface KnownProcess extends SandboxProcess {
  /** Reads nothing. */
  readonly handle: RunningProcess & Pick<ConnectedProcess, "resize">;
  readonly input: WritableStreamDefaultWriter<Uint8Array> | undefined;
  /** The last signal that a client sent. */
  signal: "SIGKILL" | "SIGTERM" | undefined;
  isOver: boolean;
}

/** The processes that clients have started in a sandbox: those of its executor, by the rules of the protocol. */
export class SandboxProcesses {
  readonly #surroundings: ProcessSurroundings;
  readonly #known = new Map<number, KnownProcess>();
  #unread = 0;

  constructor(surroundings: ProcessSurroundings) {
    this.#surroundings = surroundings;
  }

  /** Those that run, also from before this server was started. */
  async running(): Promise<readonly SandboxProcess[]> {
    const listed = await this.#processes.list();
    return listed.flatMap((each) => {
      const known = this.#known.get(each.pid);
      const found = known && !known.isOver ? known : describedBy(each);
      return found ? [found] : [];
    });
  }

  /**
   * Starts a program. The events are read until the signal is aborted, which does not end the program.
   *
   * @throws ConnectError if it cannot be started.
   */
  async start(start: ProcessStart, signal: AbortSignal): Promise<FollowedProcess> {
    const { config, tag } = start;
    const cwd = directoryOf(config);
    if (cwd !== ".") await this.#assertDirectory(cwd, config.cwd ?? "");
    const handle = await this.#launch(start, cwd);
    const { pid } = handle;
    if (pid === undefined) throw await notStarted(handle);
    const known = this.#remember({
      pid,
      config,
      tag,
      handle,
      input: writerOf(handle),
      signal: undefined,
      isOver: false,
    });
    return { pid, events: processEvents(handle, { signal, endOf: (exit) => endOf(exit, known) }) };
  }

  /**
   * Follows a process that runs or has just ended, from now on.
   *
   * @throws ConnectError if there is none.
   */
  async follow(selector: ProcessSelector, signal: AbortSignal): Promise<FollowedProcess> {
    const known = await this.#find(selector);
    const { pid } = known;
    const handle = await this.#connect(pid, selector);
    return { pid, events: processEvents(handle, { signal, endOf: (exit) => endOf(exit, known) }) };
  }

  /** Sends a signal to a process; SIGKILL also ends everything that it has started. */
  async signal(selector: ProcessSelector, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const known = await this.#findRunning(selector);
    known.signal = signal;
    await known.handle.kill(signal);
  }

  /**
   * Resolves when a program's input has taken the bytes.
   *
   * @throws ConnectError if it takes none, or too much of the input of all programs waits to be read.
   */
  async write(selector: ProcessSelector, bytes: Uint8Array): Promise<void> {
    const { input } = await this.#findRunning(selector);
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
    const { input, handle } = await this.#findRunning(selector);
    if (handle.resize) throw new ConnectError("failed_precondition", "A terminal has no end of input: send Ctrl-D");
    if (!input) throw noInput();
    await input.close().catch(() => {});
  }

  async resize(selector: ProcessSelector, { rows, cols }: TerminalSize): Promise<void> {
    const { handle } = await this.#findRunning(selector);
    if (!handle.resize) throw new ConnectError("failed_precondition", "The process has no terminal");
    await handle.resize({ rows, columns: cols });
  }

  get #processes(): ExecutorProcesses {
    return this.#surroundings.processes();
  }

  /** The client learns of it before the process has started, so another program has to look. */
  async #assertDirectory(cwd: string, given: string): Promise<void> {
    await using looking = await this.#processes.start({ command: ["true"], cwd });
    const { exitCode } = await looking.wait();
    if (exitCode === noDirectory) throw new ConnectError("invalid_argument", `cwd '${given}' does not exist`);
  }

  #launch(
    { config, tag = "", hasInput, terminal, timeoutMs }: ProcessStart,
    cwd: string,
  ): Promise<RunningProcess & Pick<ConnectedProcess, "resize">> {
    const { env, home } = this.#surroundings;
    const command: readonly [string, ...string[]] = ["/bin/sh", "-c", launcher, "sh", tag, config.cmd, ...config.args];
    const options = {
      command,
      cwd,
      env: { ...(home !== undefined && { HOME: home }), ...env, ...config.envs },
      ...(timeoutMs !== undefined && { timeoutMs }),
    };
    if (terminal) return this.#processes.start({ ...options, pty: { columns: terminal.cols, rows: terminal.rows } });
    return hasInput ? this.#processes.start({ ...options, stdin: true }) : this.#processes.start(options);
  }

  async #connect(pid: number, selector: ProcessSelector): Promise<ConnectedProcess> {
    try {
      return await this.#processes.connect(pid);
    } catch (error) {
      throw InvalidInputError.isInstance(error) ? notFound(selector) : error;
    }
  }

  async #findRunning(selector: ProcessSelector): Promise<KnownProcess> {
    const known = await this.#find(selector);
    if (known.isOver) throw notFound(selector);
    return known;
  }

  /** @throws ConnectError if there is none. */
  async #find(selector: ProcessSelector): Promise<KnownProcess> {
    const isMeant = ({ pid, tag }: SandboxProcess): boolean =>
      "pid" in selector ? pid === selector.pid : tag === selector.tag;
    const all = [...this.#known.values()];
    const known = all.findLast((each) => isMeant(each) && !each.isOver) ?? all.findLast((each) => isMeant(each));
    if (known) return known;
    const left = (await this.running()).findLast((each) => isMeant(each));
    if (!left) throw notFound(selector);
    const handle = await this.#connect(left.pid, selector);
    await Promise.all([handle.stdout.cancel(), handle.stderr.cancel()]);
    return (
      this.#known.get(left.pid) ??
      this.#remember({ ...left, handle, input: writerOf(handle), signal: undefined, isOver: false })
    );
  }

  #remember(known: KnownProcess): KnownProcess {
    const { pid, handle } = known;
    this.#known.delete(pid);
    this.#known.set(pid, known);
    const end = (): void => {
      known.isOver = true;
      const over = [...this.#known.values()].filter(({ isOver }) => isOver);
      for (const each of over.slice(0, Math.max(0, over.length - mostRemembered))) {
        this.#known.delete(each.pid);
      }
      setTimeout(() => {
        if (this.#known.get(pid) === known) this.#known.delete(pid);
      }, rememberedMs).unref();
    };
    handle.wait().then(end, end);
    return known;
  }
}

function directoryOf({ cwd: given = "." }: ProcessConfig): string {
  const cwd = given === "~" ? "." : given.replace(/^~\//, "./");
  return cwd === "" ? "." : cwd;
}

/** What a listed process is to clients; `undefined` for one that this server needs itself. */
function describedBy({ pid, command, cwd }: ListedProcess): SandboxProcess | undefined {
  const [shell, option, program, , tag = "", cmd = "", ...args] = typeof command === "string" ? [] : command;
  if (shell !== "/bin/sh" || option !== "-c" || program !== launcher) return undefined;
  const config = { cmd, args, envs: {}, ...(cwd !== undefined && cwd !== "." && { cwd }) };
  return { pid, config, tag: tag === "" ? undefined : tag };
}

function writerOf(running: RunningProcess): WritableStreamDefaultWriter<Uint8Array> | undefined {
  if (!("stdin" in running) || !(running.stdin instanceof WritableStream)) return undefined;
  const writer: WritableStreamDefaultWriter<Uint8Array> = running.stdin.getWriter();
  writer.closed.catch(() => {});
  return writer;
}

/** How a process ended: a program that a signal ends has no exit code of its own. */
function endOf({ exitCode, timedOut }: ProcessExit, { signal }: Pick<KnownProcess, "signal">): ProcessEvent {
  if (timedOut === true) throw new ConnectError("deadline_exceeded", "The process was killed because its time was up");
  const [expected, name] = signal === "SIGKILL" ? [137, "killed"] : [143, "terminated"];
  if (signal !== undefined && exitCode === expected) {
    return { kind: "end", exitCode: -1, exited: false, status: `signal: ${name}`, error: `signal: ${name}` };
  }
  const status = `exit status ${exitCode}`;
  return { kind: "end", exitCode, exited: true, status, ...(exitCode !== 0 && { error: status }) };
}

/** Why a process has no id. */
async function notStarted(handle: RunningProcess): Promise<ConnectError> {
  await handle.kill();
  const reason: unknown = await handle.wait().then(
    () => "the sandbox's image needs Python 3.8 or later",
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  return new ConnectError("internal", `The process could not be started: ${String(reason)}`);
}

function noInput(): ConnectError {
  return new ConnectError("failed_precondition", "The process was started without input; start it with stdin: true");
}

function notFound(selector: ProcessSelector): ConnectError {
  const name = "pid" in selector ? `pid ${selector.pid}` : `tag ${selector.tag}`;
  return new ConnectError("not_found", `process with ${name} not found`);
}
