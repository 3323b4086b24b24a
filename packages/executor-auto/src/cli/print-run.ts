import { once } from "node:events";
import { type CodeBlock, type CodeExecutor, type CodeResult, sanitizeTerminalText } from "@fenced/core";
import { say } from "./usage-error.ts";

/**
 * Runs blocks, and prints their output live. The program waits while nobody reads the output.
 *
 * @returns the exit code.
 */
export async function printRun(
  executor: CodeExecutor,
  blocks: readonly CodeBlock[],
  signal: AbortSignal,
): Promise<number> {
  let exitCode = 0;
  for await (const event of executor.streamCodeBlocks(blocks, { signal })) {
    if (event.type === "stdout") await print(process.stdout, event.text, signal);
    else if (event.type === "stderr") await print(process.stderr, event.text, signal);
    else if (event.type === "result") {
      ({ exitCode } = event.result);
      const outcome = describeEnd(event.result, blocks.length);
      if (outcome !== undefined) say(outcome);
    }
  }
  return exitCode;
}

/** What the output does not say: that time was up, and that blocks were not run. */
function describeEnd({ blocks, timedOut }: CodeResult, count: number): string | undefined {
  const { length } = blocks;
  const isKilled = blocks.at(-1)?.timedOut === true;
  if (timedOut && !isKilled) return `Time was up before block ${length + 1} of ${count}, which was not run.`;
  if (!isKilled && length === count) return undefined;
  const what = `Block ${length} of ${count} ${isKilled ? "timed out and was killed" : "failed"}`;
  return length === count ? `${what}.` : `${what}; the blocks after it were not run.`;
}

/** Keeps programs from controlling the terminal. Output to a file or a pipe is unchanged. */
async function print(stream: NodeJS.WriteStream, text: string, signal: AbortSignal): Promise<void> {
  const shown = stream.isTTY ? sanitizeTerminalText(text) : text;
  if (!stream.write(shown) && stream.writable) await once(stream, "drain", { signal });
}
