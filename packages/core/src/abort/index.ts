import { setMaxListeners } from "node:events";

/** The longest delay that a timer takes, in milliseconds; longer ones would fire at once. */
export const longestTimer = 2_147_483_647;

/** Calls `action` when time is up; the function that it returns takes that back. `Infinity`: never. */
export function afterMs(delayMs: number, action: () => void): () => void {
  if (delayMs === Infinity) return () => {};
  const timer = setTimeout(action, Math.min(Math.max(0, delayMs), longestTimer));
  return () => clearTimeout(timer);
}

/**
 * Waits for `promise`, but no longer than until `signal` is aborted. What becomes of the promise after that is nobody's concern:
 * its failure does not end the process.
 *
 * @throws the signal's reason once it is aborted, even if the promise is done by then.
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
    // A signal that somebody listens to is kept for as long as one of those that it follows.
    signal.removeEventListener("abort", abort);
  }
}

/**
 * Waits for `promise` for at most so many milliseconds (`Infinity`: for as long as it takes).
 *
 * @returns what it comes to; `undefined` if it takes longer. Its failure after that does not end the process.
 */
export async function within<T>(milliseconds: number, promise: PromiseLike<T>): Promise<T | undefined> {
  let cancel: () => void = () => {};
  const late = new Promise<undefined>((resolve) => {
    cancel = afterMs(milliseconds, () => resolve(undefined));
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    cancel();
  }
}

/** Aborts `controller` with the reason of the first of `signals` to abort; the function that it returns unlinks them. */
export function followSignals(controller: AbortController, signals: readonly (AbortSignal | undefined)[]): () => void {
  const unlink: (() => void)[] = [];
  for (const signal of signals) {
    if (!signal) continue;
    const abort = (): void => controller.abort(signal.reason);
    if (signal.aborted) abort();
    // Calls that run side by side share a signal; Node takes more than ten of them for a leak.
    if (signal instanceof EventTarget) setMaxListeners(0, signal);
    signal.addEventListener("abort", abort, { once: true });
    unlink.push(() => signal.removeEventListener("abort", abort));
  }
  return () => {
    for (const remove of unlink) remove();
  };
}

/** A signal that is aborted with the first of these. */
export function joinSignals(...signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  return AbortSignal.any(signals.filter((signal) => signal !== undefined));
}

/** A signal that aborts so many milliseconds after another, with its reason. To be disposed of, so that no timer stays. */
export function lateSignal(signal: AbortSignal, milliseconds: number): Disposable & { readonly signal: AbortSignal } {
  const late = new AbortController();
  let cancel: () => void = () => {};
  const wait = (): void => {
    cancel = afterMs(milliseconds, () => late.abort(signal.reason));
  };
  signal.addEventListener("abort", wait, { once: true });
  return {
    signal: late.signal,
    [Symbol.dispose]() {
      signal.removeEventListener("abort", wait);
      cancel();
    },
  };
}
