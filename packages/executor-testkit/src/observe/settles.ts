import { AssertionError } from "node:assert/strict";
import { FencedError } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";

/**
 * Checks that a call ends in time, in whatever way an executor may end it: with an answer, or with an error of ours. What
 * hostile code can bring about is that a call fails, not that it hangs or throws what nobody expects.
 */
export async function settles<T>(kit: CaseContext, what: string, promise: PromiseLike<T>): Promise<T | undefined> {
  try {
    return await kit.within(what, promise);
  } catch (error) {
    if (FencedError.isInstance(error)) return undefined;
    if (error instanceof AssertionError) throw error;
    throw new AssertionError({ message: `${what} threw no FencedError, but ${String(error)}` });
  }
}
