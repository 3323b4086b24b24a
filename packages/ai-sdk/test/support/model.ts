import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { OpenAIServer, ScriptedAnswer } from "@fenced/test-support/openai-server";
import type { LanguageModel } from "ai";

/** The model behind a test server, over HTTP. */
export function modelOf({ baseURL }: Pick<OpenAIServer, "baseURL">): LanguageModel {
  return createOpenAICompatible({ name: "test", baseURL })("test-model");
}

/** An answer that calls the tool `execute_code`. */
export function callWith(code: string, language = "python"): ScriptedAnswer {
  return { toolCalls: [{ id: "call-1", name: "execute_code", arguments: JSON.stringify({ language, code }) }] };
}

/** What the model was told about the call, in the second request. */
export function toolMessage({ requests }: Pick<OpenAIServer, "requests">, index = 1): unknown {
  return requests[index]?.body.messages.findLast(({ role }) => role === "tool")?.content;
}
