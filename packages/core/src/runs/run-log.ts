import { untilAborted } from "../abort/index.ts";
import type { ExecutionEvent } from "../execution/execution-event.ts";
import type { RunEvent, RunGap } from "./submitted-run.ts";

/** Characters of text that one event may have after others were added to it. */
const longestText = 16_384;

/** What an added piece of text takes in memory besides its characters, until the event is complete, in bytes. */
const pieceSize = 32;
const gapSize = 128;

/** What a log keeps of an event. */
interface Entry {
  readonly seq: number;
  readonly event: ExecutionEvent | RunGap;
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
  /** The position of the last event that is no longer kept. */
  #forgotten = 0;
  /** The position of the last event. */
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
    this.#put(joined ?? { seq: this.#count + 1, event, size: this.#sizeOf(event) });
  }

  /** Adds an event that has its position already; it stays as it is. Positions rise. */
  addNumbered({ seq, event }: RunEvent): void {
    this.#put({ seq, event, size: event.type === "gap" ? gapSize : this.#sizeOf(event) });
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
    if (position >= this.#count) return undefined;
    const early = firstAfter(this.#first, 0, position);
    if (early) return asEvent(early);
    const late = firstAfter(this.#last, this.#start, position);
    if (!late) return undefined;
    const isMissing = position < this.#forgotten && late === this.#last[this.#start];
    if (!isMissing) return asEvent(late);
    return { seq: this.#forgotten, event: { type: "gap", events: this.#forgotten - position } };
  }

  #put(entry: Entry): void {
    this.#count = entry.seq;
    this.#keep(entry);
    this.#tell();
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
      const { size = 0, seq = 0 } = this.#last[this.#start] ?? {};
      this.#lastSize -= size;
      this.#forgotten = seq;
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

function asEvent({ seq, event }: Entry): RunEvent {
  return { seq, event };
}

/** The first entry after a position, from an index on. */
function firstAfter(entries: readonly Entry[], start: number, position: number): Entry | undefined {
  let [low, high] = [start, entries.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((entries[middle]?.seq ?? 0) > position) high = middle;
    else low = middle + 1;
  }
  return entries[low];
}

/** Two pieces of the same output as one; `undefined` if they are not, or too long. */
function join({ seq, event: one, size }: Entry, next: ExecutionEvent): Entry | undefined {
  if (!("text" in one) || !("text" in next) || one.type !== next.type || one.index !== next.index) return undefined;
  if (one.text.length + next.text.length > longestText) return undefined;
  return { seq, event: { ...one, text: one.text + next.text }, size: size + pieceSize + next.text.length };
}
