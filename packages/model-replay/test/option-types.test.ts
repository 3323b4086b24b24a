import type { RefusingUndefined } from "@fenced/test-support/refusing-undefined";
import { expectTypeOf, test } from "vitest";
import type { RecordingChatCompletionClientOptions, ReplayChatCompletionClientOptions } from "../src/index.ts";

test("every option can be undefined, also with exactOptionalPropertyTypes", () => {
  expectTypeOf<RefusingUndefined<RecordingChatCompletionClientOptions>>().toBeNever();
  expectTypeOf<RefusingUndefined<ReplayChatCompletionClientOptions>>().toBeNever();
});
