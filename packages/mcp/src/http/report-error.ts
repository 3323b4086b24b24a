/** Tells whoever wants to know, or warns. */
export function reportError(error: unknown, onError: ((error: unknown) => void) | undefined): void {
  if (onError !== undefined) onError(error);
  else process.emitWarning(error instanceof Error ? error : String(error));
}
