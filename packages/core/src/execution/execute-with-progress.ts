import * as z from "zod";
import {
  checkOptions,
  optionsSchema,
  type OptionSchemas,
  callbackOption,
  codeExecutorOption,
  executeOptionSchemas,
  millisecondsOption,
  signalOption,
  wholeNumberOption,
} from "../options/check-options.ts";
import type { SubmittedRun } from "../runs/submitted-run.ts";
import { TerminalTail } from "../text/terminal-lines.ts";
import type { CodeBlock } from "./code-block.ts";
import type { CodeExecutor } from "./code-executor.ts";
import type { CodeResult } from "./code-result.ts";
import type { ExecuteOptions } from "./execute-options.ts";
import type { ExecutionEvent } from "./execution-event.ts";

/** How progress is reported. */
export interface ProgressReports {
  /**
   * Receives what was printed since the last call, as a terminal would show it: only the last state of a progress bar, and no
   * escape sequences. What is printed shortly before the end is only in the result.
   */
  readonly onProgress: (text: string) => void;
  /** Minimum interval between two calls of `onProgress` in milliseconds. Default: 250. */
  readonly intervalMs?: number | undefined;
  /**
   * Maximum number of characters that one call of `onProgress` receives; longer output is cut to its end, after `…`.
   * Default: 4,000.
   */
  readonly maxCharacters?: number | undefined;
  /** Pass all output so far to each call, not only what is new. Default: false. */
  readonly cumulative?: boolean | undefined;
}

/** Options of `executeWithProgress`. */
export interface ProgressOptions extends ExecuteOptions, ProgressReports {}

/** Options of `followRun`. */
export interface FollowOptions extends ProgressReports {
  /** Ends the following, which then rejects with its reason; the run goes on. */
  readonly signal?: AbortSignal | undefined;
}

const reportOptions: OptionSchemas<ProgressReports> = {
  onProgress: callbackOption<(text: string) => void>(),
  intervalMs: millisecondsOption.exactOptional(),
  maxCharacters: wholeNumberOption({ from: 0 }).exactOptional(),
  cumulative: z.boolean().exactOptional(),
};

interface ProgressArguments extends ProgressOptions {
  readonly executor: CodeExecutor;
}

const progressArguments = optionsSchema({
  ...executeOptionSchemas,
  ...reportOptions,
  executor: codeExecutorOption,
} satisfies OptionSchemas<ProgressArguments>);

const followOptions: z.ZodType<FollowOptions> = optionsSchema({
  ...reportOptions,
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<FollowOptions>);

/**
 * Runs blocks as `executeCodeBlocks` does, and passes on what they print in portions that are limited in number and
 * size. For consumers that cannot exert backpressure: a program that prints endlessly does not fill their memory.
 *
 * @throws InvalidInputError if an option is unknown or wrong; and as `CodeExecutor.executeCodeBlocks` does.
 */
export async function executeWithProgress(
  executor: CodeExecutor,
  blocks: readonly CodeBlock[],
  progressOptions: ProgressOptions,
): Promise<CodeResult> {
  const checked = checkOptions(progressArguments, { ...progressOptions, executor }, "executeWithProgress");
  const { executor: _, onProgress, intervalMs, maxCharacters, cumulative, ...options } = checked;
  const portions = new Portions({ onProgress, intervalMs, maxCharacters, cumulative });
  return portions.follow(executor.streamCodeBlocks(blocks, options));
}

/**
 * Waits for a submitted run, and passes on what it prints, from the beginning, as `executeWithProgress` does. Stopping the
 * wait does not end the run.
 *
 * @throws what `SubmittedRun.result` throws; InvalidInputError if an option is unknown or wrong; the reason of
 * `options.signal` once it is aborted.
 */
export async function followRun(run: SubmittedRun, options: FollowOptions): Promise<CodeResult> {
  const { signal, ...reports } = checkOptions(followOptions, options, "followRun");
  return new Portions(reports).follow(executionEvents(run, signal));
}

async function* executionEvents(
  run: SubmittedRun,
  signal: AbortSignal | undefined,
): AsyncGenerator<ExecutionEvent, void, void> {
  for await (const { event } of run.events({ signal })) if (event.type !== "gap") yield event;
}

class Portions {
  readonly #report: (text: string) => void;
  readonly #terminal: TerminalTail;
  readonly #intervalMs: number;
  readonly #cumulative: boolean;
  #timer: NodeJS.Timeout | undefined;
  #reportedAt = -Infinity;
  /** The text of the last call if calls are cumulative; otherwise empty. */
  #last = "";

  constructor({ onProgress, intervalMs = 250, maxCharacters = 4000, cumulative = false }: ProgressReports) {
    this.#report = onProgress;
    this.#terminal = new TerminalTail(maxCharacters);
    this.#intervalMs = intervalMs;
    this.#cumulative = cumulative;
  }

  /** Reports what a run prints, up to its result. */
  async follow(events: AsyncIterable<ExecutionEvent>): Promise<CodeResult> {
    try {
      for await (const event of events) {
        if (event.type === "stdout" || event.type === "stderr") this.#add(event.text);
        if (event.type === "result") return event.result;
      }
    } finally {
      clearTimeout(this.#timer);
    }
    throw new TypeError(
      "The executor's stream ended without a result. This is a bug in the executor: report it to its authors.",
    );
  }

  #add(text: string): void {
    this.#terminal.write(text);
    const wait = this.#reportedAt + this.#intervalMs - performance.now();
    this.#timer ??= setTimeout(() => this.#flush(), Math.max(0, wait));
  }

  #flush(): void {
    this.#timer = undefined;
    const shown = this.#cumulative ? this.#terminal.toString() : this.#terminal.take();
    // Colors and cursor movements alone show nothing.
    if (shown === this.#last) return;
    if (this.#cumulative) this.#last = shown;
    this.#reportedAt = performance.now();
    this.#report(shown);
  }
}
