import {
  InvalidInputError,
  ModelClientError,
  type CreateOptions,
  type CreateResult,
  type JsonObject,
  type ModelInfo,
  type ModelMessage,
} from "@fenced/core";
import * as z from "zod";

/** A recorded request: everything that was sent to the model, but nothing about the connection. */
export interface RecordedRequest {
  readonly messages: readonly ModelMessage[];
  readonly tools?: CreateOptions["tools"];
  readonly jsonSchema?: JsonObject;
}

/** One line of a recording: a request and the model's answer. */
export interface RecordEntry {
  /** The version of the line's format. */
  readonly version: 1;
  /** What the model can do. */
  readonly modelInfo: ModelInfo;
  readonly request: RecordedRequest;
  /** The chunks of text of a streamed answer. */
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
    reasoning: z.string().exactOptional(),
    source: z.string().exactOptional(),
  }),
  z.object({ role: z.literal("tool"), content: z.array(toolResult) }),
]);

const request: z.ZodType<RecordedRequest> = z.object({
  messages: z.array(message),
  tools: z.array(z.object({ name: z.string(), description: z.string(), parameters: jsonObject })).exactOptional(),
  jsonSchema: jsonObject.exactOptional(),
});

/** What a model can do. */
export const modelInfoSchema: z.ZodType<ModelInfo> = z.object({
  family: z.string(),
  provider: z.string().exactOptional(),
  vision: z.boolean(),
  functionCalling: z.boolean(),
  structuredOutput: z.boolean(),
  contextWindow: z.number().exactOptional(),
});

/** The schema of a model's answer. */
export const resultSchema: z.ZodType<CreateResult> = z.object({
  content: z.union([z.string(), z.array(toolCall)]),
  thought: z.string().exactOptional(),
  reasoning: z.string().exactOptional(),
  usage: z.object({ promptTokens: z.number(), completionTokens: z.number() }),
  finishReason: z.enum(["stop", "length", "tool-calls", "content-filter", "error", "unknown"]),
});

/** The schema of one line of a recording. Drops unknown keys. */
export const recordEntrySchema: z.ZodType<RecordEntry> = z.object({
  version: z.literal(1),
  modelInfo: modelInfoSchema,
  request,
  chunks: z.array(z.string()).exactOptional(),
  result: resultSchema,
});

/**
 * Copies an answer for the recording, with only the fields of Fenced's own types: a client may add others to its
 * answers, such as the headers of a request.
 *
 * @throws ModelClientError if it is not an answer.
 */
export function toRecordEntry(entry: RecordEntry): RecordEntry {
  const text = JSON.stringify(entry);
  const parsed = recordEntrySchema.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  throw new ModelClientError(`The client's answer cannot be recorded: ${z.prettifyError(parsed.error)}`, {
    remedy: "Make the client answer with a CreateResult.",
  });
}

/**
 * Copies a request for the recording, with only the fields of Fenced's own types and without the signal.
 *
 * @throws InvalidInputError if one of the messages is not a model message.
 */
export function toRecordedRequest(messages: readonly ModelMessage[], options: CreateOptions): RecordedRequest {
  const { tools, jsonSchema } = options;
  const text = JSON.stringify({ messages, tools: tools?.length === 0 ? undefined : tools, jsonSchema });
  const parsed = request.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  throw new InvalidInputError(`The request contains an invalid message: ${z.prettifyError(parsed.error)}`, {
    remedy: "Fix the message.",
    cause: parsed.error,
  });
}
