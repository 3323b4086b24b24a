import * as z from "zod";
import { jsonObjectSchema, jsonValueSchema } from "../common/json.ts";
import { memoryContentSchema } from "../memory/memory.ts";
import {
  contentPartSchema,
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
const ended = { exitCode: z.number(), durationMs: z.number(), timedOut: z.boolean(), truncated: z.boolean() };
const cut = z.object({ after: z.number(), stdout: z.number(), stderr: z.number() });
const layout = z.object({ parts: z.array(z.number()), cut: cut.exactOptional() });

const decision = z.object({
  allowed: z.boolean(),
  protocol: z.enum(["http", "https", "connect", "socks5"]),
  host: z.string(),
  port: z.number(),
  address: z.string().exactOptional(),
  method: z.string().exactOptional(),
  reason: z.string().exactOptional(),
});

const codeResult = z.object({
  ...ended,
  output: z.string(),
  // Present in results that were assembled by hand.
  stdout: z.string().exactOptional(),
  stderr: z.string().exactOptional(),
  displays: z.array(z.object({ data: jsonObjectSchema, base64: z.array(z.string()), files: z.array(z.string()) })),
  codeFile: z.string().exactOptional(),
  stateLost: z.boolean(),
  network: z.array(decision).exactOptional(),
  blocks: z.array(
    z.union([
      z.object({ ...ended, outputLength: z.number(), layout: layout.exactOptional() }),
      z.object({ ...ended, output: z.string(), stdout: z.string(), stderr: z.string() }),
    ]),
  ),
});

const chatMessages = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("TextMessage"), ...text }),
  z.strictObject({ type: z.literal("MultiModalMessage"), ...base, content: z.array(contentPartSchema) }),
  z.strictObject({ type: z.literal("StopMessage"), ...text }),
  z.strictObject({
    type: z.literal("HandoffMessage"),
    ...text,
    target: z.string(),
    context: z.array(modelMessageSchema).exactOptional(),
  }),
  z.strictObject({ type: z.literal("StructuredMessage"), ...base, content: jsonValueSchema }),
  z.strictObject({
    type: z.literal("ToolCallSummaryMessage"),
    ...text,
    toolCalls: z.array(toolCallSchema),
    results: z.array(toolResultSchema),
  }),
]);

/** The schema of messages, passed or saved. */
export const chatMessageSchema: z.ZodType<ChatMessage> = chatMessages;

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
  z.object({
    type: z.literal("CodeOutputEvent"),
    ...base,
    index: z.number(),
    stream: z.enum(["stdout", "stderr"]),
    text: z.string(),
  }),
  z.object({ type: z.literal("CodeApprovalRequestEvent"), ...base, blocks: z.array(codeBlock) }),
  z.object({ type: z.literal("UserInputRequestedEvent"), ...base, requestId: z.string() }),
  z.object({ type: z.literal("SelectSpeakerEvent"), ...base, content: z.array(z.string()) }),
  z.object({ type: z.literal("SelectorEvent"), ...text }),
  z.object({ type: z.literal("MemoryQueryEvent"), ...base, content: z.array(memoryContentSchema) }),
]);

/** The same for messages and events. */
export const agentMessageSchema: z.ZodType<AgentMessage> = z.discriminatedUnion("type", [chatMessages, eventSchema]);
