import { type ComponentModel, InvalidInputError, type JsonObject, type ToolSchema } from "@fenced/core";
import { callbackOption, checkOptions, optionsSchema } from "@fenced/core/options";
import * as z from "zod";
import { toJsonObject } from "../common/json.ts";
import type { SignalOptions } from "../common/signal-option.ts";
import type { AgentMessage } from "../messages/agent-event.ts";

/** Something that a model can call. */
export interface Tool {
  /** Its name for the model: letters, digits, `_` and `-`, at most 64. Unique among an agent's tools and handoffs. */
  readonly name: string;
  /** Describes to the model what it does and when to use it. */
  readonly description: string;
  /** The schema of the arguments, an object: a zod schema, which is also enforced, or JSON Schema, which only the model sees. */
  readonly parameters: z.ZodType | JsonObject;

  /**
   * Called before a model is told about the tool, for a tool whose `description` depends on what has to start first.
   * Must not throw: the model may not need the tool.
   */
  prepare?(options: SignalOptions): Promise<void>;

  /**
   * Does the work. If it throws, the model gets the error as the result of the failed call.
   *
   * @returns text, or data that the model gets as JSON.
   */
  execute(args: JsonObject, options: SignalOptions): unknown;

  /**
   * Does the same as a stream: yields the messages and events of the agents behind the tool, which appear in the
   * calling agent's stream, and returns what `execute` returns. Used instead of `execute` if present.
   */
  executeStream?(args: JsonObject, options: SignalOptions): AsyncGenerator<AgentMessage, unknown, void>;

  /** Returns what the tool remembers, as plain JSON: part of its agent's state. */
  saveState?(): Promise<JsonObject>;

  /** Restores a state from `saveState`. */
  loadState?(state: JsonObject): Promise<void>;

  /** Forgets what it remembers: part of its agent's reset. */
  reset?(): Promise<void>;

  /** Returns the settings as plain JSON. Without it, the tool's agent cannot be dumped. */
  dumpComponent?(): ComponentModel;
}

/** The definition of a tool, for `tool`. */
export interface ToolDefinition<Parameters extends z.ZodObject> {
  /** See `Tool.name`. */
  readonly name: string;
  /** See `Tool.description`. */
  readonly description: string;
  /** The arguments. */
  readonly parameters: Parameters;
  /** Does the work; returns text or data, or a promise of it. */
  readonly execute: (args: z.output<Parameters>, options: SignalOptions) => unknown;
}

const toolDefinition = optionsSchema({
  name: z.string().min(1),
  description: z.string(),
  parameters: z.instanceof(z.ZodType, {
    error: 'must be a schema of zod 4: import * as z from "zod" with zod 4 installed, or from "zod/v4"',
  }),
  execute: callbackOption<ToolDefinition<z.ZodObject>["execute"]>(),
});

/**
 * Creates a tool whose arguments have the types of its zod schema.
 *
 * @throws InvalidInputError if a part of the definition is unknown or wrong.
 *
 * @example
 * const add = tool({
 *   name: "add",
 *   description: "Adds two numbers.",
 *   parameters: z.object({ a: z.number(), b: z.number() }),
 *   execute: ({ a, b }) => a + b,
 * });
 */
export function tool<Parameters extends z.ZodObject>(definition: ToolDefinition<Parameters>): Tool {
  checkOptions(toolDefinition, definition, "tool");
  const { name, description, parameters, execute } = definition;
  return {
    name,
    description,
    parameters,
    execute: (args, options) => execute(parameters.parse(args), options),
  };
}

/** Converts a tool for the model client. */
export function toToolSchema({ name, description, parameters }: Tool): ToolSchema {
  return { name, description, parameters: toJsonSchema(parameters, "input") };
}

/**
 * Converts a zod schema to JSON Schema; returns JSON Schema unchanged.
 *
 * @param io - `input` describes what the schema accepts, `output` what it returns, where fields with a default are
 * required.
 */
export function toJsonSchema(schema: z.ZodType | JsonObject, io: "input" | "output" = "output"): JsonObject {
  if (!isZodType(schema)) {
    if (isForeign(schema)) throw foreignSchema();
    return schema;
  }
  try {
    const { $schema: _, ...jsonSchema } = toJsonObject(z.toJSONSchema(schema, { io }));
    return jsonSchema;
  } catch (error) {
    throw new InvalidInputError("This zod schema cannot be converted to JSON Schema", {
      remedy: "Remove transforms, dates and other types that JSON does not have.",
      cause: error,
    });
  }
}

/** Whether it is a library's schema, whose internals are not JSON Schema: of zod 3, zod/mini, valibot and others. */
function isForeign(schema: object): boolean {
  return "~standard" in schema || "_def" in schema || "_zod" in schema;
}

function foreignSchema(): InvalidInputError {
  return new InvalidInputError("A schema is neither one of zod 4 nor JSON Schema", {
    remedy: 'With zod 3, upgrade, or import from "zod/v4". Otherwise convert it to JSON Schema.',
  });
}

/** Tells a zod schema from JSON Schema. */
export function isZodType(schema: z.ZodType | JsonObject): schema is z.ZodType {
  return schema instanceof z.ZodType;
}
