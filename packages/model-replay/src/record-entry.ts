import {
  InvalidInputError,
  type CreateOptions,
  type CreateResult,
  type JsonObject,
  type ModelInfo,
  type ModelMessage,
} from "@fenced/core";
import * as z from "zod";

/** A request as it is recorded: everything that was said to the model, nothing of how it was reached. */
export interface RecordedRequest {
  readonly messages: readonly ModelMessage[];
  readonly tools?: CreateOptions["tools"];
  readonly jsonSchema?: JsonObject;
}

/** One line of a record: a request and what the model answered. */
export interface RecordEntry {
  /** The version of the line's shape. */
  readonly version: 1;
  /** What the model can do. */
  readonly modelInfo: ModelInfo;
  readonly request: RecordedRequest;
  /** The chunks of text in which the answer came, if it was streamed. */
  readonly chunks?: readonly string[];
  readonly result: CreateResult;
}

const jsonObject: z.ZodType<JsonObject> = z.record(z.string(), z.json());
const toolCall = z.object({ id: z.string(), name: z.string(), arguments: z.string() });
const toolResult = z.object({
  callId: z.string(),
  name: z.string(),
  content: z.string(),
  isError: z.boolean(),
});
const contentPart = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("image"), url: z.string() }),
]);

const message: z.ZodType<ModelMessage> = z.discriminatedUnion("role", [
  z.object({ role: z.literal("system"), content: z.string() }),
  z.object({
    role: z.literal("user"),
    content: z.union([z.string(), z.array(contentPart)]),
    source: z.string().exactOptional(),
  }),
  z.object({
    role: z.literal("assistant"),
    content: z.union([z.string(), z.array(toolCall)]),
    thought: z.string().exactOptional(),
    source: z.string().exactOptional(),
  }),
  z.object({ role: z.literal("tool"), content: z.array(toolResult) }),
]);

const request: z.ZodType<RecordedRequest> = z.object({
  messages: z.array(message),
  tools: z.array(z.object({ name: z.string(), description: z.string(), parameters: jsonObject })).exactOptional(),
  jsonSchema: jsonObject.exactOptional(),
});

/** The shape of one line of a record. Keys beyond it are left out. */
export const recordEntrySchema: z.ZodType<RecordEntry> = z.object({
  version: z.literal(1),
  modelInfo: z.object({
    family: z.string(),
    provider: z.string().exactOptional(),
    vision: z.boolean(),
    functionCalling: z.boolean(),
    structuredOutput: z.boolean(),
    contextWindow: z.number().exactOptional(),
  }),
  request,
  chunks: z.array(z.string()).exactOptional(),
  result: z.object({
    content: z.union([z.string(), z.array(toolCall)]),
    thought: z.string().exactOptional(),
    usage: z.object({ promptTokens: z.number(), completionTokens: z.number() }),
    finishReason: z.enum(["stop", "length", "tool-calls", "content-filter", "error", "unknown"]),
  }),
});

/**
 * What is recorded of a request: a copy in which only what the contracts name is left. The signal is not part of it.
 *
 * @throws InvalidInputError if a message is none.
 */
export function toRecordedRequest(messages: readonly ModelMessage[], options: CreateOptions): RecordedRequest {
  const { tools, jsonSchema } = options;
  const text = JSON.stringify({ messages, tools: tools?.length === 0 ? undefined : tools, jsonSchema });
  const parsed = request.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  throw new InvalidInputError(`The request is not made of model messages: ${z.prettifyError(parsed.error)}`, {
    remedy: "Correct the message.",
    cause: parsed.error,
  });
}
