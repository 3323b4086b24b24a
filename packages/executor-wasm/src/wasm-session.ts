import { ExecutorStoppedError } from "@fenced/core";
import {
  Leash,
  RemoteFiles,
  timeIsUp,
  type BackendSession,
  type BlockEvent,
  type BlockOutcome,
  type BlockRun,
} from "@fenced/executor-kit";
import { TreeAccess } from "./files/tree-access.ts";
import { Tree } from "./files/tree.ts";
import { Interpreter } from "./interpreter/interpreter.ts";

/** Options of a session. */
export interface WasmSessionOptions {
  /** Identifies the session; globally unique. */
  readonly id: string;
  readonly memoryBytes: number;
  readonly storageBytes: number;
  readonly cacheDirectory: string | undefined;
  /** Called when variables of earlier blocks are gone. `reported`: a block's outcome says so. */
  readonly onLost: (reason: string, options: { readonly reported: boolean }) => void;
  /** Requests a new set-up of the functions: before the next call, or now. */
  readonly functions: { readonly forget: () => void; readonly setUpAgain: () => Promise<void> };
}

/** A file system in this process's memory, and an interpreter in a process of its own. */
export class WasmSession implements BackendSession {
  readonly files: RemoteFiles;
  readonly #options: WasmSessionOptions;
  readonly #tree: Tree;
  readonly #mark: { readonly name: string; readonly value: string };
  readonly #leash: Leash;
  #interpreter: Interpreter | undefined;

  private constructor(options: WasmSessionOptions) {
    this.#options = options;
    this.#tree = new Tree(options.storageBytes);
    this.files = new RemoteFiles(new TreeAccess(this.#tree));
    this.#mark = { name: "FENCED_SESSION", value: options.id };
    this.#leash = new Leash({ mark: this.#mark, remove: [] });
  }

  static async open(options: WasmSessionOptions, signal: AbortSignal): Promise<WasmSession> {
    const session = new WasmSession(options);
    try {
      await session.#start(signal);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  functionPlaces(): { readonly python: string } {
    return { python: "/home/pyodide/functions" };
  }

  async repair(signal: AbortSignal): Promise<void> {
    if (this.#interpreter?.ended !== true) return;
    await this.#start(signal);
    this.#options.functions.forget();
  }

  async *run(block: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    if (this.#interpreter?.ended === true) {
      // An earlier block ended the interpreter, but succeeded.
      await this.#start(block.signal);
      if (block.setup !== true) await this.#options.functions.setUpAgain();
    }
    if (block.filename !== undefined) await this.files.write(block.filename, block.code);
    const interpreter = this.#interpreter ?? (await this.#start(block.signal));
    const outcome = yield* interpreter.run(block);
    if (outcome.stateLost === true) this.#tellLoss(block.signal);
    return outcome;
  }

  async reset(signal: AbortSignal): Promise<void> {
    await this.#start(signal);
  }

  async close(): Promise<void> {
    await this.#interpreter?.kill();
    await this.#leash.release();
  }

  /** Starts an interpreter that replaces the last one. */
  async #start(signal: AbortSignal): Promise<Interpreter> {
    await this.#interpreter?.kill();
    this.#interpreter = await Interpreter.start(
      {
        ...this.#options,
        mark: this.#mark,
        tree: this.#tree,
        onLost: () =>
          this.#options.onLost("The Python interpreter ended; its variables are gone.", { reported: false }),
      },
      signal,
    );
    return this.#interpreter;
  }

  #tellLoss({ aborted, reason }: AbortSignal): void {
    // Stopping and restarting lose the state on purpose.
    if (aborted && ExecutorStoppedError.isInstance(reason)) return;
    const text = aborted
      ? "The Python interpreter was ended with the block that ran in it; its variables are gone."
      : "The Python interpreter ended while it ran a block; its variables are gone.";
    // Nobody learns how an aborted call ended.
    this.#options.onLost(text, { reported: !aborted || reason === timeIsUp });
  }
}
