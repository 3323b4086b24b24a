import { type JsonObject, type JsonValue, wellFormed } from "@fenced/core";

/** Types nested deeper than this become "any value", since nobody reads them. */
const deepestType = 8;
/**
 * Maximum number of types; the rest also become "any value". Definitions that refer to others several times multiply
 * with each level.
 */
const mostTypes = 1000;
/** Maximum number of references to follow to a part. */
const mostReferences = 64;

/** A part of a JSON schema, and the whole schema, which references point into. */
export interface SchemaPart {
  readonly schema: JsonValue | undefined;
  readonly root: JsonObject;
  /** Its nesting depth. */
  readonly depth: number;
  /** The references that led to it. A type that contains itself becomes "any value" there. */
  readonly within: ReadonlySet<string>;
  /** How many more types of the whole schema to describe. */
  readonly left: { types: number };
}

/** A field of an object. */
export interface SchemaField {
  readonly name: string;
  readonly part: SchemaPart;
  readonly required: boolean;
  readonly description: string | undefined;
}

/** The kind of values that a schema allows, as far as a type can express it. */
export type SchemaKind =
  | { readonly kind: "any" | "null" | "boolean" | "integer" | "number" | "string" }
  | { readonly kind: "literals"; readonly values: readonly JsonValue[] }
  | { readonly kind: "union"; readonly parts: readonly SchemaPart[] }
  | { readonly kind: "array"; readonly items: SchemaPart }
  | { readonly kind: "map"; readonly values: SchemaPart }
  | { readonly kind: "object"; readonly fields: readonly SchemaField[] };

const any = { kind: "any" } as const;

/** Wraps the schema of a function's arguments or result as a part. */
export function wholeSchema(schema: JsonObject | undefined): SchemaPart {
  return { schema, root: schema ?? {}, depth: 0, within: new Set(), left: { types: mostTypes } };
}

/** The kind of values that a part allows. */
export function kindOf(given: SchemaPart): SchemaKind {
  const part = resolved(given);
  const { schema, depth, left } = part;
  left.types -= 1;
  if (!isObject(schema) || depth > deepestType || left.types < 0) return any;
  const inner = (value: JsonValue | undefined): SchemaPart => ({ ...part, schema: value, depth: depth + 1 });
  if (Array.isArray(schema["enum"])) return { kind: "literals", values: schema["enum"] };
  if (schema["const"] !== undefined) return { kind: "literals", values: [schema["const"]] };
  const choices = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(choices)) return { kind: "union", parts: choices.map(inner) };
  const { type } = schema;
  if (Array.isArray(type)) return { kind: "union", parts: type.map((each) => inner({ ...schema, type: each })) };
  if (type === "array") return { kind: "array", items: inner(schema["items"]) };
  if (type === "object" || isObject(schema["properties"])) return objectKind(schema, inner);
  const known = (["null", "boolean", "integer", "number", "string"] as const).find((each) => each === type);
  return known === undefined ? any : { kind: known };
}

function objectKind(schema: JsonObject, inner: (value: JsonValue | undefined) => SchemaPart): SchemaKind {
  const { properties, required, additionalProperties } = schema;
  const fields = isObject(properties) ? Object.entries(properties) : [];
  if (fields.length === 0) return { kind: "map", values: inner(additionalProperties) };
  const needed: readonly JsonValue[] = Array.isArray(required) ? required : [];
  return {
    kind: "object",
    fields: fields.map(([name, value]) => ({
      name,
      part: inner(value),
      required: needed.includes(name),
      description:
        isObject(value) && typeof value["description"] === "string" ? wellFormed(value["description"]) : undefined,
    })),
  };
}

/** Follows references to definitions in the same schema. */
function resolved(part: SchemaPart): SchemaPart {
  let { schema, within } = part;
  while (isObject(schema) && typeof schema["$ref"] === "string") {
    const { $ref: reference } = schema;
    const keys = /^#(?:\/(.*))?$/.exec(reference);
    if (!keys || within.has(reference) || within.size >= mostReferences) return { ...part, schema: undefined };
    within = new Set([...within, reference]);
    schema = (keys[1]?.split("/") ?? []).reduce<JsonValue | undefined>(
      (value, key) => (isObject(value) ? value[key.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined),
      part.root,
    );
  }
  return { ...part, schema, within };
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
