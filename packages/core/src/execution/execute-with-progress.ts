import {
  checkOptions,
  optionsSchema,
  type OptionSchemas,
  callbackOption,
  codeExecutorOption,
  executeOptionSchemas,
  millisecondsOption,
  wholeNumberOption,
} from "../options/check-options.ts";
import type { CodeBlock } from "./code-block.ts";
import type { CodeExecutor } from "./code-executor.ts";
import type { CodeResult } from "./code-result.ts";
import type { ExecuteOptions } from "./execute-options.ts";

/** Options of `executeWithProgress`. */
export interface ProgressOptions extends ExecuteOptions {
  /** Receives what was printed since the last call. What is printed shortly before the end is only in the result. */
  readonly onProgress: (text: string) => void;
  /** Minimum interval between two calls of `onProgress` in milliseconds. Default: 250. */
  readonly intervalMs?: number | undefined;
  /**
   * Maximum number of characters that one call of `onProgress` receives; longer output is cut to its end, after `…`.
   * Default: 4,000.
   */
  readonly maxCharacters?: number | undefined;
}

interface ProgressArguments extends ProgressOptions {
  readonly executor: CodeExecutor;
}

const progressArguments = optionsSchema({
  ...executeOptionSchemas,
  executor: codeExecutorOption,
  onProgress: callbackOption<(text: string) => void>(),
  intervalMs: millisecondsOption.exactOptional(),
  maxCharacters: wholeNumberOption({ from: 0 }).exactOptional(),
} satisfies OptionSchemas<ProgressArguments>);

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
  const { executor: _, onProgress, intervalMs = 250, maxCharacters = 4000, ...options } = checked;
  const portions = new Portions(onProgress, { intervalMs, maxCharacters });
  try {
    for await (const event of executor.streamCodeBlocks(blocks, options)) {
      if (event.type === "stdout" || event.type === "stderr") portions.add(event.text);
      if (event.type === "result") return event.result;
    }
  } finally {
    portions.close();
  }
  throw new TypeError(
    "The executor's stream ended without a result. This is a bug in the executor: report it to its authors.",
  );
}

/** The last `count` characters of a text, after `…` if there were more. Never splits a character. */
export function lastCharacters(text: string, count: number): string {
  if (text.length <= count) return text;
  return `…${text.slice(text.length - count).replace(/^[\uDC00-\uDFFF]/, "")}`;
}

class Portions {
  readonly #report: (text: string) => void;
  readonly #limits: { readonly intervalMs: number; readonly maxCharacters: number };
  #text = "";
  #timer: NodeJS.Timeout | undefined;
  #reportedAt = -Infinity;

  constructor(report: (text: string) => void, limits: { intervalMs: number; maxCharacters: number }) {
    this.#report = report;
    this.#limits = limits;
  }

  add(text: string): void {
    this.#text = lastCharacters(this.#text + text, this.#limits.maxCharacters);
    const wait = this.#reportedAt + this.#limits.intervalMs - performance.now();
    this.#timer ??= setTimeout(() => this.#flush(), Math.max(0, wait));
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #flush(): void {
    this.#timer = undefined;
    this.#reportedAt = performance.now();
    const text = this.#text;
    this.#text = "";
    this.#report(text);
  }
}
