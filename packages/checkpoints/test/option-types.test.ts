import type { RefusingUndefined } from "@fenced/test-support/refusing-undefined";
import { expectTypeOf, test } from "vitest";
import type { S3StoreOptions } from "../src/index.ts";

test("every option can be undefined, also with exactOptionalPropertyTypes", () => {
  expectTypeOf<RefusingUndefined<S3StoreOptions>>().toBeNever();
});
