import { canonicalLanguage, WorkspacePathError, type CodeBlock } from "@fenced/core";
import { filenameDirective, filenameNotInWorkspace } from "../workspace/filename-directive.ts";
import { normalizeWorkspacePath } from "../workspace/workspace-path.ts";
import type { BlockEvent, BlockOutcome } from "./block-run.ts";

/** A block that can run, or the sentence that says why it cannot. */
export type PreparedBlock =
  | { readonly language: string; readonly code: string; readonly filename?: string }
  | { readonly problem: string };

/**
 * Reads a block's language and file name.
 *
 * @param languages - canonical names of the languages that can be run.
 * @param whyMissing - tells why a known language is not among them.
 */
export function prepareBlock(
  { language: given, code }: CodeBlock,
  languages: readonly string[],
  whyMissing: (language: string) => string | undefined,
): PreparedBlock {
  const language = canonicalLanguage(given);
  if (!languages.includes(language)) {
    return {
      problem: whyMissing(language) ?? `unknown language "${given}"; this executor runs: ${languages.join(", ")}`,
    };
  }
  const named = filenameDirective(code);
  if (named === undefined) return { language, code };
  try {
    return { language, code, filename: normalizeWorkspacePath(named) };
  } catch (error) {
    if (WorkspacePathError.isInstance(error)) return { problem: filenameNotInWorkspace };
    throw error;
  }
}

/** The run of a block that fails with a sentence instead of running. */
export async function* failedBlock(problem: string): AsyncGenerator<BlockEvent, BlockOutcome, void> {
  yield { type: "stderr", data: `${problem}\n` };
  return { exitCode: 1 };
}
