import type { CodeBlock, CodeExecutor, CodeResult } from "@fenced/core";
import { deferred } from "./deferred.ts";

/** A block that has begun. */
export interface BegunBlock {
  /** Its result; a rejection may be handled later. */
  readonly result: Promise<CodeResult>;
}

/**
 * Starts a block and waits until it has printed something, for tests that then interfere with the place where it runs.
 *
 * @throws the run's error if it rejects before the block has printed anything.
 *
 * @example
 * const { result } = await beginBlock(executor, { language: "sh", code: "echo started; sleep 1000" });
 * await docker("kill", executor.containerName);
 * await assert.rejects(result);
 */
export async function beginBlock(executor: CodeExecutor, block: CodeBlock): Promise<BegunBlock> {
  const printed = deferred();
  const run = async (): Promise<CodeResult> => {
    for await (const event of executor.streamCodeBlocks([block])) {
      if (event.type === "stdout") printed.resolve();
      if (event.type === "result") return event.result;
    }
    throw new Error("the stream ended without a result");
  };
  const result = run();
  result.catch(() => {});
  await Promise.race([printed.promise, result]);
  return { result };
}
