import * as z from "zod";
import type { JsonObject } from "../json-value.ts";
import type { CreateOptions, ToolSchema } from "../models/chat-completion-client.ts";
import { checkOptions, optionsSchema, type OptionSchemas, signalOption, withoutUndefined } from "./check-options.ts";

const toolCalls = z.array(z.object({ id: z.string(), name: z.string(), arguments: z.string() }));
const toolResults = z.array(
  z.object({ callId: z.string(), name: z.string(), content: z.string(), isError: z.boolean() }),
);
const contentParts = z.array(
  z.discriminatedUnion("type", [
    z.object({ type: z.literal("text"), text: z.string() }),
    z.object({ type: z.literal("image"), url: z.string() }),
  ]),
);

const modelMessage = z.preprocess(
  withoutUndefined,
  z.discriminatedUnion("role", [
    z.strictObject({ role: z.literal("system"), content: z.string() }),
    z.strictObject({
      role: z.literal("user"),
      content: z.union([z.string(), contentParts]),
      source: z.string().exactOptional(),
    }),
    z.strictObject({
      role: z.literal("assistant"),
      content: z.union([z.string(), toolCalls]),
      thought: z.string().exactOptional(),
      reasoning: z.string().exactOptional(),
      source: z.string().exactOptional(),
      // Callers pass a model's response on as `{ role: "assistant", ...result }`.
      usage: z.unknown().optional(),
      finishReason: z.unknown().optional(),
    }),
    z.strictObject({ role: z.literal("tool"), content: toolResults }),
  ]),
);

/** JSON Schema: a plain object, not a library's schema object. */
const jsonSchema = z.custom<JsonObject>(
  (value) => typeof value === "object" && value !== null && isPlain(value),
  "must be a JSON Schema object",
);

const createOptions: z.ZodType<CreateOptions> = optionsSchema({
  tools: z
    .array(
      optionsSchema({
        name: z.string(),
        description: z.string(),
        parameters: jsonSchema,
      } satisfies OptionSchemas<ToolSchema>),
    )
    .exactOptional(),
  jsonSchema: jsonSchema.exactOptional(),
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<CreateOptions>);

const messageArgument = z.object({ message: modelMessage });
const messagesArgument = z.object({
  messages: z.array(modelMessage, { error: 'must be an array of messages: [{ role: "user", content: "Hello" }]' }),
});

/**
 * Validates the arguments of `create` and `createStream`, for model clients.
 *
 * @param owner - the client's class, for the message.
 * @returns the options; messages are validated but not copied.
 * @throws InvalidInputError if a message or an option is unknown or wrong.
 */
export function checkCreateArguments(messages: unknown, options: unknown, owner: string): CreateOptions {
  checkOptions(messagesArgument, { messages }, owner);
  return checkOptions(createOptions, options, owner);
}

/**
 * Validates one message of a conversation with a model.
 *
 * @throws InvalidInputError if it is not a message, or one of its fields is unknown or wrong.
 */
export function checkModelMessage(message: unknown, owner: string): void {
  checkOptions(messageArgument, { message }, owner);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  // The prototype chain of an object from another realm ends at that realm's Object.prototype.
  return prototype === null || (typeof prototype === "object" && Object.getPrototypeOf(prototype) === null);
}
