import { InvalidInputError } from "@fenced/core";

/**
 * An iterable, to be iterated once, whose consumer may leave at any time: leaving aborts the signal that the source was made with, also
 * while an item is being waited for, and waits until the source has ended. A generator alone would first wait for
 * its next item, which a silent program may never give.
 */
export class ExecutionStream<Item> implements AsyncIterable<Item> {
  #read = false;
  readonly #open: (left: AbortSignal) => AsyncGenerator<Item, void, void>;

  constructor(open: (left: AbortSignal) => AsyncGenerator<Item, void, void>) {
    this.#open = open;
  }

  [Symbol.asyncIterator](): AsyncIterator<Item, void, void> {
    if (this.#read) {
      throw new InvalidInputError("This stream has been read already", {
        remedy: "To run the code again, call streamCodeBlocks again.",
      });
    }
    this.#read = true;
    const leave = new AbortController();
    const source = this.#open(leave.signal);
    return {
      next: () => source.next(),
      return: async () => {
        leave.abort();
        // A `next()` that is still waiting reports the abort; a consumer that leaves has no use for it.
        await source.return().catch((error: unknown) => {
          if (error !== leave.signal.reason) throw error;
        });
        return { done: true, value: undefined };
      },
    };
  }
}
