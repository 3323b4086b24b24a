import type { BlockEvent, BlockOutcome } from "./block-run.ts";

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

/** Writes what a generator yields to a sink, no faster than the sink takes it. */
export async function runInto(
  run: AsyncGenerator<BlockEvent, BlockOutcome, void> | Promise<BlockOutcome>,
  sink: Sink,
): Promise<BlockOutcome> {
  if (!(Symbol.asyncIterator in run)) return run;
  for (;;) {
    const step = await run.next();
    if (step.done === true) return step.value;
    const room = sink.write(step.value);
    if (room) await room;
  }
}
