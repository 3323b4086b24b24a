import type { JsonValue } from "@fenced/core";
import * as z from "zod";
import {
  contentPartSchema,
  jsonValueSchema,
  modelMessageSchema,
  toolCallSchema,
  toolResultSchema,
  usageSchema,
} from "../models/model-message-schema.ts";
import type { AgentMessage } from "./agent-event.ts";
import type { ChatMessage } from "./chat-message.ts";

const base = {
  id: z.string(),
  source: z.string(),
  createdAt: z.string(),
  metadata: z.record(z.string(), z.string()),
  modelsUsage: usageSchema.exactOptional(),
};
const text = { ...base, content: z.string() };
const codeBlock = z.object({ language: z.string(), code: z.string() });
const printed = { exitCode: z.number(), output: z.string(), stdout: z.string(), stderr: z.string() };
const ended = { durationMs: z.number(), timedOut: z.boolean(), truncated: z.boolean() };
const displayData: z.ZodType<Record<string, JsonValue>> = z.record(z.string(), jsonValueSchema);

const codeResult = z.object({
  ...printed,
  ...ended,
  displays: z.array(z.object({ data: displayData, base64: z.array(z.string()), files: z.array(z.string()) })),
  codeFile: z.string().exactOptional(),
  stateLost: z.boolean(),
  blocks: z.array(z.object({ ...printed, ...ended })),
});

/** What saved messages are checked against. */
export const chatMessageSchema: z.ZodType<ChatMessage> = z.discriminatedUnion("type", [
  z.object({ type: z.literal("TextMessage"), ...text }),
  z.object({ type: z.literal("MultiModalMessage"), ...base, content: z.array(contentPartSchema) }),
  z.object({ type: z.literal("StopMessage"), ...text }),
  z.object({
    type: z.literal("HandoffMessage"),
    ...text,
    target: z.string(),
    context: z.array(modelMessageSchema).exactOptional(),
  }),
  z.object({ type: z.literal("StructuredMessage"), ...base, content: jsonValueSchema }),
  z.object({
    type: z.literal("ToolCallSummaryMessage"),
    ...text,
    toolCalls: z.array(toolCallSchema),
    results: z.array(toolResultSchema),
  }),
]);

const eventSchema = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("CodeGenerationEvent"),
    ...text,
    codeBlocks: z.array(codeBlock),
    retryAttempt: z.number(),
  }),
  z.object({ type: z.literal("CodeExecutionEvent"), ...base, result: codeResult, retryAttempt: z.number() }),
  z.object({ type: z.literal("ToolCallRequestEvent"), ...base, content: z.array(toolCallSchema) }),
  z.object({ type: z.literal("ToolCallExecutionEvent"), ...base, content: z.array(toolResultSchema) }),
  z.object({ type: z.literal("ThoughtEvent"), ...text }),
  z.object({ type: z.literal("ModelClientStreamingChunkEvent"), ...text, fullMessageId: z.string() }),
  z.object({ type: z.literal("UserInputRequestedEvent"), ...base, requestId: z.string() }),
]);

/** The same for messages and events. */
export const agentMessageSchema: z.ZodType<AgentMessage> = z.union([chatMessageSchema, eventSchema]);
