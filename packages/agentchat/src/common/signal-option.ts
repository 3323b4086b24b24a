/** Options that carry a signal. */
export interface SignalOptions {
  /** Ends the call: it rejects with `signal.reason`, once nothing of it is running any more. */
  readonly signal?: AbortSignal | undefined;
}

/** The options for a call that takes a signal only if there is one. */
export function signalOption(signal: AbortSignal | undefined): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}
