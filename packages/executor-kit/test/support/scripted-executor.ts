import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { CodeBlock, ComponentModel, ExecutorCapabilities, WorkspaceFiles } from "@fenced/core";
import {
  BaseCodeExecutor,
  DirectoryFiles,
  type BaseExecutorOptions,
  type BlockEvent,
  type BlockOutcome,
  type BlockRun,
} from "@fenced/executor-kit";

/** A block that puts out this text. */
export const say = (code: string): CodeBlock => ({ language: "say", code });

/** A block that waits until it is ended. */
export const wait = (code: string): CodeBlock => ({ language: "wait", code });

/** What an executor of the tests does, and what was asked of it. */
export interface Script {
  stateful?: boolean;
  open?: (signal: AbortSignal) => Promise<void>;
  close?: () => Promise<void>;
  run?: (run: BlockRun) => AsyncGenerator<BlockEvent, BlockOutcome, void>;
}

/**
 * A whole executor in this process. Its language `say` puts out the block's text; `wait` waits until it is ended;
 * `fail` fails.
 */
export class ScriptedExecutor extends BaseCodeExecutor {
  readonly calls: string[] = [];
  running = 0;
  mostAtOnce = 0;
  readonly #script: Script;

  constructor(script: Script = {}, options: BaseExecutorOptions = {}) {
    super(options);
    this.#script = script;
  }

  get capabilities(): ExecutorCapabilities {
    return {
      languages: ["say", "wait", "fail"],
      stateful: this.#script.stateful ?? false,
      displays: false,
      functions: [],
      stdin: false,
      isolation: "none",
    };
  }

  dumpComponent(): ComponentModel {
    return { provider: "test:ScriptedExecutor", componentType: "code_executor", version: 1, config: {} };
  }

  protected async openSession(signal: AbortSignal): Promise<void> {
    this.calls.push("open");
    await this.#script.open?.(signal);
  }

  protected async closeSession(): Promise<void> {
    this.calls.push("close");
    await this.#script.close?.();
  }

  protected async resetSession(): Promise<void> {
    this.calls.push("reset");
    await sleep(1);
  }

  protected sessionFiles(): WorkspaceFiles {
    return new DirectoryFiles(".");
  }

  protected async *runBlock(run: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    this.running += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.running);
    try {
      return yield* (this.#script.run ?? speak)(run);
    } finally {
      this.running -= 1;
      this.calls.push(`end ${run.code}`);
    }
  }
}

async function* speak({ language, code, signal }: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
  yield { type: "stdout", data: code };
  if (language === "wait") await aborted(signal);
  await sleep(1);
  return { exitCode: language === "fail" ? 3 : 0 };
}

/** Resolves a moment after the signal, as killing takes its time. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
  await sleep(20);
}
