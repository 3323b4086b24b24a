import { FunctionSetupError, type CodeBlock } from "@fenced/core";
import type { BlockEvent, BlockOutcome } from "../run/block-run.ts";
import { runOneBlock, type BlockConditions } from "../run/run-one-block.ts";
import type { SetupProgram } from "./function-setup.ts";

/** Setting functions up may install packages, which takes long and must end all the same. */
const timeoutMs = 600_000;

/** Where a set-up program runs. */
export interface SetupConditions extends Pick<BlockConditions, "signal" | "begin"> {
  /** The languages in which the executor offers functions. */
  readonly languages: readonly string[];
  /** Starts a block of the executor. */
  start(
    block: CodeBlock,
    options: { readonly timeoutMs: number },
    signal: AbortSignal,
  ): AsyncGenerator<BlockEvent, BlockOutcome, void>;
}

/**
 * Runs a program that sets functions up, like any block.
 *
 * @throws FunctionSetupError with the reason, if it fails or nothing runs its language.
 */
export async function runSetup(program: SetupProgram, conditions: SetupConditions): Promise<void> {
  const { language, code } = program;
  if (!conditions.languages.includes(language)) {
    throw new FunctionSetupError(`${language} functions cannot be set up: nothing here runs ${language}`, {
      remedy: `Install ${language} where the code runs, or leave the functions out.`,
    });
  }
  const { signal, begin } = conditions;
  const start = (limit: AbortSignal) => conditions.start({ language, code }, { timeoutMs }, limit);
  const limits = { index: 0, signal, texts: false, timeoutMs, maxOutputBytes: 1_048_576, begin };
  for (const events = runOneBlock(start, limits); ;) {
    const { value, done } = await events.next();
    if (done !== true) continue;
    program.check(value.result);
    return;
  }
}
