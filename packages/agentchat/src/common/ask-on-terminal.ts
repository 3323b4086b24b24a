import { createInterface } from "node:readline/promises";
import { type SignalOptions, signalOption } from "./signal-option.ts";

/**
 * Asks on the terminal and reads one line. The standard streams are free again when the promise settles.
 *
 * @returns the line; `undefined` if the input ends first, as Ctrl+D ends it.
 */
export async function askOnTerminal(prompt: string, { signal }: SignalOptions): Promise<string | undefined> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  // Ctrl+C at a question reaches readline as an event, not the process as a signal.
  terminal.on("SIGINT", () => process.emit("SIGINT", "SIGINT") || process.kill(process.pid, "SIGINT"));
  const ended = new Promise<undefined>((resolve) => {
    terminal.once("close", () => resolve(undefined));
  });
  try {
    return await Promise.race([terminal.question(prompt, signalOption(signal)), ended]);
  } catch {
    signal?.throwIfAborted();
    return undefined;
  } finally {
    terminal.close();
  }
}
