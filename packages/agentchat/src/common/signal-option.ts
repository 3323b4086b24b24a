/** Options that carry a signal. */
export interface SignalOptions {
  /** Cancels the call: it rejects with `signal.reason` once nothing that it started is running. */
  readonly signal?: AbortSignal | undefined;
}

/** Options that contain `signal` only if there is one. */
export function signalOption(signal: AbortSignal | undefined): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}
