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
import { type Memory, memoryOption } from "../memory/memory.ts";
import type { Tool } from "../tools/tool.ts";
import { agentName } from "./base-chat-agent.ts";
import type { Handoff } from "./handoff.ts";

/** Options of an `AssistantAgent`. */
export interface AssistantAgentOptions {
  /** See `BaseChatAgentOptions.name`. */
  readonly name: string;
  /** The model that answers. */
  readonly modelClient: ChatCompletionClient;
  /** The system message; an empty string sends none. Default: a general prompt. */
  readonly systemMessage?: string | undefined;
  /** What the agent does, for selectors and tools. Default: a general text. */
  readonly description?: string | undefined;
  /** Tools that the model may call. Default: none. */
  readonly tools?: readonly Tool[] | undefined;
  /** Agents that the model may hand the chat to: names or full handoffs. Default: none. */
  readonly handoffs?: readonly (string | Handoff)[] | undefined;
  /** Yield the model's text as it is generated. Default: false. */
  readonly modelClientStream?: boolean | undefined;
  /** Call the model once more after the last tool calls, and answer with its text. Default: true if `outputSchema` is set. */
  readonly reflectOnToolUse?: boolean | undefined;
  /** Maximum rounds of tool calls in one turn. Default: 1. */
  readonly maxToolIterations?: number | undefined;
  /** Maximum characters of a tool's result for the model; a longer one keeps its head and tail. Default: 100,000. */
  readonly maxToolResultCharacters?: number | undefined;
  /**
   * What the agent knows besides the conversation: asked once in each turn, and told to the model after the system message. Default:
   * none.
   */
  readonly memory?: readonly Memory[] | undefined;
  /** Which messages the model sees. Do not share it between agents. Default: an `UnboundedChatCompletionContext`. */
  readonly modelContext?: ChatCompletionContext | undefined;
  /**
   * The schema of the answer, as a zod schema or JSON Schema. The agent then answers with a `StructuredMessage`; an
   * answer that does not match throws a `ModelClientError`. `dumpComponent` writes it as JSON Schema, which loses
   * refinements.
   */
  readonly outputSchema?: z.ZodType | JsonObject | undefined;
  /**
   * The template for each call in a `ToolCallSummaryMessage`, with the placeholders `{toolName}`, `{arguments}`,
   * `{result}` and `{isError}`. Default: `{result}`.
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
  maxToolResultCharacters: wholeNumberOption({ from: 0, unit: "characters" }).exactOptional(),
  memory: z.array(memoryOption).exactOptional(),
  modelContext: contextOption.exactOptional(),
  outputSchema: objectOption<z.ZodType | JsonObject>([], "a zod schema or JSON Schema").exactOptional(),
  toolCallSummaryFormat: z.string().exactOptional(),
} satisfies OptionSchemas<AssistantAgentOptions>);
