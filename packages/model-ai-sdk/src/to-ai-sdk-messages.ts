import {
  type AssistantMessage,
  type ModelMessage,
  parseJson,
  type ToolCall,
  type ToolResult,
  type UserMessage,
} from "@fenced/core";
import type { AssistantContent, ModelMessage as AISDKMessage, ToolModelMessage, UserModelMessage } from "ai";

type ToolCallPart = Extract<Exclude<AssistantContent, string>[number], { type: "tool-call" }>;

/**
 * Converts messages to the AI SDK's format, and so that services accept them: some reject empty texts, and conversations
 * that end with the model's own words.
 *
 * @param recall - finds the model's original message for these tool calls, if this client still has it.
 */
export function toAISDKMessages(messages: readonly ModelMessage[], recall: Recall): AISDKMessage[] {
  const named = speakersOf(messages);
  const converted = messages.flatMap((message) => toAISDKMessage(message, { named, recall }));
  const last = converted.findLast(({ role }) => role !== "system");
  if (last === undefined || last.role === "assistant") converted.push({ role: "user", content: "Continue." });
  return converted;
}

type Recall = (calls: readonly ToolCall[]) => AssistantContent | undefined;

/** Who must be named so that the model can tell who said what: nobody if it talks with one alone, or with itself. */
function speakersOf(messages: readonly ModelMessage[]): ReadonlySet<string> {
  const sourcesOf = (role: "user" | "assistant"): string[] =>
    messages.flatMap((message) => (message.role === role && message.source !== undefined ? [message.source] : []));
  const own = new Set(sourcesOf("assistant"));
  const others = new Set(sourcesOf("user").filter((source) => !own.has(source)));
  return new Set(others.size < 2 ? [] : [...others].filter((source) => source !== "user"));
}

interface Conversation {
  readonly named: ReadonlySet<string>;
  readonly recall: Recall;
}

function toAISDKMessage(message: ModelMessage, { named, recall }: Conversation): AISDKMessage[] {
  switch (message.role) {
    case "system":
      return isBlank(message.content) ? [] : [{ role: "system", content: message.content }];
    case "user":
      return [toUserMessage(message, named)];
    case "assistant":
      return toAssistantMessage(message, recall);
    case "tool":
    default:
      return message.content.length === 0 ? [] : [toToolMessage(message.content)];
  }
}

/** Says who speaks: services have no field for it that all of them accept. */
function toUserMessage({ content, source = "" }: UserMessage, named: ReadonlySet<string>): UserModelMessage {
  const isNamed = named.has(source);
  if (typeof content === "string") {
    if (isBlank(content)) return { role: "user", content: isNamed ? `${source} said nothing.` : "(nothing)" };
    return { role: "user", content: isNamed ? `${source} said:\n${content}` : content };
  }
  const parts = content.filter((part) => part.type === "image" || !isBlank(part.text));
  if (parts.length === 0) return toUserMessage({ role: "user", content: "", source }, named);
  return {
    role: "user",
    content: [
      ...(isNamed ? [{ type: "text" as const, text: `${source} said:` }] : []),
      ...parts.map((part) =>
        part.type === "text" ? { ...part } : { type: "image" as const, image: new URL(part.url) },
      ),
    ],
  };
}

function toAssistantMessage(
  { content, thought = "", reasoning = "" }: AssistantMessage,
  recall: Recall,
): AISDKMessage[] {
  // A thought next to a text is reasoning, which services do not expect back.
  if (typeof content === "string") return isBlank(content) ? [] : [{ role: "assistant", content }];
  const text = thought.startsWith(reasoning) ? thought.slice(reasoning.length).trimStart() : thought;
  const parts = [
    { type: "reasoning" as const, text: reasoning },
    { type: "text" as const, text },
    ...content.map(toToolCallPart),
  ];
  const all = recall(content) ?? parts;
  const said = typeof all === "string" ? all : all.filter((part) => !isBlankText(part));
  return said.length === 0 ? [] : [{ role: "assistant", content: said }];
}

function isBlank(text: string): boolean {
  return text.trim() === "";
}

/** True for a text that says nothing. Reasoning without text may have a signature that must be sent back. */
function isBlankText(part: Exclude<AssistantContent, string>[number]): boolean {
  if (part.type === "reasoning") return isBlank(part.text) && part.providerOptions === undefined;
  return part.type === "text" && isBlank(part.text);
}

function toToolCallPart(call: ToolCall): ToolCallPart {
  return { type: "tool-call", toolCallId: call.id, toolName: call.name, input: toInput(call.arguments) };
}

function toToolMessage(results: readonly ToolResult[]): ToolModelMessage {
  return {
    role: "tool",
    content: results.map((result) => ({
      type: "tool-result",
      toolCallId: result.callId,
      toolName: result.name,
      output: {
        type: result.isError ? "error-text" : "text",
        value: isBlank(result.content) ? "(nothing)" : result.content,
      },
    })),
  };
}

/** Parses the arguments to an object: several services reject a whole conversation if one call's arguments are not one. */
export function toInput(argumentsText: string): unknown {
  try {
    const input = parseJson(argumentsText);
    if (typeof input === "object" && input !== null && !Array.isArray(input)) return input;
  } catch {
    // Malformed, as models sometimes write them: passed on in full below.
  }
  return { malformed: argumentsText };
}
