/** What an error says. Anything can be thrown, also what cannot be made into text. */
export function messageOf(error: unknown): string {
  try {
    const said: unknown = error instanceof Error ? error.message : error;
    return String(said);
  } catch {
    return "It threw a value that cannot be shown as text.";
  }
}
