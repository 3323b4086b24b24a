import type { HostCallEvent } from "@fenced/core";
import type { BlockEvent, BlockOutcome } from "../run/block-run.ts";
import type { BlockCalls } from "./block-calls.ts";

type Arrival =
  | { readonly from: "block"; readonly step: IteratorResult<BlockEvent, BlockOutcome> }
  | { readonly from: "call"; readonly step: IteratorResult<HostCallEvent, void> };

/**
 * Yields a block's own events and those of its calls as they come. A call waits until its event has been consumed, and
 * so does the program.
 */
export async function* withHostCalls(
  events: AsyncGenerator<BlockEvent, BlockOutcome, void>,
  calls: BlockCalls,
  close: () => void,
): AsyncGenerator<BlockEvent | HostCallEvent, BlockOutcome, void> {
  const told = calls.events();
  const arrivals = new Arrivals();
  const askBlock = (): void => arrivals.expect(events.next().then((step) => ({ from: "block", step })));
  const askCalls = (): void => arrivals.expect(told.next().then((step) => ({ from: "call", step })));
  let outcome: BlockOutcome | undefined;
  try {
    askBlock();
    askCalls();
    for (;;) {
      const { from, step } = await arrivals.next();
      if (step.done !== true) {
        yield step.value;
        if (from === "block") askBlock();
        else askCalls();
      } else if (from === "block") {
        outcome = step.value;
        close();
      } else if (outcome) {
        return outcome;
      }
    }
  } finally {
    close();
  }
}

/** Arrivals in order. Avoids `Promise.race`, which leaks memory in the pending promise each time another one wins. */
class Arrivals {
  readonly #here: Promise<Arrival>[] = [];
  #wake: () => void = () => {};

  expect(arrival: Promise<Arrival>): void {
    const came = (): void => {
      this.#here.push(arrival);
      this.#wake();
    };
    arrival.then(came, came);
  }

  async next(): Promise<Arrival> {
    for (;;) {
      const first = this.#here.shift();
      if (first) return first;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
