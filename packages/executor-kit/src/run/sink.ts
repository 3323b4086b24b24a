import { untilAborted } from "@fenced/core/abort";
import type { StreamName } from "../output/output-collector.ts";
import type { BlockEvent } from "./block-run.ts";

/** Receives what a program outputs. */
export interface Sink<Event = BlockEvent> {
  /**
   * Aborted when the program must end: it timed out, the caller aborted or left, or the executor stops. Kill everything
   * that the program started; the run must finish once it is dead. The reason is `timeIsUp` if the outcome will still
   * be reported.
   */
  readonly signal: AbortSignal;

  /**
   * Takes an event, and copies what it keeps, so that the event's memory can be reused when this returns. Never throws.
   *
   * @returns `undefined` if there is room for more. Otherwise a promise, which never rejects: make the program wait for
   * it. If it cannot wait at once, make sure that only a bounded amount can follow. An abort with any reason but
   * `timeIsUp` resolves all promises.
   */
  write(event: Event): Promise<void> | undefined;
}

/** A piece of a program's output. */
export interface OutputPiece<Name extends string = StreamName> {
  readonly type: Name;
  readonly data: Uint8Array;
}

/** Writes events, and waits until there is room for more, or the program must end. */
export async function writeAll<Event>(sink: Sink<Event>, events: Iterable<Event>): Promise<void> {
  for (const event of events) {
    const room = sink.write(event);
    if (room) await untilAborted(room, sink.signal).catch(() => {});
  }
}
