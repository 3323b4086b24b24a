import type { AssistantAgentOptions, CodeExecutorAgentOptions, RoundRobinGroupChatOptions } from "@fenced/agentchat";
import type { RefusingUndefined } from "@fenced/test-support/refusing-undefined";
import { expectTypeOf, test } from "vitest";

test("every option can be undefined, also with exactOptionalPropertyTypes", () => {
  expectTypeOf<RefusingUndefined<AssistantAgentOptions>>().toBeNever();
  expectTypeOf<RefusingUndefined<CodeExecutorAgentOptions>>().toBeNever();
  expectTypeOf<RefusingUndefined<RoundRobinGroupChatOptions>>().toBeNever();
});
