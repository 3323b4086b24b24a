import type { RefusingUndefined } from "@fenced/test-support/refusing-undefined";
import { expectTypeOf, test } from "vitest";
import type { E2BExecutorOptions, E2BHandlerOptions } from "../src/index.ts";

test("every option can be undefined, also with exactOptionalPropertyTypes", () => {
  expectTypeOf<RefusingUndefined<E2BExecutorOptions>>().toBeNever();
  expectTypeOf<RefusingUndefined<E2BHandlerOptions>>().toBeNever();
});
