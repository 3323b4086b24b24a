import { type CodeResult, type ExecutionEvent, makeCodeResult, SubmittedRuns } from "../../src/index.ts";

/** The blocks that the tests submit. */
export const someBlocks = [{ language: "python", code: "print(1)" }];

/** A result without any blocks. */
export const emptyResult: CodeResult = makeCodeResult({
  exitCode: 0,
  displays: [],
  timedOut: false,
  truncated: false,
  stateLost: false,
  durationMs: 1,
  blocks: [],
});

/** What one block prints. */
export function printed(text: string): ExecutionEvent {
  return { type: "stdout", index: 0, text };
}

/** Runs whose events the test decides. */
export function runsOf(stream: (signal: AbortSignal | undefined) => AsyncIterable<ExecutionEvent>): SubmittedRuns {
  return new SubmittedRuns({ stream: (_blocks, { signal }) => stream(signal) });
}
