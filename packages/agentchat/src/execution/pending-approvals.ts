import { type CodeBlock, InvalidInputError } from "@fenced/core";
import { afterMs } from "@fenced/core/abort";
import { checkOptions, optionsSchema, timeLimitOption, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import type { ApprovalResponse } from "./code-approval.ts";

/** Options of `PendingApprovals`. */
export interface PendingApprovalsOptions {
  /** Milliseconds to wait for an answer; then the code is refused. `Infinity`: no limit. Default: 600,000. */
  readonly timeoutMs?: number | undefined;
}

/** Code that is waiting for approval. */
export interface PendingApproval {
  /** The id to pass to `answer`: that of the `CodeApprovalRequestEvent`. */
  readonly id: string;
  /** The agent that wants to run it. */
  readonly source: string;
  readonly blocks: readonly CodeBlock[];
}

const pendingApprovalsOptions: z.ZodType<PendingApprovalsOptions> = optionsSchema({
  timeoutMs: timeLimitOption.exactOptional(),
} satisfies OptionSchemas<PendingApprovalsOptions>);

const answerSchema: z.ZodType<{ readonly approved: boolean; readonly reason?: string }> = optionsSchema({
  approved: z.boolean(),
  reason: z.string().exactOptional(),
});

/**
 * Approvals that a stream requests and that are answered elsewhere, for example in another HTTP request. An agent with
 * this option yields a `CodeApprovalRequestEvent` in its `runStream` and waits for `answer(id, …)`, the time limit, or
 * the end of the run. One object serves any number of agents.
 *
 * @example
 * const pendingApprovals = new PendingApprovals({ timeoutMs: 300_000 });
 * const runner = new CodeExecutorAgent({ name: "runner", codeExecutor, pendingApprovals });
 * app.post("/approvals/:id", async (context) => {
 *   pendingApprovals.answer(context.req.param("id"), await context.req.json());
 *   return context.body(null, 204);
 * });
 */
export class PendingApprovals {
  readonly #timeoutMs: number;
  readonly #waiting = new Map<string, PendingApproval & { readonly decide: (response: ApprovalResponse) => void }>();

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: PendingApprovalsOptions = {}) {
    this.#timeoutMs = checkOptions(pendingApprovalsOptions, options, "PendingApprovals").timeoutMs ?? 600_000;
  }

  /** Code that is waiting now, oldest first, for a client that reconnects after its stream broke off. */
  get pending(): readonly PendingApproval[] {
    return [...this.#waiting.values()].map(({ id, source, blocks }) => ({ id, source, blocks }));
  }

  /**
   * Answers a request. The first answer counts.
   *
   * @param response - if the code is refused, the model that wrote it is told `reason`. Default: no reason.
   * @throws InvalidInputError if no code with this id is waiting: it was answered, it timed out, or its run has ended.
   */
  answer(id: string, response: { readonly approved: boolean; readonly reason?: string }): void {
    const { approved, reason = "No reason was given." } = checkOptions(answerSchema, response, "answer");
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) {
      throw new InvalidInputError(`No code is waiting for approval with the id ${JSON.stringify(id)}`, {
        remedy: "It was answered, it timed out, or its run has ended. `pending` lists the requests that are waiting.",
      });
    }
    waiting.decide({ approved, reason });
  }

  /**
   * Waits for an answer; agents call it.
   *
   * @returns the answer, and `giveUp`, which you must always call at the end.
   */
  wait(request: PendingApproval, signal: AbortSignal | undefined): PendingAnswer {
    let giveUp: () => void = () => {};
    const response = new Promise<ApprovalResponse>((resolve, reject) => {
      const { id, source, blocks } = request;
      // The reason is whatever the caller chose.
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors
      const abort = (): void => reject(signal?.reason);
      giveUp = (): void => {
        cancel();
        signal?.removeEventListener("abort", abort);
        this.#waiting.delete(id);
      };
      const decide = (decision: ApprovalResponse): void => {
        giveUp();
        resolve(decision);
      };
      this.#waiting.set(id, { id, source, blocks, decide });
      const late = `Nobody answered within ${this.#timeoutMs} ms.`;
      const cancel = afterMs(this.#timeoutMs, () => decide({ approved: false, reason: late }));
      if (signal?.aborted === true) abort();
      else signal?.addEventListener("abort", abort, { once: true });
    });
    // If the consumer left before the answer, no one handles the rejection.
    response.catch(() => {});
    return { response, giveUp };
  }
}

/** An answer that has not arrived yet. */
export interface PendingAnswer {
  /** Rejects with the signal's reason if it is aborted first. */
  readonly response: Promise<ApprovalResponse>;
  readonly giveUp: () => void;
}
