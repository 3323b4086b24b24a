import type { CreateOptions, JsonObject, ModelMessage, ToolCall } from "@fenced/core";
import { Output, type AssistantContent, type generateText } from "ai";
import type { AISDKChatCompletionClientOptions } from "./ai-sdk-chat-completion-client-options.ts";
import { toAISDKMessages } from "./to-ai-sdk-messages.ts";
import { keepArgumentsText, toAISDKTools } from "./to-ai-sdk-tools.ts";

/** What `generateText` and `streamText` both take. */
export type AISDKRequest = Pick<
  Parameters<typeof generateText>[0],
  | "model"
  | "maxRetries"
  | "temperature"
  | "topP"
  | "maxOutputTokens"
  | "seed"
  | "stopSequences"
  | "tools"
  | "experimental_repairToolCall"
  | "abortSignal"
> & {
  readonly messages: ReturnType<typeof toAISDKMessages>;
  readonly allowSystemInMessages: true;
  readonly providerOptions?: Record<string, JsonObject>;
  readonly output?: ReturnType<typeof Output.text>;
};

/** One call of the client as the AI SDK wants it. */
export function toAISDKRequest(
  messages: readonly ModelMessage[],
  { tools = [], jsonSchema, signal }: CreateOptions,
  options: AISDKChatCompletionClientOptions,
  recall: (calls: readonly ToolCall[]) => AssistantContent | undefined,
): AISDKRequest {
  const { modelInfo: _modelInfo, maxRetries = 2, stopSequences, ...settings } = options;
  return {
    ...settings,
    maxRetries,
    messages: toAISDKMessages(messages, recall),
    allowSystemInMessages: true,
    ...(stopSequences !== undefined && { stopSequences: [...stopSequences] }),
    ...(tools.length > 0 && { tools: toAISDKTools(tools), experimental_repairToolCall: keepArgumentsText }),
    ...(jsonSchema !== undefined && { output: jsonText(jsonSchema) }),
    ...(signal !== undefined && { abortSignal: signal }),
  };
}

/** Asks for JSON of a schema, and hands the answer on as the text that it is. */
function jsonText(schema: JsonObject): ReturnType<typeof Output.text> {
  return { ...Output.text(), responseFormat: Promise.resolve({ type: "json", schema }) };
}
