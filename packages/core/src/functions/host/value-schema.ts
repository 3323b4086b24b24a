import * as z from "zod";
import { InvalidInputError } from "../../errors/invalid-input-error.ts";
import { isJsonValue, type JsonObject } from "../../json-value.ts";
import { compileJsonSchema, type SchemaUse } from "./json-schema.ts";
import {
  type CheckedValue,
  describeSchemaIssues,
  isStandardSchema,
  type JsonSchema,
  type StandardSchema,
} from "./standard-schema.ts";
import { isZod3, zod3ToJsonSchema } from "./zod-3-schema.ts";

/** A schema of any kind, reduced to what a host function needs. */
export interface ValueSchema {
  /** As JSON Schema, for the model that writes the calls. `undefined` if the library cannot produce it. */
  readonly json: JsonObject | undefined;
  readonly check: (value: unknown) => Promise<CheckedValue>;
}

/**
 * @param side - whether it validates what comes in (arguments) or what goes out (results).
 * @throws InvalidInputError if it is a JSON schema with a part that cannot be checked.
 */
export function valueSchema(
  schema: StandardSchema | JsonSchema,
  side: "input" | "output",
  use: SchemaUse,
): ValueSchema {
  if (isStandardSchema(schema)) return { json: jsonSchemaOf(schema, side), check: (value) => check(schema, value) };
  const compiled = compileJsonSchema(schema, use);
  const isArguments = side === "input";
  return {
    json: asJson(schema, use),
    check: async (value) => (isArguments && !isRecord(value) ? { problem: "must be an object" } : compiled(value)),
  };
}

async function check(schema: StandardSchema, value: unknown): Promise<CheckedValue> {
  const result = await schema["~standard"].validate(value);
  return result.issues ? { problem: describeSchemaIssues(result.issues) } : { value: result.value };
}

function asJson(schema: JsonSchema, { owner, checks }: SchemaUse): JsonObject | undefined {
  if (isJsonObject(schema)) return structuredClone(schema);
  // The model is then told nothing about the arguments.
  if (checks === "lenient") return undefined;
  throw new InvalidInputError(`The JSON schema of ${owner} is not JSON`, { remedy: "Pass a plain object." });
}

/** Newer libraries convert their schemas to JSON Schema themselves; zod 4 has a function for it, and zod 3 nothing. */
function jsonSchemaOf(schema: StandardSchema, side: "input" | "output"): JsonObject | undefined {
  try {
    const told = convert(schema, side);
    return isJsonObject(told) ? told : undefined;
  } catch {
    // A part of it, such as a transformation, has no JSON Schema equivalent.
    return undefined;
  }
}

function convert(schema: StandardSchema, side: "input" | "output"): unknown {
  if (isZod3(schema)) return zod3ToJsonSchema(schema);
  if (isZod(schema)) return z.toJSONSchema(schema, { io: side, unrepresentable: "any" });
  const converter: unknown = Reflect.get(Object(Reflect.get(schema["~standard"], "jsonSchema")), side);
  return typeof converter === "function"
    ? Reflect.apply(converter, undefined, [{ target: "draft-2020-12" }])
    : undefined;
}

function isZod(schema: object): schema is z.core.$ZodType {
  return "_zod" in schema;
}

function isJsonObject(value: unknown): value is JsonObject {
  return isRecord(value) && isJsonValue(value);
}

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
