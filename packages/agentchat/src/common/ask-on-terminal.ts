import { createInterface } from "node:readline/promises";
import { untilAborted } from "@fenced/core/abort";
import { type SignalOptions, signalOption } from "./signal-option.ts";

/** Settles when all questions so far are answered. */
let questions: Promise<unknown> = Promise.resolve();
/** True if the last question was withdrawn: a person may still be typing an answer to it. */
let takenBack = false;

/** Milliseconds without a key press before keys count: after a question was withdrawn, and otherwise. */
const [quietAfterChangeMs, quietMs] = [1000, 20];

/** How to ask. */
interface AskOptions extends SignalOptions {
  /**
   * Accept only what is typed after the question appears: drop earlier keys and, after a question was withdrawn, all
   * keys before a second of silence. Default: false, for text that a person may type ahead.
   */
  readonly fresh?: boolean;
}

/**
 * Asks on the terminal and reads one line. Questions are asked one after another, wherever they come from: a key that
 * answers one must not answer another. Releases the standard streams before the promise settles.
 *
 * @returns the line; `undefined` if the input ends first, for example with Ctrl+D.
 */
export async function askOnTerminal(prompt: string, options: AskOptions): Promise<string | undefined> {
  const before = questions;
  let over: () => void = () => {};
  const own = new Promise<void>((resolve) => {
    over = resolve;
  });
  questions = before.then(() => own);
  try {
    await untilAborted(before, options.signal);
    return await ask(options.fresh === true ? await forgetKeys(prompt, options) : prompt, options);
  } finally {
    over();
  }
}

/** Resolves when no question is on the terminal: text printed below one could be mistaken for another. */
export async function noQuestionOnTerminal(): Promise<void> {
  for (let last; last !== questions;) {
    last = questions;
    await last;
  }
}

/** Drops earlier keys, and returns the prompt to show. */
async function forgetKeys(prompt: string, { signal }: SignalOptions): Promise<string> {
  if (!takenBack) {
    await dropKeys(quietMs, signal);
    return prompt;
  }
  process.stdout.write(`${prompt}\nThis is a new question: read it first. Key presses count again in a second.\n`);
  await dropKeys(quietAfterChangeMs, signal);
  return prompt.slice(prompt.lastIndexOf("\n") + 1);
}

/** Discards keys until none has been pressed for `silenceMs`. */
async function dropKeys(silenceMs: number, signal: AbortSignal | undefined): Promise<void> {
  const { stdin } = process;
  let silent: () => void = () => {};
  const silence = new Promise<void>((resolve) => {
    silent = resolve;
  });
  let timer: NodeJS.Timeout | undefined;
  const wait = (): void => {
    clearTimeout(timer);
    timer = setTimeout(silent, silenceMs);
  };
  const drop = (keys: Buffer | string): void => {
    wait();
    if (Buffer.from(keys).includes(ctrlC)) interrupt();
  };
  // Otherwise the terminal buffers an unfinished line, which would become the start of the answer.
  stdin.setRawMode(true);
  stdin.on("data", drop).resume();
  wait();
  try {
    await untilAborted(silence, signal);
  } finally {
    clearTimeout(timer);
    stdin.off("data", drop).pause();
    stdin.setRawMode(false);
  }
}

const ctrlC = 3;

/** Ctrl+C at a question reaches this program as a key, not as a signal. */
function interrupt(): void {
  if (!process.emit("SIGINT", "SIGINT")) process.kill(process.pid, "SIGINT");
}

async function ask(prompt: string, { signal }: SignalOptions): Promise<string | undefined> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  terminal.on("SIGINT", interrupt);
  const ended = new Promise<undefined>((resolve) => {
    terminal.once("close", () => resolve(undefined));
  });
  try {
    const answer = await Promise.race([terminal.question(prompt, signalOption(signal)), ended]);
    takenBack = false;
    return answer;
  } catch {
    takenBack = signal?.aborted === true;
    if (takenBack) process.stdout.write("\nThe question above was withdrawn.\n");
    signal?.throwIfAborted();
    return undefined;
  } finally {
    terminal.close();
  }
}
