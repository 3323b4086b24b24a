import { type CodeBlock, type CodeExecutor, codeResultForModel, executeWithProgress } from "@fenced/core";
import { followSignals } from "@fenced/core/abort";
import type { CodeExecutionFinished, CodeExecutionOutput } from "./code-execution-output.ts";
import type { CodeExecutionToolOptions } from "./code-execution-tool-options.ts";
import { WaitingCalls } from "./code-mode.ts";

interface RunOptions extends CodeExecutionToolOptions {
  readonly signal: AbortSignal | undefined;
  /** The AI SDK's options of the tool call. */
  readonly callOptions: object;
}

/** Runs the code of one call: yields output as it is printed, and the result last. */
export async function* runCode(
  executor: CodeExecutor,
  block: CodeBlock,
  { signal, callOptions, ...options }: RunOptions,
): AsyncGenerator<CodeExecutionOutput, void, void> {
  const { timeoutMs, progressIntervalMs = 250, maxProgressCharacters = 4000 } = options;
  const news = new News();
  const ending = new AbortController();
  const unfollow = followSignals(ending, [signal]);
  let output = "";
  const waiting = new WaitingCalls(options, () => news.tell());
  const functions = waiting.functions(callOptions);
  const run = executeWithProgress(executor, [block], {
    signal: ending.signal,
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(functions.length > 0 && { functions }),
    intervalMs: progressIntervalMs,
    maxCharacters: maxProgressCharacters,
    cumulative: true,
    onProgress(text) {
      output = text;
      news.tell();
    },
  });
  const ended = run.then(
    () => news.end(),
    () => news.end(),
  );
  try {
    while (await news.wait()) {
      const waitingCalls = waiting.calls;
      yield { status: "running", output, ...(waitingCalls.length > 0 && { waitingCalls }) };
    }
    const result = await run;
    const { text, images, ...forModel } = codeResultForModel(result, 1, options);
    const { exitCode, timedOut, stateLost, network, durationMs } = result;
    yield {
      status: "finished",
      exitCode,
      ...forModel,
      timedOut,
      stateLost,
      ...(network && { network }),
      durationMs,
      images: images.map(({ mediaType, bytes }) => ({ mediaType, data: Buffer.from(bytes).toString("base64") })),
      text,
    } satisfies CodeExecutionFinished;
  } finally {
    // Has no effect on a run that has ended.
    ending.abort();
    await ended;
    unfollow();
  }
}

/** Lets one reader wait until there is something new, or the end is reached. */
class News {
  #fresh = false;
  #over = false;
  #wake: () => void = () => {};

  tell(): void {
    this.#fresh = true;
    this.#wake();
  }

  end(): void {
    this.#over = true;
    this.#wake();
  }

  /** @returns whether there is something new; false at the end. */
  async wait(): Promise<boolean> {
    if (!this.#fresh && !this.#over) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#fresh = false;
    return !this.#over;
  }
}
