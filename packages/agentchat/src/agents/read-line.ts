import { InvalidInputError } from "@fenced/core";
import { askOnTerminal } from "../common/ask-on-terminal.ts";
import type { SignalOptions } from "../common/signal-option.ts";
import { readPipedLine } from "./read-piped-line.ts";

/** Asks on the standard streams and reads one line. Releases the streams before the promise settles. */
export async function readLine(prompt: string, options: SignalOptions): Promise<string> {
  const line = process.stdin.isTTY ? await askOnTerminal(prompt, options) : await askOnPipe(prompt, options);
  if (line !== undefined) return line;
  throw new InvalidInputError("Standard input ended before there was an answer", {
    remedy: "Run the program in a terminal, or set the option inputFunc of UserProxyAgent.",
  });
}

async function askOnPipe(prompt: string, { signal }: SignalOptions): Promise<string | undefined> {
  signal?.throwIfAborted();
  process.stdout.write(prompt);
  return readPipedLine(process.stdin, signal);
}
