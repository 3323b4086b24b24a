import { createInterface } from "node:readline/promises";
import { InvalidInputError } from "@fenced/core";
import { type SignalOptions, signalOption } from "../common/signal-option.ts";
import { readPipedLine } from "./read-piped-line.ts";

/** Asks on the standard streams and reads one line. They are free again when the promise settles. */
export async function readLine(prompt: string, options: SignalOptions): Promise<string> {
  if (process.stdin.isTTY) return askOnTerminal(prompt, options);
  options.signal?.throwIfAborted();
  process.stdout.write(prompt);
  const line = await readPipedLine(process.stdin, options.signal);
  if (line === undefined) throw inputEnded();
  return line;
}

async function askOnTerminal(prompt: string, { signal }: SignalOptions): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  // Ctrl+C while a question stands comes as an event of the terminal, not as a signal.
  terminal.on("SIGINT", () => process.emit("SIGINT", "SIGINT") || process.kill(process.pid, "SIGINT"));
  const ended = new Promise<never>((_, reject) => {
    terminal.once("close", () => reject(inputEnded()));
  });
  try {
    return await Promise.race([terminal.question(prompt, signalOption(signal)), ended]);
  } catch {
    signal?.throwIfAborted();
    throw inputEnded();
  } finally {
    // Closing is what the promise above waits for; nobody waits for it any more.
    ended.catch(() => undefined);
    terminal.close();
  }
}

function inputEnded(): InvalidInputError {
  return new InvalidInputError("The standard input ended before an answer came", {
    remedy: "Run the program in a terminal, or give UserProxyAgent an inputFunc.",
  });
}
