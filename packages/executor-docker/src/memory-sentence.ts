import { memoryLimit } from "./container/container-options.ts";
import type { DockerExecutorOptions } from "./docker-executor-options.ts";

/** What a block is told whose container ran out of memory. */
export function memorySentence(options: DockerExecutorOptions): string {
  const limit = memoryLimit(options);
  const what = limit === undefined ? "the memory" : `the ${Math.round(limit / 1_048_576)} MiB of memory`;
  return `\nThe block was killed because ${what} of its container were used up. Process less data at a time.\n`;
}
