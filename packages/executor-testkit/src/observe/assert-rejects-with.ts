import assert, { AssertionError } from "node:assert/strict";
import type { CaseContext } from "../case-context.ts";

/** Asserts that a promise rejects with exactly this value, not with an equal one. */
export async function assertRejectsWith(kit: CaseContext, promise: Promise<unknown>, expected: unknown): Promise<void> {
  const outcome = await kit.within(
    "the rejection of an aborted call",
    promise.then(
      () => ({ rejected: false, reason: undefined }),
      (reason: unknown) => ({ rejected: true, reason }),
    ),
  );
  if (!outcome.rejected) throw new AssertionError({ message: "should have rejected, but resolved" });
  assert.ok(
    Object.is(outcome.reason, expected),
    `should have rejected with signal.reason itself (${String(expected)}), but rejected with ${String(outcome.reason)}`,
  );
}
