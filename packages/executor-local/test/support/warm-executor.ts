import type { BackendSession } from "@fenced/executor-kit";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { untilForked } from "@fenced/test-support/warm-python";

/** An executor whose sessions open once an interpreter is waiting, so that blocks are forked from it. */
export class WarmExecutor extends LocalCommandLineCodeExecutor {
  /** How many sessions had a waiting interpreter. */
  static sessions = 0;

  /** The session's mark; it is known without a block, which would have to wait for its turn. */
  get mark(): string {
    return this.id;
  }

  protected override async openSession(signal: AbortSignal): Promise<BackendSession> {
    const session = await super.openSession(signal);
    if (await untilForked(session, this.env, signal)) WarmExecutor.sessions += 1;
    return session;
  }
}
