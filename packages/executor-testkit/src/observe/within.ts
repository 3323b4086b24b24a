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

/**
 * Polls until `probe` returns something other than `undefined`.
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
    const answer = await within(milliseconds, what, Promise.resolve(probe()));
    if (answer !== undefined) return answer;
    if (Date.now() > end) throw new AssertionError({ message: `never happened within ${milliseconds} ms: ${what}` });
    await sleep(50);
  }
}
