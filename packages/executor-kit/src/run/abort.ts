import { setMaxListeners } from "node:events";

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

/** Waits for `promise`, but no longer than until `signal` is aborted; then throws its reason. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let abort: () => void = () => {};
  const aborted = new Promise<void>((resolve) => {
    abort = resolve;
    signal.addEventListener("abort", abort, { once: true });
  });
  try {
    await Promise.race([promise, aborted]);
    signal.throwIfAborted();
    return await promise;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
