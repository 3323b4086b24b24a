import { setTimeout as sleep } from "node:timers/promises";

/** How many connections may begin one after another, and the milliseconds after which one more may. */
const [mostAtOnce, oneMoreMs] = [10, 1000];

/**
 * Returns what waits until one more connection to a session may begin: code can break them as often as it likes, at the
 * expense of the service that carries them. It rejects with an `AbortError` if its signal is aborted meanwhile.
 */
export function paced(): (signal: AbortSignal) => Promise<void> {
  let left = mostAtOnce;
  let last = performance.now();
  return async (signal) => {
    const now = performance.now();
    left = Math.min(mostAtOnce, left + (now - last) / oneMoreMs);
    last = now;
    if (left < 1) await sleep((1 - left) * oneMoreMs, undefined, { signal });
    left -= 1;
  };
}
