import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import {
  killProcesses,
  processorTime,
  type BlockOutcome,
  type BlockRun,
  type Sink,
  WriteAhead,
  writeAll,
} from "@fenced/executor-kit";
import type { RichPiece } from "@fenced/executor-kit/displays";
import * as z from "zod";
import { blockPrograms, type PythonPrograms } from "../child/child-program.ts";
import { FileRequests, type Answer } from "../files/file-requests.ts";
import { workspacePath } from "../files/tree-access.ts";
import { Tree } from "../files/tree.ts";
import { CallConnections } from "./call-connections.ts";
import { FrameChannel, frameType, ProtocolError, unpack, type Frame } from "./frames.ts";
import { watchMemory } from "./memory-watch.ts";
import { forgetSnapshot, openSnapshot } from "./snapshot.ts";
import { startJavaScript, startPython, type StartedProcess } from "./start-process.ts";

/** Memory that the process may use besides the interpreter's: Node, the interpreter's code, and pending output. */
const processBytes = 536_870_912;
const startTakesMs = 60_000;
/** Where Python finds the modules of functions. */
export const pythonFunctions = "/home/pyodide/functions";
const killed = 137;
/** No process has this mark: the session's own mark would also match its other interpreter. */
const noMark = { name: "FENCED_INTERPRETER", value: "none" };

const end = z.object({ exitCode: z.int().min(0).max(255), over: z.literal(true).exactOptional() });

/** Its bytes are displays; see `DisplayMessages` of the kit. */
const isDisplay = z.object({ op: z.literal("display") });

/** The kind of an interpreter: for Python, or for JavaScript and TypeScript. */
export type Engine = "Python" | "JavaScript";

/** Options of an interpreter. */
export interface InterpreterOptions {
  readonly engine: Engine;
  /** What a Python interpreter has loaded when it starts. Default: what runs blocks. */
  readonly programs?: PythonPrograms | undefined;
  readonly memoryBytes: number;
  /** The name of the functions' module. */
  readonly functionsModule: string;
  readonly cacheDirectory: string | undefined;
  /** Whether its process is inside an OS sandbox as well. */
  readonly sandboxed: boolean;
  readonly mark: { readonly name: string; readonly value: string };
  /** The session's files. */
  readonly tree: Tree;
  /** Limit for the files that only this interpreter sees, if the host keeps them. */
  readonly storageBytes: number;
  /** Receives connections from programs that call host functions. */
  readonly acceptCalls: ((connection: Duplex) => void) | undefined;
  /** Answers requests that only some interpreters may make; `undefined`: it is another kind of request. */
  readonly requests?: (fields: unknown, bytes: Uint8Array, signal: AbortSignal) => Promise<Answer | undefined>;
  /** Descriptor of the file with its packages. */
  readonly packages: number | undefined;
  /** Whether its code can install packages. */
  readonly installs?: boolean | undefined;
  /** Called when it ends while no block is running. */
  readonly onLost: () => void;
}

/** An interpreter in its own process. The code that runs in it can forge everything that comes from there. */
export class Interpreter {
  readonly #child: ChildProcess;
  readonly #pid: Promise<number | undefined>;
  readonly #channel: FrameChannel;
  readonly #requests: FileRequests;
  readonly #connections: CallConnections;
  readonly #options: InterpreterOptions;
  readonly #exited: Promise<unknown>;
  #ended = false;
  #busy = false;
  /** What the running block has used so far, while its process lives; `undefined` if that is not known. */
  #measure: () => number | undefined = () => undefined;

  private constructor({ child, channel, pid }: Started, options: InterpreterOptions) {
    this.#child = child;
    this.#pid = pid;
    this.#channel = channel;
    this.#requests =
      options.engine === "Python"
        ? new FileRequests(options.tree)
        : new FileRequests(options.tree, ownTree(options.storageBytes));
    this.#connections = new CallConnections(options.acceptCalls);
    this.#options = options;
    this.#exited = child.exitCode === null && child.signalCode === null ? once(child, "exit") : Promise.resolve();
    const noteEnd = (): void => {
      const idle = !this.#ended && !this.#busy;
      this.#ended = true;
      this.#connections.end();
      if (idle) options.onLost();
    };
    this.#exited.then(noteEnd, noteEnd);
  }

  /**
   * @param signal - cancels the start.
   * @throws BackendUnavailableError if it does not start.
   */
  static async start(options: InterpreterOptions, signal: AbortSignal): Promise<Interpreter> {
    const first = await startOnce(options, signal);
    if (first !== "bad snapshot") return new Interpreter(first, options);
    forgetSnapshot(options.programs ?? blockPrograms, options.cacheDirectory);
    const second = await startOnce(options, signal);
    if (second !== "bad snapshot") return new Interpreter(second, options);
    throw notStarted(options.engine);
  }

  /** True if the process can no longer run blocks. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Runs a block; `stateLost` in the outcome says that the interpreter ended with it. */
  async run(block: BlockRun, sink: Sink<RichPiece>): Promise<BlockOutcome> {
    const { signal } = sink;
    const kill = (): void => this.#endProcess();
    this.#measure = await this.#startMeasuring();
    signal.addEventListener("abort", kill, { once: true });
    if (signal.aborted) kill();
    this.#busy = true;
    try {
      const ended = await this.#runToEnd(block, sink);
      const processorMs = this.#measure();
      const outcome = {
        ...ended,
        endedAt: performance.now(),
        ...(processorMs !== undefined && { usage: { processorMs } }),
      };
      return signal.aborted ? { ...outcome, stateLost: true } : outcome;
    } finally {
      signal.removeEventListener("abort", kill);
      // The block may have ended just before: the next one must not run in an interpreter that is about to die.
      if (signal.aborted) await this.kill();
      this.#busy = false;
    }
  }

  /** Ends the process, waits for its end, and closes the files it had open. */
  async kill(): Promise<void> {
    this.#ended = true;
    this.#endProcess();
    await this.#exited;
    this.#channel.destroy();
    this.#requests.end();
  }

  async #runToEnd(block: BlockRun, sink: Sink<RichPiece>): Promise<BlockOutcome> {
    const finished = new AbortController();
    const watch = this.#watchMemory(finished.signal);
    try {
      await this.#channel.send(frameType.run, {
        code: block.code,
        file: block.filename === undefined ? "" : `${workspacePath}/${block.filename}`,
        stdin: block.stdin ?? "",
        env: block.env,
        language: block.language,
        functions: this.#modulesOf(block),
      });
      const outcome = await this.#follow(sink);
      if (outcome) return outcome;
    } finally {
      finished.abort();
      this.#connections.end();
    }
    await this.kill();
    if (await watch) {
      void sink.write({ type: "stderr", data: Buffer.from(tooMuchMemory(this.#options.memoryBytes)) });
    }
    return { exitCode: killed, stateLost: true };
  }

  /** Where a Python block finds host functions; `null` if it has none. */
  #modulesOf({ hostCalls }: BlockRun): object | null {
    if (!hostCalls) return null;
    const root = pythonFunctions;
    const directory = hostCalls.variant === undefined ? root : `${root}/${hostCalls.variant}`;
    const { functionsModule } = this.#options;
    return { root, directory, names: [functionsModule, `_${functionsModule}_host`] };
  }

  /**
   * Passes on what the process sends until the block ends. Returns `undefined` if the process ended, or sent something
   * that only forged frames contain.
   */
  async #follow(sink: Sink<RichPiece>): Promise<BlockOutcome | undefined> {
    const output = new WriteAhead(sink);
    try {
      for (let frame = await this.#channel.next(); frame; frame = await this.#channel.next()) {
        const { type, body: data } = frame;
        if (type === frameType.stdout) await output.write({ type: "stdout", data }, data.length);
        else if (type === frameType.stderr) await output.write({ type: "stderr", data }, data.length);
        else if (type === frameType.request) await this.#answer(frame, sink);
        else if (type === frameType.done) return await this.#outcome(frame);
        else return undefined;
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
    }
    return undefined;
  }

  async #answer(frame: Frame, sink: Sink<RichPiece>): Promise<void> {
    const asked = unpack(frame.body);
    if (isDisplay.safeParse(asked.fields).success) {
      await writeAll(sink, [{ type: "rich", data: asked.bytes }]);
      return this.#channel.send(frameType.answer, {});
    }
    const { fields, bytes } =
      (await this.#connections.answer(asked.fields, asked.bytes)) ??
      (await this.#options.requests?.(asked.fields, asked.bytes, sink.signal)) ??
      this.#requests.answer(asked.fields, asked.bytes);
    await this.#channel.send(frameType.answer, fields, bytes);
  }

  async #outcome(frame: Frame): Promise<BlockOutcome> {
    const said = end.safeParse(unpack(frame.body).fields);
    if (!said.success) throw new ProtocolError("The end of a block without its exit code.");
    const { exitCode, over } = said.data;
    if (over !== true) return { exitCode };
    await this.kill();
    return { exitCode, stateLost: true };
  }

  async #watchMemory(signal: AbortSignal): Promise<boolean> {
    const pid = await this.#pid;
    if (pid === undefined) return false;
    const over = await watchMemory(pid, this.#options.memoryBytes + processBytes, signal);
    if (over) this.#endProcess();
    return over;
  }

  /** What a process has used is known only until its end. */
  #endProcess(): void {
    const used = this.#measure();
    this.#measure = () => used;
    this.#child.kill("SIGKILL");
  }

  async #startMeasuring(): Promise<() => number | undefined> {
    const pid = await this.#pid;
    const before = pid === undefined ? undefined : processorTime(pid);
    if (pid === undefined || before === undefined) return () => undefined;
    return () => {
      const now = processorTime(pid);
      return now === undefined ? undefined : now - before;
    };
  }
}

/** A process that is ready for its first block. */
interface Started extends Pick<StartedProcess, "child" | "pid"> {
  readonly channel: FrameChannel;
}

/** The interpreter's own tree; the session's files are mounted in the last of these directories. */
function ownTree(maxBytes: number): Tree {
  const tree = new Tree(maxBytes);
  for (const name of ["home", "tmp", "workspace"]) tree.makeDirectory(name);
  return tree;
}

async function startEngine(options: InterpreterOptions, signal: AbortSignal): Promise<StartedProcess> {
  signal.throwIfAborted();
  if (options.engine === "JavaScript") return startJavaScript(options);
  const snapshot = await openSnapshot(options.programs ?? blockPrograms, options.cacheDirectory);
  signal.throwIfAborted();
  return startPython(options, { snapshot, packages: options.packages, installs: options.installs === true });
}

async function startOnce(options: InterpreterOptions, signal: AbortSignal): Promise<Started | "bad snapshot"> {
  const { child, socket, pid } = await startEngine(options, signal);
  const channel = new FrameChannel(socket);
  // Until bubblewrap is set up, the processes that it starts outlive it.
  const kill = (): void => {
    if (!options.sandboxed || child.pid === undefined) child.kill("SIGKILL");
    else void killProcesses({ root: child.pid, mark: noMark });
  };
  const timer = setTimeout(kill, startTakesMs);
  signal.addEventListener("abort", kill, { once: true });
  if (signal.aborted) kill();
  const exited = once(child, "exit");
  exited.catch(() => {});
  try {
    const frame = await channel.next();
    if (frame?.type === frameType.ready) return { child, channel, pid };
    kill();
    channel.destroy();
    if (child.pid !== undefined) await exited;
    signal.throwIfAborted();
    // The exit code cannot report this: bubblewrap, which passes it on, may be killed first.
    if (frame?.type === frameType.badSnapshot) return "bad snapshot";
    throw notStarted(options.engine);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", kill);
  }
}

function notStarted(engine: Engine): BackendUnavailableError {
  return new BackendUnavailableError(`The ${engine} interpreter did not start`, {
    remedy:
      "Use Node 20.19 or later, and make sure there is enough memory: raise `memoryBytes`, or end other programs.",
  });
}

function tooMuchMemory(memoryBytes: number): string {
  const size = Math.floor((memoryBytes + processBytes) / 1_048_576);
  return `\nThe program was ended: its process used more than ${size} MiB of memory. Process less data at a time.\n`;
}
