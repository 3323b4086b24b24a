import PQueue from "p-queue";
import { untilAborted } from "./abort.ts";

/** Lets one holder in at a time, first come first served. */
export class Turns {
  readonly #queue = new PQueue({ concurrency: 1 });

  /**
   * Waits for its turn.
   *
   * @returns the function that ends the turn; it must be called.
   * @throws `signal.reason` if aborted while waiting.
   */
  async take(signal: AbortSignal): Promise<() => void> {
    const turn = new Promise<() => void>((begin) => {
      const hold = async (): Promise<void> => {
        await new Promise<void>((end) => {
          begin(end);
        });
      };
      void this.#queue.add(hold);
    });
    try {
      return await untilAborted(turn, signal);
    } catch (error) {
      // Nobody takes this turn when it comes.
      void turn.then((end) => end());
      throw error;
    }
  }
}
