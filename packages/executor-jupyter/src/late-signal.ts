/** A signal that aborts some milliseconds after another. To be disposed of, so that no timer stays. */
export function lateSignal(signal: AbortSignal, milliseconds: number): Disposable & { readonly signal: AbortSignal } {
  const late = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const wait = (): void => {
    timer = setTimeout(() => late.abort(signal.reason), milliseconds);
  };
  signal.addEventListener("abort", wait, { once: true });
  return {
    signal: late.signal,
    [Symbol.dispose]() {
      signal.removeEventListener("abort", wait);
      clearTimeout(timer);
    },
  };
}
