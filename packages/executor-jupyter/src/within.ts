import { setTimeout as sleep } from "node:timers/promises";

/** What a promise comes to within a time; `undefined` if it takes longer. */
export async function within<T>(milliseconds: number, promise: Promise<T>): Promise<T | undefined> {
  const timer = new AbortController();
  // Cancelled when the promise was faster, so that no timer stays.
  const late = sleep(milliseconds, undefined, { signal: timer.signal }).catch(() => undefined);
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer.abort();
  }
}
