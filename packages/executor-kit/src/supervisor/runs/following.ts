import { Parts } from "./parts.ts";
import { entryKind, type RunEntry } from "./run-entries.ts";

/** Bytes of entries that may wait for their reader; then the supervisor keeps the next ones. */
const mostWaiting = 4_194_304;
/** Bytes of one entry. The longest is what was submitted. */
export const longestEntry = 268_435_456;
/** Bytes of all entries that wait, and how many an entry counts for itself: a forged supervisor does not stop when it is told. */
const [mostHeld, entryCost] = [2 * longestEntry, 200];

/** What arrives of one run's log, for one reader. */
export class Following {
  readonly #follow: (position: number) => void;
  readonly #leave: () => void;
  #waiting: RunEntry[] = [];
  #size = 0;
  #held = 0;
  readonly #parts = new Parts(longestEntry);
  #last = 0;
  #isLeft = false;
  #error: Error | undefined;
  #wake: () => void = () => {};
  /** How many parts of entries have arrived. */
  taken = 0;
  /** Resolves when the run's end has arrived, or nobody reads any more. */
  readonly ended: Promise<true>;
  #end: () => void = () => {};

  constructor(follow: (position: number) => void, leave: () => void) {
    this.#follow = follow;
    this.#leave = leave;
    this.ended = new Promise((resolve) => {
      this.#end = () => resolve(true);
    });
  }

  /**
   * Handles a part of an entry.
   *
   * @throws Error if it is more than an entry can have, or more than a supervisor sends that nobody reads.
   */
  take(payload: Buffer): void {
    this.taken += 1;
    this.#parts.add(payload.subarray(10));
    if (payload.readUInt8(9) !== 1) return;
    const content = this.#parts.take();
    this.#held += content.length + entryCost;
    if (this.#held > mostHeld) throw new Error("the supervisor sent more of a run than it was asked for");
    const number = Number(payload.readBigUInt64BE(0));
    this.#waiting.push({ number, kind: entryKind(payload.toString("latin1", 8, 9)), content });
    this.#last = number;
    if (this.#waiting.at(-1)?.kind === ".") this.#end();
    if (number > 0) this.#size += content.length;
    if (this.#size > mostWaiting && !this.#isLeft) {
      this.#isLeft = true;
      this.#leave();
    }
    this.#wake();
  }

  fail(error: Error): void {
    this.#error ??= error;
    this.#wake();
  }

  /** @param left - called when nobody reads any more. */
  async *read(left: () => void): AsyncGenerator<RunEntry, void, void> {
    this.#follow(0);
    try {
      for (;;) {
        const entries = this.#waiting;
        [this.#waiting, this.#size, this.#held] = [[], 0, 0];
        for (const entry of entries) {
          yield entry;
          if (entry.kind === ".") return;
        }
        if (this.#waiting.length > 0) continue;
        if (this.#error) throw this.#error;
        if (this.#isLeft) {
          this.#isLeft = false;
          this.#follow(this.#last);
        }
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      this.#end();
      left();
      if (!this.#error) this.#leave();
    }
  }
}
