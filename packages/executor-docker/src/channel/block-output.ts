import type { BlockEvent } from "@fenced/executor-kit";
import type { SharedMemory } from "./read-buffers.ts";

/** Smaller pieces are copied: they would hold a buffer many times their size for as long as they wait. */
const smallPiece = 65_536;

interface Piece {
  readonly event: { readonly type: "stdout" | "stderr"; readonly data: Buffer };
  readonly memory: SharedMemory | undefined;
}

/** What a block wrote and nobody has taken yet. */
export class BlockOutput<Outcome> {
  #queue: Piece[] = [];
  #outcome: { readonly value: Outcome } | undefined;
  #failure: { readonly error: unknown } | undefined;
  #waiting = 0;
  #wake: () => void = () => {};

  /** Bytes that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** @param shared - the memory that `data` lies in, if it is used again; held until the piece is consumed. */
  push(type: "stdout" | "stderr", data: Buffer, shared?: SharedMemory): void {
    const memory = data.length < smallPiece ? undefined : shared;
    memory?.hold();
    this.#queue.push({ event: { type, data: shared && !memory ? Buffer.from(data) : data }, memory });
    this.#waiting += data.length;
    this.#wake();
  }

  /** The block has ended, and all of its output is here. */
  end(value: Outcome): void {
    this.#outcome ??= { value };
    this.#wake();
  }

  /** Nobody will ever know how the block ended. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#wake();
  }

  /**
   * Everything that the block writes, then how it ended.
   *
   * @param taken - told about the bytes that were consumed.
   * @throws what `fail` was given, once the output before it is consumed.
   */
  async *events(taken: (bytes: number) => void): AsyncGenerator<BlockEvent, Outcome, void> {
    for (;;) {
      const batch = this.#queue;
      this.#queue = [];
      for (const { event, memory } of batch) {
        yield event;
        memory?.release();
        this.#waiting -= event.data.length;
        taken(event.data.length);
      }
      if (this.#queue.length > 0) continue;
      if (this.#outcome) return this.#outcome.value;
      if (this.#failure) throw this.#failure.error;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
