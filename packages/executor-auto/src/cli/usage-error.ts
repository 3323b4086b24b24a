/** The command line cannot be right. */
export class UsageError extends Error {}

/** Tells the user something that is not the program's output. */
export function say(message: string): void {
  process.stderr.write(`${message}\n`);
}
