import { FencedError } from "@fenced/core";

/**
 * For what is cleaned up on a server that may be gone, or refuse.
 *
 * @throws whatever is neither.
 */
export function ignoreUnreachable(error: unknown): void {
  if (!FencedError.isInstance(error)) throw error;
}
