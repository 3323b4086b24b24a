import { AssertionError } from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Adds a deadline to a promise that only a hang can miss.
 *
 * @throws AssertionError that names `what`, once `milliseconds` have passed.
 */
export async function within<T>(milliseconds: number, what: string, promise: PromiseLike<T>): Promise<T> {
  const settled = new AbortController();
  const deadline = sleep(milliseconds, undefined, { signal: settled.signal }).then(
    () => {
      throw new AssertionError({ message: `hangs: ${what} (gave up after ${milliseconds} ms)` });
    },
    () => new Promise<never>(() => {}),
  );
  try {
    return await Promise.race([promise, deadline]);
  } finally {
    settled.abort();
  }
}

/** Turns a check that may fail into an answer for `eventually`. */
export function passes(check: Promise<unknown>): Promise<true | undefined> {
  return check.then(
    () => true,
    () => undefined,
  );
}

/** Shortest and longest pause between two polls in milliseconds. */
const [shortestPauseMs, longestPauseMs] = [50, 500];

/**
 * Polls until `probe` returns something other than `undefined`.
 *
 * Calls a slow probe, such as one that reads a file on another host, less often, so that it does not slow down what it
 * waits for.
 *
 * @throws AssertionError that names `what`, once `milliseconds` have passed.
 */
export async function eventually<T>(
  milliseconds: number,
  what: string,
  probe: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
  const end = Date.now() + milliseconds;
  for (;;) {
    const startedAt = Date.now();
    const answer = await within(milliseconds, what, Promise.resolve(probe()));
    if (answer !== undefined) return answer;
    if (Date.now() > end) throw new AssertionError({ message: `never happened within ${milliseconds} ms: ${what}` });
    await sleep(Math.min(longestPauseMs, Math.max(shortestPauseMs, 2 * (Date.now() - startedAt))));
  }
}
