import type { Duplex } from "node:stream";
import { ExecutorStoppedError } from "@fenced/core";
import {
  Leash,
  RemoteFiles,
  timeIsUp,
  type BackendSession,
  type BlockOutcome,
  type BlockRun,
  type PlaceFacts,
  type Sink,
} from "@fenced/executor-kit";
import { DisplayBoard, RichEvents } from "@fenced/executor-kit/displays";
import { TreeAccess, workspacePath } from "./files/tree-access.ts";
import { Tree } from "./files/tree.ts";
import { hostCallsPath } from "./interpreter/call-connections.ts";
import { Interpreter, pythonFunctions, type Engine } from "./interpreter/interpreter.ts";
import type { WasmPackages } from "./packages/package-options.ts";
import { SessionPackages } from "./packages/session-packages.ts";
import type { WasmLanguage } from "./wasm-executor-options.ts";

/** Options of a session; see `WasmExecutorOptions`. */
export interface WasmSessionOptions {
  /** Identifies the session; globally unique. */
  readonly id: string;
  readonly languages: readonly WasmLanguage[];
  readonly memoryBytes: number;
  readonly functionsModule: string;
  readonly storageBytes: number;
  readonly cacheDirectory: string | undefined;
  readonly packages: WasmPackages | undefined;
  readonly outputDir: string | undefined;
  /** Whether interpreters are inside an OS sandbox as well. */
  readonly sandboxed: boolean;
  /** Called when variables of earlier blocks are gone. `reported`: a block's outcome says so. */
  readonly onLost: (reason: string, options: { readonly reported: boolean }) => void;
  /** Set the functions up again: before the next call, or now. */
  readonly functions: { readonly forget: () => void; readonly setUpAgain: () => Promise<void> };
}

/** A file system in this process's memory, and interpreters in their own processes. */
export class WasmSession implements BackendSession {
  readonly files: RemoteFiles;
  readonly facts: PlaceFacts = { workspacePath };
  readonly #options: WasmSessionOptions;
  readonly #tree: Tree;
  readonly #mark: { readonly name: string; readonly value: string };
  readonly #leash: Leash;
  readonly #displays: DisplayBoard;
  readonly #packages: SessionPackages | undefined;
  readonly #interpreters = new Map<Engine, Interpreter>();
  #acceptCalls: (connection: Duplex) => void = (connection) => connection.destroy();

  private constructor(options: WasmSessionOptions, displays: DisplayBoard) {
    this.#options = options;
    this.#displays = displays;
    this.#tree = new Tree(options.storageBytes);
    this.files = new RemoteFiles(new TreeAccess(this.#tree));
    this.#mark = { name: "FENCED_SESSION", value: options.id };
    this.#leash = new Leash({ mark: this.#mark, remove: [] });
    const { packages } = options;
    this.#packages = packages && new SessionPackages({ ...options, packages, mark: this.#mark });
  }

  static async open(options: WasmSessionOptions, signal: AbortSignal): Promise<WasmSession> {
    const session = new WasmSession(options, await DisplayBoard.open(options.outputDir, undefined));
    try {
      await session.#packages?.open(signal);
      await session.#startFirst(signal);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  functionPlaces(): { readonly python: string; readonly javascript: string } {
    return { python: pythonFunctions, javascript: "/" };
  }

  openHostCalls(accept: (connection: Duplex) => void): Promise<string> {
    this.#acceptCalls = accept;
    return Promise.resolve(`unix:${hostCallsPath}`);
  }

  repair(signal: AbortSignal): Promise<void> | undefined {
    if (![...this.#interpreters.values()].some(({ ended }) => ended)) return undefined;
    return this.#replaceEnded(signal).then(() => this.#options.functions.forget());
  }

  async run(block: BlockRun, sink: Sink): Promise<BlockOutcome> {
    const { signal } = sink;
    // An earlier block may have ended its interpreter although it succeeded.
    if ((await this.#replaceEnded(signal)) && block.setup !== true) await this.#options.functions.setUpAgain();
    if (block.filename !== undefined) await this.files.write(block.filename, block.code);
    const engine = engineOf(block.language);
    const interpreter = this.#interpreters.get(engine) ?? (await this.#start(engine, signal));
    const displays = this.#displays.forBlock();
    const outcome = await new RichEvents(displays, sink).of((pieces) => interpreter.run(block, pieces));
    if (outcome.stateLost === true) this.#tellLoss(engine, signal);
    return displays.truncated ? { ...outcome, truncated: true } : outcome;
  }

  async reset(signal: AbortSignal): Promise<void> {
    await this.#killAll();
    await this.#startFirst(signal);
  }

  async close(): Promise<void> {
    await this.#killAll();
    this.#packages?.close();
    await this.#displays.close();
    await this.#leash.release();
  }

  /** Starts the interpreter that takes longest; the other one starts with the first block in its language. */
  async #startFirst(signal: AbortSignal): Promise<void> {
    await this.#start(engineOf(this.#options.languages.includes("python") ? "python" : "javascript"), signal);
  }

  /** Replaces interpreters that have ended; returns whether there were any. */
  async #replaceEnded(signal: AbortSignal): Promise<boolean> {
    const ended = [...this.#interpreters].filter(([, interpreter]) => interpreter.ended);
    for (const [engine] of ended) await this.#start(engine, signal);
    return ended.length > 0;
  }

  async #killAll(): Promise<void> {
    const all = [...this.#interpreters.values()];
    this.#interpreters.clear();
    await Promise.all(all.map((each) => each.kill()));
  }

  /** Starts an interpreter that replaces the last one of its kind. */
  async #start(engine: Engine, signal: AbortSignal): Promise<Interpreter> {
    await this.#interpreters.get(engine)?.kill();
    const reason = `The ${engine} interpreter ended; its variables are gone.`;
    const interpreter = await Interpreter.start(
      {
        ...this.#options,
        engine,
        mark: this.#mark,
        packages: this.#packages?.descriptor,
        installs: this.#options.packages?.installFromCode === true,
        requests: async (fields, _bytes, blockSignal) => this.#packages?.answer(fields, blockSignal),
        tree: this.#tree,
        acceptCalls: (connection) => this.#acceptCalls(connection),
        onLost: () => this.#options.onLost(reason, { reported: false }),
      },
      signal,
    );
    this.#interpreters.set(engine, interpreter);
    return interpreter;
  }

  #tellLoss(engine: Engine, { aborted, reason }: AbortSignal): void {
    // Stopping and restarting lose the state on purpose.
    if (aborted && ExecutorStoppedError.isInstance(reason)) return;
    const text = aborted
      ? `The ${engine} interpreter was ended with the block that ran in it; its variables are gone.`
      : `The ${engine} interpreter ended while it ran a block; its variables are gone.`;
    // Nobody learns how an aborted call ended.
    this.#options.onLost(text, { reported: !aborted || reason === timeIsUp });
  }
}

function engineOf(language: string): Engine {
  return language === "python" ? "Python" : "JavaScript";
}
