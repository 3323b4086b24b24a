import type { BackendSession } from "@fenced/executor-kit";
import { SshCommandLineCodeExecutor } from "@fenced/executor-ssh";
import { untilForked } from "@fenced/test-support/warm-python";

/** An executor whose sessions open when the interpreter waits, where it can: what tests then run is forked from it. */
export class WarmExecutor extends SshCommandLineCodeExecutor {
  /** How many sessions had an interpreter that waits. */
  static sessions = 0;

  protected override async openSession(signal: AbortSignal): Promise<BackendSession> {
    const session = await super.openSession(signal);
    if (await untilForked(session, this.env, signal)) WarmExecutor.sessions += 1;
    return session;
  }
}
