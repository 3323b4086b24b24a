import type { RefusingUndefined } from "@fenced/test-support/refusing-undefined";
import { expectTypeOf, test } from "vitest";
import type { EgressProxyOptions, ListenOptions } from "../src/index.ts";

test("every option can be undefined, also with exactOptionalPropertyTypes", () => {
  expectTypeOf<RefusingUndefined<EgressProxyOptions>>().toBeNever();
  expectTypeOf<RefusingUndefined<ListenOptions>>().toBeNever();
});
