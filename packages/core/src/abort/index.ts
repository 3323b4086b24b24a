import { setMaxListeners } from "node:events";
// oxlint-disable-next-line import/no-unassigned-import -- has an effect, before any class is defined
import "../runtime/disposal.ts";
import { afterMs } from "./until-aborted.ts";

export { afterMs, longestTimer, untilAborted } from "./until-aborted.ts";

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
