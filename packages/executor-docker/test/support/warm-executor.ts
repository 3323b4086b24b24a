import type { BackendSession } from "@fenced/executor-kit";
import { untilForked } from "@fenced/test-support/warm-python";
import { DockerCommandLineCodeExecutor } from "../../src/index.ts";

/** An executor whose sessions open once an interpreter is waiting, if one can, so that blocks are forked from it. */
export class WarmExecutor extends DockerCommandLineCodeExecutor {
  /** How many sessions had a waiting interpreter. */
  static sessions = 0;

  protected override async openSession(signal: AbortSignal): Promise<BackendSession> {
    const session = await super.openSession(signal);
    if (await untilForked(session, this.env, signal)) WarmExecutor.sessions += 1;
    return session;
  }
}
