import type { BackendSession } from "@fenced/executor-kit";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { untilForked } from "@fenced/test-support/warm-python";

/** An executor whose sessions open when the interpreter waits: what tests then run is forked from it. */
export class WarmSandbox extends LocalCommandLineCodeExecutor {
  /** How many sessions had an interpreter that waits. */
  static sessions = 0;

  protected override async openSession(signal: AbortSignal): Promise<BackendSession> {
    const session = await super.openSession(signal);
    if (await untilForked(session, this.env, signal)) WarmSandbox.sessions += 1;
    return session;
  }
}
