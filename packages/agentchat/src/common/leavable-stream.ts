import { followSignals } from "@fenced/core/abort";

/**
 * A stream that aborts its work when the consumer leaves it, even while the consumer is still waiting for the next
 * item. A plain generator would only notice at its next `yield`, perhaps after a block that runs for an hour.
 *
 * @param start - creates the stream; its signal is aborted with `signal` and when the consumer leaves.
 */
export function leavableStream<T>(
  start: (signal: AbortSignal) => AsyncGenerator<T, void, void>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T, void, void> {
  const controller = new AbortController();
  const items = follow(start, signal, controller);
  const end = items.return.bind(items);
  items.return = (value) => {
    controller.abort(new DOMException("The stream was left", "AbortError"));
    return end(value);
  };
  return items;
}

async function* follow<T>(
  start: (signal: AbortSignal) => AsyncGenerator<T, void, void>,
  signal: AbortSignal | undefined,
  controller: AbortController,
): AsyncGenerator<T, void, void> {
  const unlink = followSignals(controller, [signal]);
  try {
    yield* start(controller.signal);
  } finally {
    unlink();
  }
}
