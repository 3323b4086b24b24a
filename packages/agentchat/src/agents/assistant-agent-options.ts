import type { ChatCompletionClient, JsonObject } from "@fenced/core";
import {
  modelClientOption,
  objectOption,
  optionsSchema,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import * as z from "zod";
import { type ChatCompletionContext, contextOption } from "../contexts/chat-completion-context.ts";
import type { Tool } from "../tools/tool.ts";
import { agentName } from "./base-chat-agent.ts";
import type { Handoff } from "./handoff.ts";

/** What an `AssistantAgent` is made from. */
export interface AssistantAgentOptions {
  /** See `BaseChatAgentOptions.name`. */
  readonly name: string;
  /** The model that answers. Stays the caller's. */
  readonly modelClient: ChatCompletionClient;
  /** Default: a general text about being helpful. An empty text: no system message. */
  readonly systemMessage?: string | undefined;
  /** What the agent is for. Default: a general text. */
  readonly description?: string | undefined;
  /** Tools that the model may have called. Default: none. */
  readonly tools?: readonly Tool[] | undefined;
  /** Agents, by name or in full, to which the model may hand the conversation. Default: none. */
  readonly handoffs?: readonly (string | Handoff)[] | undefined;
  /** Yield the model's text as it comes. Default: false. */
  readonly modelClientStream?: boolean | undefined;
  /** Ask the model once more after the last tool calls and answer with that. Default: true if `outputSchema` is set. */
  readonly reflectOnToolUse?: boolean | undefined;
  /** How many times in one turn the model may ask for tools. Default: 1. */
  readonly maxToolIterations?: number | undefined;
  /** The memory. Not to be shared between agents. Default: an `UnboundedChatCompletionContext`. */
  readonly modelContext?: ChatCompletionContext | undefined;
  /**
   * The shape of the answer, a zod schema or JSON Schema: the agent then answers with a `StructuredMessage`, and an answer
   * of another shape is a `ModelClientError`. `dumpComponent` writes it as JSON Schema, which has no refinements.
   */
  readonly outputSchema?: z.ZodType | JsonObject | undefined;
  /**
   * How a `ToolCallSummaryMessage` shows a tool call: `{toolName}`, `{arguments}`, `{result}` and `{isError}` are
   * replaced. Default: `{result}`.
   */
  readonly toolCallSummaryFormat?: string | undefined;
}

const handoff: z.ZodType<Handoff> = optionsSchema({
  target: z.string().min(1),
  name: z.string().exactOptional(),
  description: z.string().exactOptional(),
  message: z.string().exactOptional(),
} satisfies OptionSchemas<Handoff>);

/** Checks the options. */
export const assistantAgentOptions: z.ZodType<AssistantAgentOptions> = optionsSchema({
  name: agentName,
  modelClient: modelClientOption,
  systemMessage: z.string().exactOptional(),
  description: z.string().exactOptional(),
  tools: z.array(objectOption<Tool>(["execute"], "a tool: make one with tool()")).exactOptional(),
  handoffs: z.array(z.union([z.string().min(1), handoff])).exactOptional(),
  modelClientStream: z.boolean().exactOptional(),
  reflectOnToolUse: z.boolean().exactOptional(),
  maxToolIterations: wholeNumberOption({ from: 1 }).exactOptional(),
  modelContext: contextOption.exactOptional(),
  outputSchema: objectOption<z.ZodType | JsonObject>([], "a zod schema or JSON Schema").exactOptional(),
  toolCallSummaryFormat: z.string().exactOptional(),
} satisfies OptionSchemas<AssistantAgentOptions>);
