import type { Backend } from "@fenced/executor-kit";
import { untilForked } from "@fenced/test-support/warm-python";
import { KubernetesCommandLineCodeExecutor } from "../../src/index.ts";

/** An executor whose sessions open once an interpreter is waiting, if one can, so that blocks are forked from it. */
export class WarmExecutor extends KubernetesCommandLineCodeExecutor {
  /** How many sessions had a waiting interpreter. */
  static sessions = 0;

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
