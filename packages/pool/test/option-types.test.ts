import type { ExecutorPoolOptions, ExecutorSessionsOptions } from "@fenced/pool";
import type { RefusingUndefined } from "@fenced/test-support/refusing-undefined";
import { expectTypeOf, test } from "vitest";

test("every option can be undefined, also with exactOptionalPropertyTypes", () => {
  expectTypeOf<RefusingUndefined<ExecutorPoolOptions>>().toBeNever();
  expectTypeOf<RefusingUndefined<ExecutorSessionsOptions>>().toBeNever();
});
