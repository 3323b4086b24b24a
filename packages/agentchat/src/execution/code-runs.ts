import { createHash } from "node:crypto";
import type { CodeBlock, CodeExecutor, ExecutionEvent, SubmittedRun } from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import { signalOption } from "../common/signal-option.ts";

/** How many requests whose code has run are remembered. */
const mostRemembered = 1000;

/** A request to run code. */
export interface CodeRequest {
  readonly blocks: readonly CodeBlock[];
  /** The agent's name. */
  readonly source: string;
  /** The ids of the messages that contain the code: the same when a turn is taken again that was not finished. */
  readonly messageIds: readonly string[];
  readonly signal: AbortSignal | undefined;
}

/**
 * Runs an agent's code. Where submitted runs go on without their program, a turn that is taken again, after the program
 * died for example, gets the run of the first attempt, which is not executed twice.
 */
export class CodeRuns {
  readonly #executor: CodeExecutor;
  /** Requests that this agent has had the result of: if they come again, they are new ones. */
  readonly #done = new Set<string>();

  constructor(executor: CodeExecutor) {
    this.#executor = executor;
  }

  /** Yields what happens. Leaving ends the run, and so does the signal. */
  async *events(request: CodeRequest): AsyncGenerator<ExecutionEvent, void, void> {
    const { blocks, signal } = request;
    if (this.#executor.capabilities.keepsRuns !== true) {
      yield* this.#executor.streamCodeBlocks(blocks, signalOption(signal));
      return;
    }
    const id = idOf(request);
    const submitting = this.#submit(blocks, this.#done.has(id) ? undefined : id);
    const run = await untilAborted(submitting, signal).catch((error: unknown) => {
      // It may be on its way, which only the executor knows.
      void submitting.then((late) => late.cancel()).catch(() => {});
      throw error;
    });
    try {
      for await (const { event } of run.events(signalOption(signal))) {
        if (event.type === "result") this.#remember(id);
        if (event.type !== "gap") yield event;
      }
    } finally {
      await run.cancel();
    }
  }

  /** An attempt that was aborted or failed has no result: the code runs again. */
  async #submit(blocks: readonly CodeBlock[], id: string | undefined): Promise<SubmittedRun> {
    const run = await this.#executor.submit(blocks, { id });
    return run.state === "failed" ? this.#executor.submit(blocks) : run;
  }

  #remember(id: string): void {
    this.#done.add(id);
    for (const oldest of this.#done) {
      if (this.#done.size <= mostRemembered) return;
      this.#done.delete(oldest);
    }
  }
}

/** The same for the same code of the same messages. */
function idOf({ blocks, source, messageIds }: CodeRequest): string {
  const code = blocks.map((block) => [block.language, block.code]);
  const digest = createHash("sha256").update(JSON.stringify([source, messageIds, code]));
  return `agent-${digest.digest("hex").slice(0, 32)}`;
}
