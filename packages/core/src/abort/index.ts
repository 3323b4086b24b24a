import { setMaxListeners } from "node:events";
// oxlint-disable-next-line import/no-unassigned-import -- has an effect, before any class is defined
import "../runtime/disposal.ts";

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

/**
 * Waits for `promise` for at most `milliseconds` (`Infinity`: no limit).
 *
 * @returns the promise's value, or `undefined` if it takes longer. A rejection after that does not end the process.
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

/** Aborts `controller` with the reason of the first of `signals` to abort. Returns a function that unlinks them. */
export function followSignals(controller: AbortController, signals: readonly (AbortSignal | undefined)[]): () => void {
  const unlink: (() => void)[] = [];
  for (const signal of signals) {
    if (!signal) continue;
    const abort = (): void => controller.abort(signal.reason);
    if (signal.aborted) abort();
    // Concurrent calls share a signal; Node reports more than ten listeners as a leak.
    if (signal instanceof EventTarget) setMaxListeners(0, signal);
    signal.addEventListener("abort", abort, { once: true });
    unlink.push(() => signal.removeEventListener("abort", abort));
  }
  return () => {
    for (const remove of unlink) remove();
  };
}

/** The sources of joined signals. */
const sources = new WeakMap<AbortSignal, readonly AbortSignal[]>();

/**
 * A signal that aborts as soon as one of these does. Use it instead of `AbortSignal.any`, which on Node 20 does not keep
 * its sources: if nothing else refers to an `AbortSignal.timeout`, a garbage collection ends the time limit.
 */
export function joinSignals(...signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  const given = signals.filter((signal) => signal !== undefined);
  // oxlint-disable-next-line no-restricted-properties -- this is the function to use instead
  const joined = AbortSignal.any(given);
  sources.set(joined, given);
  return joined;
}

/** A signal that aborts `milliseconds` after another one, with its reason. Dispose of it to clear its timer. */
export function lateSignal(signal: AbortSignal, milliseconds: number): Disposable & { readonly signal: AbortSignal } {
  const late = new AbortController();
  let cancel: () => void = () => {};
  const wait = (): void => {
    cancel = afterMs(milliseconds, () => late.abort(signal.reason));
  };
  if (signal.aborted) wait();
  else signal.addEventListener("abort", wait, { once: true });
  return {
    signal: late.signal,
    [Symbol.dispose]() {
      signal.removeEventListener("abort", wait);
      cancel();
    },
  };
}
