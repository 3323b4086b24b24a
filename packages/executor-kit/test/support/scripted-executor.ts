import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { CodeBlock, ComponentModel, ExecutorCapabilities } from "@fenced/core";
import {
  BaseCodeExecutor,
  DirectoryFiles,
  type Backend,
  type Place,
  type BaseExecutorOptions,
  type BlockOutcome,
  type BlockRun,
  type Sink,
} from "@fenced/executor-kit";

/** A block that prints this text. */
export const say = (code: string): CodeBlock => ({ language: "say", code });

/** A block that waits until it is ended. */
export const wait = (code: string): CodeBlock => ({ language: "wait", code });

/** What a test's executor does. */
export interface Script {
  stateful?: boolean;
  open?: (signal: AbortSignal) => Promise<void>;
  close?: () => Promise<void>;
  stopping?: () => void;
  resetFails?: boolean;
  hostFunctions?: readonly string[];
  run?: (run: BlockRun, sink: Sink) => Promise<BlockOutcome>;
  runProgram?: Place["runProgram"];
  watch?: Place["watch"];
  /** The places outlive this program, with their runs. */
  runs?: NonNullable<Place["runs"]>;
  lostState?: string;
}

/**
 * A whole executor in this process. Its language `say` prints the block's text; `wait` waits until it is ended;
 * `fail` fails.
 */
export class ScriptedExecutor extends BaseCodeExecutor {
  readonly calls: string[] = [];
  running = 0;
  mostAtOnce = 0;
  readonly #script: Script;

  protected readonly offered: ExecutorCapabilities;

  constructor(script: Script = {}, options: BaseExecutorOptions = {}) {
    super(options);
    this.#script = script;
    this.offered = {
      languages: ["say", "wait", "fail"],
      stateful: script.stateful ?? false,
      displays: false,
      functions: [],
      hostFunctions: script.hostFunctions ?? [],
      stdin: false,
      isolation: "none",
      processes: script.runProgram !== undefined,
      ...(script.runs && { keepAlive: true, keepsRuns: true }),
    };
  }

  dumpComponent(): ComponentModel {
    return { provider: "test:ScriptedExecutor", componentType: "code_executor", version: 1, config: {} };
  }

  protected openBackend(): Backend {
    const close = async (): Promise<void> => {
      this.calls.push("close");
      await this.#script.close?.();
    };
    return { open: ({ signal }) => this.#openPlace(signal), close };
  }

  async #openPlace(signal: AbortSignal): Promise<Place> {
    this.calls.push("open");
    await this.#script.open?.(signal);
    return {
      facts: { ...(this.#script.lostState !== undefined && { lostState: this.#script.lostState }) },
      ...(this.#script.runs && { runs: this.#script.runs }),
      files: new DirectoryFiles("."),
      ...(this.#script.stopping && { stopping: this.#script.stopping }),
      run: (run, sink) => this.#run(run, sink),
      ...(this.#script.runProgram && { runProgram: this.#script.runProgram }),
      ...(this.#script.watch && { watch: this.#script.watch }),
      reset: async () => {
        this.calls.push("reset");
        await sleep(1);
        if (this.#script.resetFails === true) throw new Error("cannot reset");
      },
      end: () => Promise.resolve(),
    };
  }

  async #run(run: BlockRun, sink: Sink): Promise<BlockOutcome> {
    this.running += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.running);
    try {
      return await (this.#script.run ?? speak)(run, sink);
    } finally {
      this.running -= 1;
      this.calls.push(`end ${run.code}`);
    }
  }
}

async function speak({ language, code }: BlockRun, sink: Sink): Promise<BlockOutcome> {
  await sink.write({ type: "stdout", data: code });
  if (language === "wait") await aborted(sink.signal);
  await sleep(1);
  return { exitCode: language === "fail" ? 3 : 0 };
}

/** Resolves a moment after the signal, since killing takes time. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
  await sleep(20);
}
