import { setImmediate as turn } from "node:timers/promises";
import { inThisContext } from "@fenced/core/telemetry";
import type { BlockEvent, BlockOutcome } from "./block-run.ts";

/** Bytes that a block may still put out between its abort and its end, before they are dropped. */
const mostAhead = 4_194_304;

/**
 * Hands a block's events on one by one. Once the run is aborted it goes ahead of its consumer, so that the block ends
 * even if nobody reads any more, and keeps what still comes for a consumer that does.
 */
export class BlockEvents {
  /** Resolves when everything that the block started has ended. */
  readonly ended: Promise<void>;
  readonly #events: AsyncGenerator<BlockEvent, BlockOutcome, void>;
  readonly #signal: AbortSignal;
  readonly #goAhead: () => void = inThisContext(() => void (this.#aheadDone ??= this.#runAhead()));
  #pulled: Promise<IteratorResult<BlockEvent, BlockOutcome>> | undefined;
  #aheadDone: Promise<void> | undefined;
  readonly #ahead: IteratorResult<BlockEvent, BlockOutcome>[] = [];
  #failure: { readonly error: unknown } | undefined;
  #end: () => void = () => {};

  /** @param signal - the run's. */
  constructor(events: AsyncGenerator<BlockEvent, BlockOutcome, void>, signal: AbortSignal) {
    this.#events = events;
    this.#signal = signal;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    if (signal.aborted) this.#goAhead();
    else signal.addEventListener("abort", this.#goAhead, { once: true });
  }

  /** The next event, or the outcome. To be asked for only after the one before has been used. */
  async next(): Promise<IteratorResult<BlockEvent, BlockOutcome>> {
    if (!this.#aheadDone) return (this.#pulled = this.#pull());
    await this.#aheadDone;
    const step = this.#ahead.shift();
    if (step) return step;
    throw this.#failure?.error;
  }

  /** Ends the block, whose signal must have been aborted, though it was not read to its end. */
  async abandon(): Promise<void> {
    this.#goAhead();
    await this.ended;
  }

  async #pull(): Promise<IteratorResult<BlockEvent, BlockOutcome>> {
    try {
      const step = await this.#events.next();
      if (step.done === true) this.#finish();
      return step;
    } catch (error) {
      this.#finish();
      throw error;
    }
  }

  async #runAhead(): Promise<void> {
    let room = mostAhead;
    // Whoever waits for an event, or has just got one, uses it first: the next one may use its memory again.
    await this.#pulled?.catch(() => {});
    await turn();
    try {
      for (;;) {
        const step = await this.#pull();
        if (step.done === true) {
          this.#ahead.push(step);
          return;
        }
        room -= "data" in step.value ? step.value.data.length : 0;
        if (room >= 0) this.#ahead.push({ done: false, value: withOwnMemory(step.value) });
      }
    } catch (error) {
      this.#failure = { error };
    }
  }

  #finish(): void {
    this.#signal.removeEventListener("abort", this.#goAhead);
    this.#end();
  }
}

function withOwnMemory(event: BlockEvent): BlockEvent {
  if (!("data" in event) || typeof event.data === "string") return event;
  return { type: event.type, data: Buffer.from(event.data) };
}
