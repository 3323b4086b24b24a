import { sanitizeTerminalText } from "@fenced/core";

/** The command line is wrong. */
export class UsageError extends Error {}

/** Tells the user something that is not part of the program's output. A name in it may come from the Markdown. */
export function say(message: string): void {
  process.stderr.write(`${sanitizeTerminalText(message)}\n`);
}
