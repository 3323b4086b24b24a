/** The command line is wrong. */
export class UsageError extends Error {}

/** Tells the user something that is not part of the program's output. */
export function say(message: string): void {
  process.stderr.write(`${message}\n`);
}
