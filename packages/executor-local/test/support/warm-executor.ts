import type { Backend } from "@fenced/executor-kit";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { openedWarm } from "@fenced/test-support/warm-python";

/** An executor whose sessions open once an interpreter is waiting, so that blocks are forked from it. */
export class WarmExecutor extends LocalCommandLineCodeExecutor {
  /** How many sessions had a waiting interpreter. */
  static sessions = 0;

  /** The session's mark; it is known without a block, which would have to wait for its turn. */
  get mark(): string {
    return this.id;
  }

  protected override async openBackend(): Promise<Backend> {
    return openedWarm(await super.openBackend(), this.env, () => (WarmExecutor.sessions += 1));
  }
}
