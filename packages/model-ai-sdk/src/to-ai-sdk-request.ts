import type { CreateOptions, JsonObject, ModelMessage, ToolCall } from "@fenced/core";
import { Output, type AssistantContent, type generateText } from "ai";
import type { CheckedClientOptions } from "./ai-sdk-chat-completion-client-options.ts";
import { toAISDKMessages } from "./to-ai-sdk-messages.ts";
import { keepArgumentsText, toAISDKTools } from "./to-ai-sdk-tools.ts";

/** The options that `generateText` and `streamText` share. */
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

/** Converts a call of the client to the AI SDK's format. */
export function toAISDKRequest(
  messages: readonly ModelMessage[],
  { tools = [], jsonSchema, signal }: CreateOptions,
  options: CheckedClientOptions,
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

/** Requests JSON that matches a schema, and returns the answer as text. */
function jsonText(schema: JsonObject): ReturnType<typeof Output.text> {
  return { ...Output.text(), responseFormat: Promise.resolve({ type: "json", schema }) };
}
