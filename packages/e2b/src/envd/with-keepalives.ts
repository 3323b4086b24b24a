import { setTimeout as sleep } from "node:timers/promises";

/**
 * Yields the items, and `keepalive` after so many milliseconds without one.
 *
 * @param milliseconds - `undefined`: never.
 */
export async function* withKeepalives<T>(
  items: AsyncIterable<T>,
  milliseconds: number | undefined,
): AsyncGenerator<T | "keepalive", void, void> {
  if (milliseconds === undefined) {
    yield* items;
    return;
  }
  const iterator = items[Symbol.asyncIterator]();
  try {
    let pending = iterator.next();
    for (;;) {
      const waiting = new AbortController();
      const silence = sleep(milliseconds, "keepalive" as const, { signal: waiting.signal, ref: false });
      const next = await Promise.race([pending, silence.catch(() => "keepalive" as const)]);
      waiting.abort();
      if (next === "keepalive") yield next;
      else if (next.done === true) return;
      else {
        yield next.value;
        pending = iterator.next();
      }
    }
  } finally {
    await iterator.return?.();
  }
}

/** The interval for which a client asks, in milliseconds. */
export function keepaliveMs(headers: Headers): number | undefined {
  const seconds = Number(headers.get("keepalive-ping-interval"));
  return Number.isFinite(seconds) && seconds > 0 ? Math.max(1, Math.min(seconds, 3600)) * 1000 : undefined;
}
