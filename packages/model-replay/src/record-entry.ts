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

/** What a model can do. */
export const modelInfoSchema: z.ZodType<ModelInfo> = z.object({
  family: z.string(),
  provider: z.string().exactOptional(),
  vision: z.boolean(),
  functionCalling: z.boolean(),
  structuredOutput: z.boolean(),
  contextWindow: z.number().exactOptional(),
});

/** What a model answered. */
export const resultSchema: z.ZodType<CreateResult> = z.object({
  content: z.union([z.string(), z.array(toolCall)]),
  thought: z.string().exactOptional(),
  usage: z.object({ promptTokens: z.number(), completionTokens: z.number() }),
  finishReason: z.enum(["stop", "length", "tool-calls", "content-filter", "error", "unknown"]),
});

/** The shape of one line of a record. Keys beyond it are left out. */
export const recordEntrySchema: z.ZodType<RecordEntry> = z.object({
  version: z.literal(1),
  modelInfo: modelInfoSchema,
  request,
  chunks: z.array(z.string()).exactOptional(),
  result: resultSchema,
});

/**
 * What is recorded of an answer: a copy with the fields that the contracts name. A client may put more into its answers,
 * the headers of a request for one.
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
 * What is recorded of a request: a copy with the fields that the contracts name, without the signal.
 *
 * @throws InvalidInputError if one of the messages is not a model message.
 */
export function toRecordedRequest(messages: readonly ModelMessage[], options: CreateOptions): RecordedRequest {
  const { tools, jsonSchema } = options;
  const text = JSON.stringify({ messages, tools: tools?.length === 0 ? undefined : tools, jsonSchema });
  const parsed = request.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  throw new InvalidInputError(`The request does not consist of model messages: ${z.prettifyError(parsed.error)}`, {
    remedy: "Correct the message.",
    cause: parsed.error,
  });
}
