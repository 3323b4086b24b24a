import type { RefusingUndefined } from "@fenced/test-support/refusing-undefined";
import { expectTypeOf, test } from "vitest";
import type { SkillToolCallOptions, SkillToolsOptions } from "../src/index.ts";

test("every option can be undefined, also with exactOptionalPropertyTypes", () => {
  expectTypeOf<RefusingUndefined<SkillToolsOptions>>().toBeNever();
  expectTypeOf<RefusingUndefined<SkillToolCallOptions>>().toBeNever();
});
