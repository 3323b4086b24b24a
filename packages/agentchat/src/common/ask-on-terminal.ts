import { createInterface } from "node:readline/promises";
import { untilAborted } from "@fenced/core/abort";
import { type SignalOptions, signalOption } from "./signal-option.ts";

/** Settled when all questions so far are answered. */
let questions: Promise<unknown> = Promise.resolve();

/**
 * Asks on the terminal and reads one line. Questions are asked one after another, wherever they come from: a key that answers one
 * must not answer another. The standard streams are free again when the promise settles.
 *
 * @returns the line; `undefined` if the input ends first, as Ctrl+D ends it.
 */
export async function askOnTerminal(prompt: string, options: SignalOptions): Promise<string | undefined> {
  const before = questions;
  let over: () => void = () => {};
  const own = new Promise<void>((resolve) => {
    over = resolve;
  });
  questions = before.then(() => own);
  try {
    await untilAborted(before, options.signal);
    return await ask(prompt, options);
  } finally {
    over();
  }
}

/** Resolves when no question is on the terminal: what is printed below one could be taken for another. */
export async function noQuestionOnTerminal(): Promise<void> {
  for (let last; last !== questions;) {
    last = questions;
    await last;
  }
}

async function ask(prompt: string, { signal }: SignalOptions): Promise<string | undefined> {
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
