import { setImmediate as turn } from "node:timers/promises";
import { type CodeResult, type ExecutionEvent, InvalidInputError } from "@fenced/core";
import { bundleSize, contentSize } from "../output/bundle-size.ts";
import { Room } from "./room.ts";

/** Bytes of events that may wait for a slow consumer before the program has to wait. */
const mostWaiting = 262_144;
/** What an event takes in memory besides its content, in bytes. */
const eventSize = 128;

/** Takes the events of a run for its consumer. */
export interface RunEvents {
  /** Aborted when the consumer leaves. */
  readonly left: AbortSignal;
  /** True while the consumer waits for an event. */
  readonly isAwaited: boolean;

  /**
   * Takes an event. As for a `Sink`, a promise says when there is room for more; for the start and the end of a block,
   * it says when the consumer has used the event, and can no longer prevent what follows.
   */
  write(event: ExecutionEvent): Promise<void> | undefined;

  /** Call this when the run is aborted: nothing that was or will be written reaches the consumer, or waits for it. */
  drop(): void;
}

/**
 * The events of a run, which begins when the first one is requested. The stream can be iterated once and left at any
 * time: leaving ends the run, even while an event is awaited, and waits for that.
 */
export class ExecutionStream implements AsyncIterable<ExecutionEvent> {
  readonly #run: (events: RunEvents) => Promise<CodeResult>;
  #isRead = false;

  constructor(run: (events: RunEvents) => Promise<CodeResult>) {
    this.#run = run;
  }

  [Symbol.asyncIterator](): AsyncIterator<ExecutionEvent, void, void> {
    if (this.#isRead) {
      throw new InvalidInputError("This stream has already been read", {
        remedy: "To run the code again, call streamCodeBlocks again.",
      });
    }
    this.#isRead = true;
    const queue = new EventQueue();
    const events = queue.read(this.#run);
    return {
      next: () => events.next(),
      return: async () => {
        // What a pending `next()` asked for begins first, as in any generator, and is then aborted.
        if (queue.isAwaited) await turn();
        queue.leave();
        await events.return();
        return { done: true, value: undefined };
      },
    };
  }
}

/** Events that the consumer has not used yet. */
class EventQueue implements RunEvents {
  readonly #leaving = new AbortController();
  readonly left: AbortSignal = this.#leaving.signal;
  #waiting: { readonly event: ExecutionEvent; readonly size: number }[] = [];
  /** The index of the first one that is still waiting. */
  #first = 0;
  #size = 0;
  /** Opened when half of what may wait was used, and when nothing waits any more. */
  readonly #room = new Room();
  readonly #nothing = new Room();
  #isDropped = false;
  #end: { readonly error?: unknown } | undefined;
  /** Continues a consumer that waits for an event. */
  #wake: (() => void) | undefined;

  get isAwaited(): boolean {
    return this.#wake !== undefined;
  }

  write(event: ExecutionEvent): Promise<void> | undefined {
    if (this.#isDropped) return undefined;
    this.#add(event);
    this.#wake?.();
    if (event.type === "block-start" || event.type === "block-end") return this.#nothing.opened;
    if (this.#size <= mostWaiting) return undefined;
    return this.#room.opened;
  }

  drop(): void {
    this.#isDropped = true;
    this.#waiting = [];
    this.#first = 0;
    this.#size = 0;
    this.#resume();
  }

  leave(): void {
    this.#leaving.abort();
  }

  /** Yields the events of a run. Used once. */
  async *read(run: (events: RunEvents) => Promise<CodeResult>): AsyncGenerator<ExecutionEvent, void, void> {
    const ended = this.#follow(run(this));
    try {
      for (;;) {
        const next = this.#take();
        if (next) {
          yield next.event;
          this.#used(next.size);
        } else if (!this.#end) {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
          this.#wake = undefined;
        } else if ("error" in this.#end) {
          throw this.#end.error;
        } else {
          return;
        }
      }
    } finally {
      this.leave();
      await ended;
    }
  }

  async #follow(run: Promise<CodeResult>): Promise<void> {
    try {
      void this.write({ type: "result", result: await run });
      this.#end = {};
    } catch (error) {
      this.#end = { error };
    }
    this.#wake?.();
  }

  /** A program that writes single bytes sends many events before it waits: they become one. */
  #add(event: ExecutionEvent): void {
    const last = this.#waiting.length > this.#first ? this.#waiting.at(-1) : undefined;
    const joined = last && this.#size > mostWaiting ? join(last.event, event) : undefined;
    const size = sizeOf(event) - (joined ? eventSize : 0);
    if (last && joined) this.#waiting[this.#waiting.length - 1] = { event: joined, size: last.size + size };
    else this.#waiting.push({ event, size });
    this.#size += size;
  }

  #take(): { readonly event: ExecutionEvent; readonly size: number } | undefined {
    const next = this.#waiting[this.#first];
    if (!next) return undefined;
    this.#first += 1;
    if (this.#first === this.#waiting.length || this.#first > 4096) {
      this.#waiting = this.#waiting.slice(this.#first);
      this.#first = 0;
    }
    return next;
  }

  #used(size: number): void {
    this.#size = Math.max(0, this.#size - size);
    this.#resume();
  }

  #resume(): void {
    if (this.#size <= mostWaiting / 2) this.#room.open();
    if (this.#size === 0) this.#nothing.open();
  }
}

/** Two pieces of the same output as one; `undefined` if they are not. */
function join(one: ExecutionEvent, next: ExecutionEvent): ExecutionEvent | undefined {
  if (!("text" in one) || !("text" in next) || one.type !== next.type || one.index !== next.index) return undefined;
  return { ...one, text: one.text + next.text };
}

/** The size of an event in memory, in bytes. */
export function sizeOf(event: ExecutionEvent): number {
  if ("text" in event) return eventSize + event.text.length;
  if (event.type === "display") return eventSize + bundleSize(event.display.data);
  if (event.type === "host-call") return eventSize + contentSize(event.input);
  if (event.type === "host-result") return eventSize + contentSize(event.output ?? null);
  return eventSize;
}
