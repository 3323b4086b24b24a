import { FencedError, hasErrorCode } from "@fenced/core";
import type { TaskResult, WaitingFor } from "./chat-agent.ts";

/**
 * An agent throws it during its turn when it cannot continue without a person. The run then ends with `waitingFor` as
 * data. The turn counts as not taken: it is the first turn of the next run, in this process or in another that loaded
 * the state.
 *
 * @example
 * if (decision === undefined) throw new WaitingForPersonError({ source: this.name, reason: "The order needs approval." });
 */
export class WaitingForPersonError extends FencedError {
  readonly code = "waiting_for_person" as const;
  /** What the agent waits for, and its name. */
  readonly waitingFor: WaitingFor;

  constructor(waitingFor: WaitingFor) {
    super(waitingFor.reason, { remedy: "Save the state, and run again without a task when you have the answer." });
    this.waitingFor = { source: waitingFor.source, reason: waitingFor.reason };
  }

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is WaitingForPersonError {
    return hasErrorCode(value, "waiting_for_person");
  }
}

/** The end of a run that is waiting for people. */
export function waitingResult(
  waitingFor: readonly WaitingFor[],
): Required<Pick<TaskResult, "stopReason" | "waitingFor">> {
  return { stopReason: waitingFor.map(({ reason }) => reason).join(" "), waitingFor };
}
