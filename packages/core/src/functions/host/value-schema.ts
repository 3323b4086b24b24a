import * as z from "zod";
import { InvalidInputError } from "../../errors/invalid-input-error.ts";
import { isJsonValue, type JsonObject } from "../../json-value.ts";
import { describeSchemaIssues, isStandardSchema, type JsonSchema, type StandardSchema } from "./standard-schema.ts";

/** The result of a check: the value to use, or what is wrong with it. */
export type CheckedValue = { readonly value: unknown } | { readonly problem: string };

/** A schema of any kind, reduced to what a host function needs. */
export interface ValueSchema {
  /** As JSON Schema, for the model that writes the calls. `undefined` if the library cannot produce it. */
  readonly json: JsonObject | undefined;
  readonly check: (value: unknown) => Promise<CheckedValue>;
}

/** The schema's owner, for messages, and whether a JSON schema that cannot be checked is an error. */
interface SchemaUse {
  readonly owner: string;
  readonly checks: "exact" | "lenient";
}

/**
 * @param side - whether it validates what comes in (arguments) or what goes out (results).
 * @throws InvalidInputError if it is a JSON schema with a keyword that cannot be checked.
 */
export function valueSchema(
  schema: StandardSchema | JsonSchema,
  side: "input" | "output",
  use: SchemaUse,
): ValueSchema {
  if (isStandardSchema(schema)) return { json: jsonSchemaOf(schema, side), check: (value) => check(schema, value) };
  const known = toZod(schema, use);
  return { json: asJson(schema, use), check: (value) => check(known, value) };
}

async function check(schema: StandardSchema, value: unknown): Promise<CheckedValue> {
  const result = await schema["~standard"].validate(value);
  return result.issues ? { problem: describeSchemaIssues(result.issues) } : { value: result.value };
}

function toZod(schema: JsonSchema, { owner, checks }: SchemaUse): StandardSchema {
  try {
    return z.fromJSONSchema(withDraft(schema));
  } catch (cause) {
    if (checks === "lenient") return schema["type"] === "object" ? z.looseObject({}) : z.json();
    throw new InvalidInputError(
      `The JSON schema of ${owner} cannot be checked: ${cause instanceof Error ? cause.message : String(cause)}`,
      { remedy: "Use simpler keywords, or a schema of zod, valibot or another Standard Schema library.", cause },
    );
  }
}

/**
 * Older drafts keep definitions under another name; many schemas do not declare their draft, or declare the wrong one.
 */
function withDraft(schema: JsonSchema): JsonSchema {
  const old = "definitions" in schema && !("$defs" in schema);
  const draft = old ? "http://json-schema.org/draft-07/schema#" : "https://json-schema.org/draft/2020-12/schema";
  return { ...schema, $schema: draft };
}

function asJson(schema: JsonSchema, { owner, checks }: SchemaUse): JsonObject | undefined {
  if (isJsonObject(schema)) return structuredClone(schema);
  // The model is then told nothing about the arguments.
  if (checks === "lenient") return undefined;
  throw new InvalidInputError(`The JSON schema of ${owner} is not JSON`, { remedy: "Pass a plain object." });
}

/** Newer libraries convert their schemas to JSON Schema themselves; older versions of zod have a function for it. */
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
  return typeof value === "object" && value !== null && !Array.isArray(value) && isJsonValue(value);
}
