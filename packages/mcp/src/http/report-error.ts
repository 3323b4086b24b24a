/** Calls `onError` if there is one, or warns. */
export function reportError(error: unknown, onError: ((error: unknown) => void) | undefined): void {
  if (onError !== undefined) onError(error);
  else process.emitWarning(error instanceof Error ? error : String(error));
}
