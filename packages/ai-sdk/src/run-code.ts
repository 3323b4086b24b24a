import { createHash } from "node:crypto";
import {
  type CodeBlock,
  type CodeExecutor,
  codeResultForModel,
  followRun,
  type SubmitOptions,
  type SubmittedRun,
} from "@fenced/core";
import { followSignals } from "@fenced/core/abort";
import type { ToolExecutionOptions } from "ai";
import type { CodeExecutionFinished, CodeExecutionOutput } from "./code-execution-output.ts";
import type { CodeExecutionToolOptions } from "./code-execution-tool-options.ts";
import { WaitingCalls } from "./code-mode.ts";

interface RunOptions extends CodeExecutionToolOptions {
  readonly signal: AbortSignal | undefined;
  /** The AI SDK's options of the tool call. */
  readonly callOptions: Pick<ToolExecutionOptions, "toolCallId">;
}

/** Runs the code of one call: yields output as it is printed, and the result last. */
export async function* runCode(
  executor: CodeExecutor,
  block: CodeBlock,
  { signal, callOptions, ...options }: RunOptions,
): AsyncGenerator<CodeExecutionOutput, void, void> {
  const { timeoutMs, progressIntervalMs = 250, maxProgressCharacters = 4000 } = options;
  const news = new News();
  let output = "";
  const waiting = new WaitingCalls(options, () => news.tell());
  const functions = waiting.functions(callOptions);
  signal?.throwIfAborted();
  const submitted = await submit(executor, block, {
    id: runId(block, callOptions.toolCallId),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(functions.length > 0 && { functions }),
  });
  const following = new AbortController();
  const unfollow = followSignals(following, [signal]);
  const leave = enter(submitted);
  // Nobody may be reading when the call is aborted.
  following.signal.addEventListener("abort", () => void leave(), { once: true });
  const run = followRun(submitted, {
    signal: following.signal,
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
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    following.abort();
    await leave();
    await ended;
    unfollow();
  }
}

/** How many calls follow a run. */
const followers = new WeakMap<SubmittedRun, number>();

/** Counts a call as following a run. Returns how to leave it: the last one that leaves ends the run, if it still goes on. */
function enter(run: SubmittedRun): () => Promise<void> {
  followers.set(run, (followers.get(run) ?? 0) + 1);
  let left: Promise<void> | undefined;
  return () => (left ??= leaveRun(run));
}

async function leaveRun(run: SubmittedRun): Promise<void> {
  const others = (followers.get(run) ?? 1) - 1;
  if (others > 0) followers.set(run, others);
  else followers.delete(run);
  if (others === 0) await run.cancel();
}

/** Submits the code; if an earlier attempt under this id was aborted or failed, the code runs again. */
async function submit(executor: CodeExecutor, block: CodeBlock, options: SubmitOptions): Promise<SubmittedRun> {
  const run = await executor.submit([block], options);
  return run.state === "failed" ? executor.submit([block], { ...options, id: undefined }) : run;
}

/** An id that nobody has chosen by counting: a UUID, or so many characters of a random text. */
const randomId = /[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}|(?=[a-z]{0,14}\d)[\da-z]{15}/i;

/**
 * The same call again, as durable agents repeat it after a failure, is the same run. Some providers number the calls of an
 * answer or a conversation; such an id does not identify a call.
 */
function runId({ language, code }: CodeBlock, toolCallId: string): string | undefined {
  if (!randomId.test(toolCallId)) return undefined;
  return createHash("sha256")
    .update(JSON.stringify([toolCallId, language, code]))
    .digest("hex");
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
