import type { SshExecutorOptions } from "@fenced/executor-ssh";
import type { RefusingUndefined } from "@fenced/test-support/refusing-undefined";
import { expectTypeOf, test } from "vitest";

test("every option can be undefined, also with exactOptionalPropertyTypes", () => {
  expectTypeOf<RefusingUndefined<SshExecutorOptions>>().toBeNever();
});
