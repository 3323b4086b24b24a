import { FencedError } from "../errors/fenced-error.ts";

/**
 * The `error.type` of a failed operation, with few distinct values: the `code` of a `FencedError`, the name of another
 * error (`AbortError` for an abort without a reason of its own), or `_OTHER`.
 */
export function errorType(error: unknown): string {
  if (FencedError.isInstance(error)) return error.code;
  return error instanceof Error && error.name !== "" ? error.name : "_OTHER";
}
