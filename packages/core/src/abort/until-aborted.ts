/** The longest delay a timer accepts, in milliseconds; a longer one would fire at once. */
export const longestTimer = 2_147_483_647;

/** Calls `action` after `delayMs`, or never if that is `Infinity`. Returns a function that cancels the call. */
export function afterMs(delayMs: number, action: () => void): () => void {
  if (delayMs === Infinity) return () => {};
  const timer = setTimeout(action, Math.min(Math.max(0, delayMs), longestTimer));
  return () => clearTimeout(timer);
}

/**
 * Waits for `promise` until `signal` is aborted. The promise's outcome after that is ignored: its rejection does not
 * end the process.
 *
 * @throws the signal's reason once it is aborted, even if the promise has settled by then.
 */
export async function untilAborted<T>(promise: PromiseLike<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  const work = Promise.resolve(promise);
  work.catch(() => {});
  signal.throwIfAborted();
  let abort: () => void = () => {};
  const aborted = new Promise<void>((resolve) => {
    abort = resolve;
    signal.addEventListener("abort", abort, { once: true });
  });
  try {
    await Promise.race([work, aborted]);
    signal.throwIfAborted();
    return await work;
  } finally {
    // A signal with listeners is kept alive as long as the signals that it follows.
    signal.removeEventListener("abort", abort);
  }
}
