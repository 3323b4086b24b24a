import { AssertionError } from "node:assert/strict";
import { FencedError } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";

/**
 * Checks that a call settles in time, in any way that is allowed: with a result, or with one of Fenced's errors.
 * Hostile code may make a call fail, but not hang or throw something unexpected.
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
