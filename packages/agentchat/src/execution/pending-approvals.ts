import { type CodeBlock, InvalidInputError } from "@fenced/core";
import { longestTimer } from "@fenced/core/abort";
import { checkOptions, optionsSchema, timeLimitOption, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import type { ApprovalResponse } from "./code-approval.ts";

/** What `PendingApprovals` is made from. */
export interface PendingApprovalsOptions {
  /** Milliseconds to wait for an answer; then the code is refused. `Infinity`: no limit. Default: 600,000. */
  readonly timeoutMs?: number;
}

/** Code that waits for an answer. */
export interface PendingApproval {
  /** What `answer` takes: the `id` of the `CodeApprovalRequestEvent`. */
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
 * Approvals that are asked for in a stream and answered from elsewhere, another HTTP request for one. `runStream` of an agent that
 * has it yields a `CodeApprovalRequestEvent` and waits for `answer(id, …)`, for the time limit, or for the end of the run. One
 * object serves any number of agents.
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

  /** What waits for an answer now, the oldest first: for a client that comes back after its stream broke off. */
  get pending(): readonly PendingApproval[] {
    return [...this.#waiting.values()].map(({ id, source, blocks }) => ({ id, source, blocks }));
  }

  /**
   * Decides. The first answer counts.
   *
   * @param response - `reason` is told to the model that wrote the code if it is refused; default: none given.
   * @throws InvalidInputError if nothing waits by this id: it was answered already, its time was up, or its run has ended.
   */
  answer(id: string, response: { readonly approved: boolean; readonly reason?: string }): void {
    const { approved, reason = "No reason was given." } = checkOptions(answerSchema, response, "answer");
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) {
      throw new InvalidInputError(`No code is waiting for approval with the id ${JSON.stringify(id)}`, {
        remedy: "It has been answered, timed out, or its run has ended. `pending` lists the requests that are waiting.",
      });
    }
    waiting.decide({ approved, reason });
  }

  /**
   * Waits for an answer; agents call it.
   *
   * @returns the answer, and what gives the wait up: to be called in any case.
   */
  wait(request: PendingApproval, signal: AbortSignal | undefined): PendingAnswer {
    let timer: NodeJS.Timeout | undefined;
    let giveUp: () => void = () => {};
    const response = new Promise<ApprovalResponse>((resolve, reject) => {
      const { id, source, blocks } = request;
      // The reason is whatever the caller chose.
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors
      const abort = (): void => reject(signal?.reason);
      giveUp = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        this.#waiting.delete(id);
      };
      const decide = (decision: ApprovalResponse): void => {
        giveUp();
        resolve(decision);
      };
      this.#waiting.set(id, { id, source, blocks, decide });
      const late = `Nobody answered within ${this.#timeoutMs} ms.`;
      if (this.#timeoutMs !== Infinity) {
        timer = setTimeout(() => decide({ approved: false, reason: late }), Math.min(this.#timeoutMs, longestTimer));
      }
      if (signal?.aborted === true) abort();
      else signal?.addEventListener("abort", abort, { once: true });
    });
    // If the consumer left before the answer, nobody handles an abort.
    response.catch(() => {});
    return { response, giveUp };
  }
}

/** An answer that is waited for. */
export interface PendingAnswer {
  /** Rejects with the signal's reason if it is aborted first. */
  readonly response: Promise<ApprovalResponse>;
  readonly giveUp: () => void;
}
