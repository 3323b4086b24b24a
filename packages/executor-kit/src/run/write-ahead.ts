import { untilAborted } from "@fenced/core/abort";
import type { BlockEvent } from "./block-run.ts";
import type { Sink } from "./sink.ts";

/** Bytes that may follow before the program waits for a slow reader. */
const windowBytes = 262_144;

/**
 * Writes to a sink a little ahead of a slow reader. For a place that reports the end of a program behind its output: the
 * end is then noticed when it comes, and not when the reader has taken the output, which may be after the time limit.
 */
export class WriteAhead<Event = BlockEvent> {
  readonly #sink: Sink<Event>;
  #ahead = 0;

  constructor(sink: Sink<Event>) {
    this.#sink = sink;
  }

  /** Waits until more may follow, or the program must end. @param bytes - the event's size. */
  async write(event: Event, bytes: number): Promise<void> {
    const room = this.#sink.write(event);
    this.#ahead = room ? this.#ahead + bytes : 0;
    if (!room || this.#ahead < windowBytes) return;
    await untilAborted(room, this.#sink.signal).catch(() => {});
    this.#ahead = 0;
  }
}
