import type { RefusingUndefined } from "@fenced/test-support/refusing-undefined";
import { expectTypeOf, test } from "vitest";
import type { AISDKCallSettings, AISDKChatCompletionClientOptions } from "../src/index.ts";

test("every option can be undefined, also with exactOptionalPropertyTypes", () => {
  expectTypeOf<RefusingUndefined<AISDKCallSettings>>().toBeNever();
  expectTypeOf<RefusingUndefined<Omit<AISDKChatCompletionClientOptions, "model">>>().toBeNever();
});
