import { untilAborted } from "../abort/index.ts";
import type { ExecutionEvent } from "../execution/execution-event.ts";
import type { RunEvent } from "./submitted-run.ts";

/** Characters of text that one event may have after others were added to it. */
const longestText = 16_384;

/** What an added piece of text takes in memory besides its characters, until the event is complete, in bytes. */
const pieceSize = 32;

/** What a log keeps of an event. */
interface Entry {
  readonly event: ExecutionEvent;
  readonly size: number;
}

/**
 * The events of a run: the first and the last ones, up to a size, for any number of readers. What comes fast while
 * nobody reads becomes fewer events.
 */
export class RunLog {
  readonly #half: number;
  readonly #sizeOf: (event: ExecutionEvent) => number;
  /** Events from the first one, until half of the room is used. */
  readonly #first: Entry[] = [];
  #firstSize = 0;
  /** The last events; those before `#start` are no longer kept. */
  #last: Entry[] = [];
  #start = 0;
  #lastSize = 0;
  /** How many events there have been. */
  #count = 0;
  /** The position of the last event that a reader has had, after which text may still be added to an event. */
  #read = 0;
  #end: { readonly error?: unknown } | undefined;
  /** Continues all readers that wait for an event. */
  #wake: () => void = () => {};
  #news: Promise<void> | undefined;

  /**
   * @param maxSize - the size of what is kept, by `sizeOf`; the last event is kept whatever its size.
   */
  constructor(maxSize: number, sizeOf: (event: ExecutionEvent) => number) {
    this.#half = maxSize / 2;
    this.#sizeOf = sizeOf;
  }

  /** The size of what is kept. */
  get size(): number {
    return this.#firstSize + this.#lastSize;
  }

  /** The position of the last event; 0 before the first one. */
  get lastSeq(): number {
    return this.#count;
  }

  add(event: ExecutionEvent): void {
    const joined = this.#count > this.#read ? this.#joined(event) : undefined;
    if (!joined) this.#count += 1;
    this.#keep(joined ?? { event, size: this.#sizeOf(event) });
    this.#tell();
  }

  /** No event follows. @param failure - `error`: what readers are told after the last event. */
  end(failure: { readonly error?: unknown } = {}): void {
    this.#end = failure;
    this.#tell();
  }

  /** Yields the events after the one at this position, then those that come. */
  async *read(after: number, signal: AbortSignal | undefined): AsyncGenerator<RunEvent, void, void> {
    let position = after;
    for (;;) {
      signal?.throwIfAborted();
      const next = this.#after(position);
      if (next) {
        position = next.seq;
        this.#read = Math.max(this.#read, position);
        yield next;
      } else if (!this.#end) {
        await untilAborted(this.#nextNews(), signal);
      } else if ("error" in this.#end) {
        throw this.#end.error;
      } else {
        return;
      }
    }
  }

  #after(position: number): RunEvent | undefined {
    const seq = position + 1;
    if (seq > this.#count) return undefined;
    const early = this.#first[position];
    if (early) return { seq, event: early.event };
    const oldest = this.#count - (this.#last.length - this.#start) + 1;
    if (seq < oldest) return { seq: oldest - 1, event: { type: "gap", events: oldest - seq } };
    const late = this.#last[this.#start + seq - oldest];
    return late && { seq, event: late.event };
  }

  /** The last event with a piece of text added to it, in place of that event; `undefined` if it is complete. */
  #joined(event: ExecutionEvent): Entry | undefined {
    const isInLast = this.#last.length > 0;
    const entries = isInLast ? this.#last : this.#first;
    const before = entries.at(-1);
    const joined = before && join(before, event);
    if (!joined) return undefined;
    entries.pop();
    if (isInLast) this.#lastSize -= before.size;
    else this.#firstSize -= before.size;
    return joined;
  }

  #keep(entry: Entry): void {
    if (this.#last.length === 0 && this.#firstSize + entry.size <= this.#half) {
      this.#first.push(entry);
      this.#firstSize += entry.size;
    } else {
      this.#last.push(entry);
      this.#lastSize += entry.size;
      this.#forget();
    }
  }

  /** Forgets the oldest of the last events until the others fit. */
  #forget(): void {
    for (; this.#lastSize > this.#half && this.#start < this.#last.length - 1; this.#start += 1) {
      this.#lastSize -= this.#last[this.#start]?.size ?? 0;
    }
    // What is forgotten must not be kept alive, and not every event may copy the list.
    if (this.#start > 1024 || this.#start > this.#last.length / 2) {
      this.#last = this.#last.slice(this.#start);
      this.#start = 0;
    }
  }

  #nextNews(): Promise<void> {
    return (this.#news ??= new Promise((resolve) => {
      this.#wake = resolve;
    }));
  }

  #tell(): void {
    this.#wake();
    this.#news = undefined;
    this.#wake = () => {};
  }
}

/** Two pieces of the same output as one; `undefined` if they are not, or too long. */
function join({ event: one, size }: Entry, next: ExecutionEvent): Entry | undefined {
  if (!("text" in one) || !("text" in next) || one.type !== next.type || one.index !== next.index) return undefined;
  if (one.text.length + next.text.length > longestText) return undefined;
  return { event: { ...one, text: one.text + next.text }, size: size + pieceSize + next.text.length };
}
