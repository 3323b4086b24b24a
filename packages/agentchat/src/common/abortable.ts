import { lateSignal, untilAborted } from "@fenced/core/abort";

/** How a wait ends early. */
export interface AbortableOptions {
  /** Ends the wait. */
  readonly signal: AbortSignal | undefined;
  /** Milliseconds that the work may take to end after an abort before it is abandoned. */
  readonly graceMs: number;
}

/**
 * Waits for work that users implement (a model call, a tool, a question to a person). After an abort it rejects with
 * `signal.reason` once the work has ended, or after the grace period if the work ignores the signal: Ctrl+C must not
 * hang.
 */
export async function abortable<T>(work: PromiseLike<T> | T, { signal, graceMs }: AbortableOptions): Promise<T> {
  if (signal === undefined) return work;
  using late = lateSignal(signal, graceMs);
  try {
    return await untilAborted(Promise.resolve(work), late.signal);
  } finally {
    signal.throwIfAborted();
  }
}

/** Does the same for each step of a stream, and for its end if the consumer leaves early. */
export async function* abortableStream<T>(
  stream: AsyncIterable<T>,
  options: AbortableOptions,
): AsyncGenerator<T, void, void> {
  const iterator = stream[Symbol.asyncIterator]();
  let ended = false;
  try {
    for (;;) {
      const step = await abortable(iterator.next(), options);
      if (step.done === true) {
        ended = true;
        return;
      }
      yield step.value;
    }
  } finally {
    if (!ended) await close(iterator, options);
  }
}

async function close(iterator: AsyncIterator<unknown>, options: AbortableOptions): Promise<void> {
  try {
    await abortable(iterator.return?.(), options);
  } catch {
    // The stream is being left because of an earlier error or abort, which is what the caller should see.
  }
}
