/** Rejects with the signal's reason as soon as it is aborted, even if what is waited for takes no notice of it. */
export async function abortable<T>(pending: PromiseLike<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return pending;
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the caller's own reason, whatever it is
    onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([aborted, pending]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
