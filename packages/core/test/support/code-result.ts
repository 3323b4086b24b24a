import type { CodeResult } from "../../src/index.ts";

/** A result of one block, with the given fields. */
export function codeResult(fields: Partial<CodeResult> = {}): CodeResult {
  const { exitCode = 0, output = "", timedOut = false, truncated = false } = fields;
  const block = { exitCode, output, stdout: output, stderr: "", durationMs: 5, timedOut, truncated };
  return { ...block, displays: [], stateLost: false, blocks: [block], ...fields };
}
