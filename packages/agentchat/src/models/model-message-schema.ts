import type { ModelMessage, ModelUsage, TextContent, ToolCall, ToolResult } from "@fenced/core";
import * as z from "zod";
import type { ImagePart } from "../messages/chat-message.ts";

export const usageSchema: z.ZodType<ModelUsage> = z.object({ promptTokens: z.number(), completionTokens: z.number() });

export const toolCallSchema: z.ZodType<ToolCall> = z.object({
  id: z.string(),
  name: z.string(),
  arguments: z.string(),
});

export const toolResultSchema: z.ZodType<ToolResult> = z.object({
  callId: z.string(),
  name: z.string(),
  content: z.string(),
  isError: z.boolean(),
});

export const contentPartSchema: z.ZodType<TextContent | ImagePart> = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("image"), url: z.string(), path: z.string().exactOptional() }),
]);

/** The schema of messages in a context's state. */
export const modelMessageSchema: z.ZodType<ModelMessage> = z.discriminatedUnion("role", [
  z.object({ role: z.literal("system"), content: z.string() }),
  z.object({
    role: z.literal("user"),
    content: z.union([z.string(), z.array(contentPartSchema)]),
    source: z.string().exactOptional(),
  }),
  z.object({
    role: z.literal("assistant"),
    content: z.union([z.string(), z.array(toolCallSchema)]),
    thought: z.string().exactOptional(),
    reasoning: z.string().exactOptional(),
    source: z.string().exactOptional(),
  }),
  z.object({ role: z.literal("tool"), content: z.array(toolResultSchema) }),
]);
