import type { Backend } from "@fenced/executor-kit";
import { SshCommandLineCodeExecutor } from "@fenced/executor-ssh";
import { openedWarm } from "@fenced/test-support/warm-python";

/** An executor whose sessions open once an interpreter is waiting, if one can, so that blocks are forked from it. */
export class WarmExecutor extends SshCommandLineCodeExecutor {
  /** How many sessions had a waiting interpreter. */
  static sessions = 0;

  protected override async openBackend(): Promise<Backend> {
    return openedWarm(await super.openBackend(), this.env, () => (WarmExecutor.sessions += 1));
  }
}
