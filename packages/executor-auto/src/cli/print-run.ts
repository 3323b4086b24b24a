import { once } from "node:events";
import { type CodeBlock, type CodeExecutor, sanitizeTerminalText } from "@fenced/core";
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
      const { length } = event.result.blocks;
      if (length < blocks.length) say(`Block ${length} of ${blocks.length} failed; the blocks after it were not run.`);
    }
  }
  return exitCode;
}

/** Keeps programs from controlling the terminal. Output to a file or a pipe is unchanged. */
async function print(stream: NodeJS.WriteStream, text: string, signal: AbortSignal): Promise<void> {
  const shown = stream.isTTY ? sanitizeTerminalText(text) : text;
  if (!stream.write(shown) && stream.writable) await once(stream, "drain", { signal });
}
