import type { Duplex } from "node:stream";
import { ExecutorStoppedError } from "@fenced/core";
import {
  type Backend,
  type BlockOutcome,
  type BlockRun,
  Leash,
  type Opening,
  type Place,
  PlaceGone,
  RemoteFiles,
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
export interface WasmOptions {
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
}

/**
 * A file system in this process's memory, and interpreters in their own processes. When one of them is lost, the next
 * place goes on with the other.
 */
export class WasmBackend implements Backend {
  readonly #options: WasmOptions;
  readonly #files: RemoteFiles;
  readonly #tree: Tree;
  readonly #mark: { readonly name: string; readonly value: string };
  readonly #leash: Leash;
  readonly #displays: DisplayBoard;
  readonly #packages: SessionPackages | undefined;
  readonly #interpreters = new Map<Engine, Interpreter>();
  #acceptCalls: (connection: Duplex) => void = (connection) => connection.destroy();
  /** Declares the current place lost. */
  #lose: (reason: Error) => void = () => {};

  private constructor(options: WasmOptions, displays: DisplayBoard) {
    this.#options = options;
    this.#displays = displays;
    this.#tree = new Tree(options.storageBytes);
    this.#files = new RemoteFiles(new TreeAccess(this.#tree));
    this.#mark = { name: "FENCED_SESSION", value: options.id };
    this.#leash = new Leash({ mark: this.#mark, remove: [] });
    const { packages } = options;
    this.#packages = packages && new SessionPackages({ ...options, packages, mark: this.#mark });
  }

  /** Prepares packages. */
  static async create(options: WasmOptions, signal: AbortSignal): Promise<WasmBackend> {
    const backend = new WasmBackend(options, await DisplayBoard.open(options.outputDir, undefined));
    try {
      await backend.#packages?.open(signal);
      return backend;
    } catch (error) {
      await backend.close();
      throw error;
    }
  }

  async open({ signal, isRestart }: Opening): Promise<Place> {
    if (isRestart) await this.#killAll();
    const ended = [...this.#interpreters].filter(([, interpreter]) => interpreter.ended);
    for (const [engine] of ended) await this.#start(engine, signal);
    // The one that takes longest; the other one starts with the first block in its language.
    const first = this.#options.languages.includes("python") ? "Python" : "JavaScript";
    if (this.#interpreters.size === 0) await this.#start(first, signal);
    const lost = new Promise<Error>((resolve) => {
      this.#lose = resolve;
    });
    return {
      facts: { workspacePath, filesStay: true },
      files: this.#files,
      lost,
      functionPlaces: () => ({ python: pythonFunctions, javascript: "/" }),
      openHostCalls: (accept) => {
        this.#acceptCalls = accept;
        return Promise.resolve(`unix:${hostCallsPath}`);
      },
      run: (block, sink) => this.#run(block, sink),
      end: ({ isReplaced }) => (isReplaced ? Promise.resolve() : this.#killAll()),
    };
  }

  async close(): Promise<void> {
    this.#packages?.close();
    await this.#displays.close();
    await this.#leash.release();
  }

  async #run(block: BlockRun, sink: Sink): Promise<BlockOutcome> {
    const { signal } = sink;
    const engine = engineOf(block.language);
    const interpreter = this.#interpreters.get(engine) ?? (await this.#start(engine, signal));
    // An earlier block may have ended it although it succeeded.
    if (interpreter.ended) throw new PlaceGone(whenIdle(engine));
    if (block.filename !== undefined) await this.#files.write(block.filename, block.code);
    const displays = this.#displays.forBlock();
    const outcome = await new RichEvents(displays, sink).of((pieces) => interpreter.run(block, pieces));
    if (outcome.stateLost === true) this.#tellLoss(engine, signal);
    return displays.truncated ? { ...outcome, truncated: true } : outcome;
  }

  async #killAll(): Promise<void> {
    const all = [...this.#interpreters.values()];
    this.#interpreters.clear();
    await Promise.all(all.map((each) => each.kill()));
  }

  /** Starts an interpreter that replaces the last one of its kind. */
  async #start(engine: Engine, signal: AbortSignal): Promise<Interpreter> {
    await this.#interpreters.get(engine)?.kill();
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
        onLost: () => this.#lose(new Error(whenIdle(engine))),
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
    this.#lose(new Error(text));
  }
}

function whenIdle(engine: Engine): string {
  return `The ${engine} interpreter ended; its variables are gone.`;
}

function engineOf(language: string): Engine {
  return language === "python" ? "Python" : "JavaScript";
}
