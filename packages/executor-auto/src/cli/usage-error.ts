import { sanitizeTerminalText } from "@fenced/core";

/** The command line is wrong. */
export class UsageError extends Error {}

/** Prints a message that is not part of the program's output; sanitized, because it may quote the Markdown. */
export function say(message: string): void {
  process.stderr.write(`${sanitizeTerminalText(message)}\n`);
}
