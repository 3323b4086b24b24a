import type { Backend } from "@fenced/executor-kit";
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

  protected override async openBackend(): Promise<Backend> {
    const backend = await super.openBackend();
    return {
      open: async (opening) => {
        const place = await backend.open(opening);
        if (await untilForked(place, this.env, opening.signal)) WarmExecutor.sessions += 1;
        return place;
      },
      close: () => backend.close(),
    };
  }
}
