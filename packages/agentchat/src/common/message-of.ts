/** The message of an error. Anything can be thrown, even values that cannot be converted to text. */
export function messageOf(error: unknown): string {
  try {
    const said: unknown = error instanceof Error ? error.message : error;
    return String(said);
  } catch {
    return "It threw a value that cannot be shown as text.";
  }
}
