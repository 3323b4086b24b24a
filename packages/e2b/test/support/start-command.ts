import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { programArguments } from "@fenced/test-support/program-arguments";
import { onTestFinished } from "vitest";

const program = new URL("../../src/cli.ts", import.meta.url);

/** A running `fenced-e2b`, which ends with the test. */
export interface StartedCommand {
  readonly child: ChildProcessWithoutNullStreams;
  /** The next line of its standard output. */
  readonly line: () => Promise<string>;
  /** Waits until its standard error has the text, and returns all of it. */
  readonly said: (words: string) => Promise<string>;
}

/** Starts the command `fenced-e2b`: its sources, or where `FENCED_BUILT` is set, what was built from them. */
export function startCommand(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
): StartedCommand {
  const child = spawn(process.execPath, [...programArguments(program), ...args], { env: { ...process.env, ...env } });
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "close");
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  return {
    child,
    line: async () => String((await lines.next()).value),
    said: async (words) => {
      while (!errors.includes(words)) await once(child.stderr, "data");
      return errors;
    },
  };
}
