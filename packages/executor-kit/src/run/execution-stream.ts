import { InvalidInputError } from "@fenced/core";

/**
 * An iterable that can be iterated once and left at any time: leaving aborts the source's signal, even while an item is
 * awaited, and waits until the source has ended. A plain generator would first wait for its next item, which a silent
 * program may never produce.
 */
export class ExecutionStream<Item> implements AsyncIterable<Item> {
  #read = false;
  readonly #open: (left: AbortSignal) => AsyncGenerator<Item, void, void>;

  constructor(open: (left: AbortSignal) => AsyncGenerator<Item, void, void>) {
    this.#open = open;
  }

  [Symbol.asyncIterator](): AsyncIterator<Item, void, void> {
    if (this.#read) {
      throw new InvalidInputError("This stream has already been read", {
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
        // A pending `next()` reports the abort; a consumer that leaves does not need it.
        await source.return().catch((error: unknown) => {
          if (error !== leave.signal.reason) throw error;
        });
        return { done: true, value: undefined };
      },
    };
  }
}
