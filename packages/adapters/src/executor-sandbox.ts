import { posix } from "node:path";
import { text } from "node:stream/consumers";
import {
  BoundedOutput,
  ByteQueue,
  FileNotFoundError,
  processesOf,
  type CodeExecutor,
  type ExecutorProcesses,
  type ProcessOptions,
  type RunningProcess,
  type WritableProcess,
} from "@fenced/core";

/** What frameworks call the workspace, wherever it is. */
const virtualRoot = "/workspace";
/** The exit code of a command that was ended by its time limit, as `timeout` of coreutils has it. */
const timedOutCode = 124;

/** A command of a sandbox. */
export interface SandboxCommand {
  /** A command line for `/bin/sh`, or a program and its arguments. */
  readonly command: ProcessOptions["command"];
  /** Where it starts. Default: the workspace. */
  readonly cwd?: string | undefined;
  /** Environment variables; they override those of the sandbox. Default: none. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Milliseconds after which it is killed with everything that it has started. Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** Kills it with everything that it has started. */
  readonly signal?: AbortSignal | undefined;
}

/** A command that is started rather than run to its end. */
export interface StartedSandboxCommand extends SandboxCommand {
  /** Both of its outputs arrive in `stdout`, in order. Default: false. */
  readonly merged?: boolean | undefined;
  /** Runs it on a terminal of this size. Default: no terminal. */
  readonly pty?: ProcessOptions["pty"];
}

/** How a command ended. */
export interface SandboxCommandResult {
  readonly stdout: string;
  readonly stderr: string;
  /** 124 if its time limit was over. */
  readonly exitCode: number;
}

/** Settings of a sandbox. */
export interface SandboxSettings {
  /** Maximum bytes that `run` keeps of each output. Default: 1,048,576. */
  readonly maxOutputBytes?: number | undefined;
  /** When it will be ended, for who asks. Default: no limit. */
  readonly lifetimeMs?: number | undefined;
}

/** An executor as a sandbox in which a framework runs commands and reads and writes files. */
export class ExecutorSandbox {
  readonly id: string;
  readonly executor: CodeExecutor;
  readonly createdAt: Date = new Date();
  /** Milliseconds from then on after which it is ended. Absent: no limit. */
  readonly lifetimeMs: number | undefined;
  readonly #processes: ExecutorProcesses;
  readonly #maxOutputBytes: number;
  #env: Readonly<Record<string, string>> = {};

  /**
   * @param executor - a started one.
   * @throws InvalidInputError if it cannot start programs.
   */
  constructor(id: string, executor: CodeExecutor, { maxOutputBytes = 1_048_576, lifetimeMs }: SandboxSettings = {}) {
    this.id = id;
    this.executor = executor;
    this.#processes = processesOf(executor);
    this.#maxOutputBytes = maxOutputBytes;
    this.lifetimeMs = lifetimeMs;
  }

  /** Absolute path of the workspace, as programs see it. */
  get root(): string {
    return this.executor.workspacePath ?? virtualRoot;
  }

  /** The environment variables of all its commands. */
  get env(): Readonly<Record<string, string>> {
    return this.#env;
  }

  /** Sets environment variables of all commands that start from now on. */
  setEnv(variables: Readonly<Record<string, string>>): void {
    this.#env = { ...this.#env, ...variables };
  }

  /** Starts a command, whose input the caller writes and ends. */
  start({ command, cwd, env, merged, pty, timeoutMs, signal }: StartedSandboxCommand): Promise<WritableProcess> {
    const options = { ...this.#placed(cwd, env), command, merged, timeoutMs, signal };
    return pty ? this.#processes.start({ ...options, pty }) : this.#processes.start({ ...options, stdin: true });
  }

  /** Runs a command without input to its end. Handed-on pieces are in `stdout` and `stderr`, too. */
  async run(
    { command, cwd, env, timeoutMs, signal }: SandboxCommand,
    onOutput: { readonly stdout?: TextListener; readonly stderr?: TextListener } = {},
  ): Promise<SandboxCommandResult> {
    const started = await this.#processes.start({ ...this.#placed(cwd, env), command, timeoutMs, signal });
    const [stdout, stderr, { exitCode, timedOut }] = await Promise.all([
      BoundedOutput.read(heard(started.stdout, onOutput.stdout), this.#maxOutputBytes),
      BoundedOutput.read(heard(started.stderr, onOutput.stderr), this.#maxOutputBytes),
      started.wait(),
    ]);
    return { stdout, stderr, exitCode: timedOut === true ? timedOutCode : exitCode };
  }

  /** Starts a command that nobody waits for, whose output is dropped. It runs until it ends, or the sandbox does. */
  async runInBackground({ command, cwd, env, signal }: SandboxCommand): Promise<void> {
    const started: RunningProcess = await this.#processes.start({ ...this.#placed(cwd, env), command, signal });
    await Promise.all([started.stdout.cancel(), started.stderr.cancel()]);
    started.wait().catch(() => {});
  }

  /** Turns a path of the framework into one that `executor.files` knows: relative to the workspace, if it is in there. */
  fileAt(path: string): string {
    for (const root of [this.root, virtualRoot]) {
      if (path === root) return ".";
      if (path.startsWith(`${root}/`)) return path.slice(root.length + 1) || ".";
    }
    return path;
  }

  /** Turns a path of the framework into one that programs know. */
  pathOf(path: string): string {
    const inside = this.fileAt(path);
    return inside.startsWith("/") ? inside : posix.join(this.root, inside);
  }

  async readText(path: string): Promise<string> {
    return text(this.executor.files.readStream(this.fileAt(path)));
  }

  /** Reads a file from its beginning: at most so many bytes. */
  async readStart(path: string, maxBytes: number): Promise<Uint8Array> {
    const bytes = new ByteQueue();
    if (maxBytes === 0) return bytes.take();
    const stream = this.executor.files.readStream(this.fileAt(path), { end: maxBytes - 1 });
    for await (const piece of stream) bytes.add(piece);
    return bytes.take();
  }

  async exists(path: string): Promise<boolean> {
    return isFound(this.executor.files.stat(this.fileAt(path)));
  }

  /** Removes a file or a directory, if it is there. */
  async remove(path: string): Promise<void> {
    await isFound(this.executor.files.remove(this.fileAt(path)));
  }

  /** Where this host reaches a port of the sandbox's programs. */
  async url(port: number, protocol = "http"): Promise<string> {
    return `${protocol}://${await this.#processes.address(port)}`;
  }

  #placed(
    cwd: string | undefined,
    env: Readonly<Record<string, string>> | undefined,
  ): { readonly cwd?: string; readonly env: Readonly<Record<string, string>> } {
    return { ...(cwd === undefined ? {} : { cwd: this.pathOf(cwd) }), env: { ...this.#env, ...env } };
  }
}

/** Receives pieces of an output as text. */
export type TextListener = (piece: string) => void;

/** Hands pieces on as they are read. */
function heard(stream: ReadableStream<Uint8Array>, listener: TextListener | undefined): ReadableStream<Uint8Array> {
  if (listener === undefined) return stream;
  const decoder = new TextDecoder();
  return stream.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, controller) {
        const piece = decoder.decode(bytes, { stream: true });
        if (piece !== "") listener(piece);
        controller.enqueue(bytes);
      },
      flush() {
        const rest = decoder.decode();
        if (rest !== "") listener(rest);
      },
    }),
  );
}

async function isFound(looking: Promise<unknown>): Promise<boolean> {
  try {
    await looking;
    return true;
  } catch (error) {
    if (error instanceof FileNotFoundError) return false;
    throw error;
  }
}
