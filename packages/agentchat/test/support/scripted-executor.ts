import { setTimeout as delay } from "node:timers/promises";
import {
  type CodeBlock,
  type CodeExecutor,
  type CodeResult,
  type ComponentModel,
  type ExecuteOptions,
  type ExecutionEvent,
  type ExecutorCapabilities,
  type SubmitOptions,
  type SubmittedRun,
  SubmittedRuns,
  type WorkspaceFiles,
} from "@fenced/core";

export function codeResult(fields: Partial<CodeResult> = {}): CodeResult {
  const { exitCode = 0, output = "", timedOut = false, truncated = false } = fields;
  const block = { exitCode, output, stdout: output, stderr: "", durationMs: 5, timedOut, truncated };
  return {
    exitCode,
    output,
    stdout: output,
    stderr: "",
    displays: [],
    timedOut,
    truncated,
    stateLost: false,
    durationMs: 5,
    blocks: [block],
    ...fields,
  };
}

type Step = CodeResult | Error | "hang";

/** An executor that answers from a list and records what it was given. `"hang"` runs until it is aborted. */
export class ScriptedExecutor implements CodeExecutor {
  readonly given: (readonly CodeBlock[])[] = [];
  started = 0;
  stopped = 0;
  running = 0;
  /** What each run prints before its result, to stdout and stderr in turn. */
  live: readonly string[] = [];
  onRun: (() => void) | undefined;
  readonly #submitted = new SubmittedRuns({ stream: (blocks, options) => this.streamCodeBlocks(blocks, options) });
  readonly #steps: Step[];
  readonly #languages: readonly string[];

  constructor(steps: readonly Step[] = [], { languages = ["python", "sh"] }: { languages?: readonly string[] } = {}) {
    this.#steps = [...steps];
    this.#languages = languages;
  }

  static fromConfig(): ScriptedExecutor {
    return new ScriptedExecutor();
  }

  /** As with a real executor, the languages are known only after the start. */
  get capabilities(): ExecutorCapabilities {
    const languages = this.started > 0 ? this.#languages : [];
    return {
      languages,
      stateful: false,
      displays: false,
      functions: [],
      hostFunctions: [],
      stdin: false,
      isolation: "none",
    };
  }

  get files(): WorkspaceFiles {
    throw new Error("The scripted executor has no files.");
  }

  async start(): Promise<void> {
    this.started++;
  }

  async stop(): Promise<void> {
    this.stopped++;
  }

  async restart(): Promise<void> {}

  async executeCodeBlocks(blocks: readonly CodeBlock[], { signal }: ExecuteOptions = {}): Promise<CodeResult> {
    signal?.throwIfAborted();
    this.given.push(blocks);
    const step = this.#steps.shift() ?? codeResult({ output: "ok\n" });
    if (step instanceof Error) throw step;
    if (step !== "hang") return step;
    this.running++;
    await new Promise<void>((resolve) => {
      signal?.addEventListener("abort", () => resolve(), { once: true });
      this.onRun?.();
    });
    // Killing takes a moment; the call rejects only after it.
    await delay(30);
    this.running--;
    throw signal?.reason;
  }

  async *streamCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): AsyncGenerator<ExecutionEvent> {
    for (const [index, text] of this.live.entries()) {
      yield { type: index % 2 === 0 ? "stdout" : "stderr", index: 0, text };
    }
    yield { type: "result", result: await this.executeCodeBlocks(blocks, options) };
  }

  async submit(blocks: readonly CodeBlock[], options?: SubmitOptions): Promise<SubmittedRun> {
    return this.#submitted.submit(blocks, options);
  }

  run(id: string): SubmittedRun {
    return this.#submitted.run(id);
  }

  runs(): SubmittedRun[] {
    return this.#submitted.runs();
  }

  formatFunctionsForPrompt(): string {
    return "";
  }

  dumpComponent(): ComponentModel {
    return {
      provider: "@fenced/scripted:ScriptedExecutor",
      componentType: "code_executor",
      version: 1,
      config: {},
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
