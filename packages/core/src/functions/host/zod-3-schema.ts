import type { JsonSchema } from "./standard-schema.ts";

/** True for a schema of zod 3, which cannot convert itself to JSON Schema and which zod 4 cannot convert. */
export function isZod3(schema: object): boolean {
  return typeNameOf(schema) !== "";
}

/**
 * The JSON Schema of a zod 3 schema, for readers: zod itself validates. Parts without an equivalent may have any value.
 *
 * @param depth - how much deeper schemas may be nested: lazy ones may have no end.
 */
export function zod3ToJsonSchema(schema: unknown, depth = 50): JsonSchema {
  if (typeof schema !== "object" || schema === null || depth === 0) return {};
  const described = convert(typeNameOf(schema), definitionOf(schema), (inner) => zod3ToJsonSchema(inner, depth - 1));
  const description = field(schema, "description");
  return typeof description === "string" ? { ...described, description } : described;
}

/** The definition's fields; they differ between kinds. */
type Definition = (name: string) => unknown;
type Inner = (schema: unknown) => JsonSchema;

function convert(kind: string, definition: Definition, inner: Inner): JsonSchema {
  switch (kind) {
    case "ZodObject":
      return objectSchema(definition, inner);
    case "ZodString":
      return { type: "string", ...limits(definition, { min: "minLength", max: "maxLength" }) };
    case "ZodNumber":
      return numberSchema(definition);
    case "ZodBoolean":
      return { type: "boolean" };
    case "ZodNull":
      return { type: "null" };
    case "ZodLiteral":
      return { const: definition("value") };
    case "ZodEnum":
      return { type: "string", enum: definition("values") };
    case "ZodNativeEnum":
      return { enum: nativeValues(definition("values")) };
    case "ZodArray":
      return { type: "array", items: inner(definition("type")) };
    case "ZodSet":
      return { type: "array", items: inner(definition("valueType")) };
    case "ZodTuple":
      return { type: "array", prefixItems: listOf(definition("items")).map(inner) };
    case "ZodRecord":
      return { type: "object", additionalProperties: inner(definition("valueType")) };
    case "ZodUnion":
    case "ZodDiscriminatedUnion":
      return { anyOf: listOf(definition("options")).map(inner) };
    case "ZodIntersection":
      return { allOf: [inner(definition("left")), inner(definition("right"))] };
    case "ZodNullable":
      return { anyOf: [inner(definition("innerType")), { type: "null" }] };
    case "ZodDefault":
      return { ...inner(definition("innerType")), ...defaultOf(definition("defaultValue")) };
    case "ZodOptional":
    case "ZodReadonly":
    case "ZodCatch":
      return inner(definition("innerType"));
    case "ZodBranded":
      return inner(definition("type"));
    case "ZodEffects":
      return inner(definition("schema"));
    case "ZodPipeline":
      return inner(definition("in"));
    case "ZodLazy":
      return inner(called(definition("getter")));
    default:
      return {};
  }
}

function objectSchema(definition: Definition, inner: Inner): JsonSchema {
  const shape: unknown = called(definition("shape"));
  const fields = typeof shape === "object" && shape !== null ? Object.entries(shape) : [];
  const required = fields.flatMap(([name, schema]) => (isOptional(schema) ? [] : [name]));
  return {
    type: "object",
    properties: Object.fromEntries(fields.map(([name, schema]) => [name, inner(schema)])),
    ...(required.length > 0 ? { required } : {}),
    ...(definition("unknownKeys") === "passthrough" ? {} : { additionalProperties: false }),
  };
}

function numberSchema(definition: Definition): JsonSchema {
  const isInteger = listOf(definition("checks")).some((check) => field(check, "kind") === "int");
  return { type: isInteger ? "integer" : "number", ...limits(definition, { min: "minimum", max: "maximum" }) };
}

/** Inclusive limits only; others are rare, and only for the reader. */
function limits(definition: Definition, names: { readonly min: string; readonly max: string }): JsonSchema {
  const found: Record<string, unknown> = {};
  for (const check of listOf(definition("checks"))) {
    const kind = field(check, "kind");
    if ((kind === "min" || kind === "max") && field(check, "inclusive") !== false) {
      found[names[kind]] = field(check, "value");
    }
  }
  return found;
}

/** TypeScript's numeric enums also map values back to names. */
function nativeValues(values: unknown): unknown[] {
  if (typeof values !== "object" || values === null) return [];
  const names = Object.keys(values).filter((name) => !/^\d+$/.test(name));
  return names.map((name): unknown => Reflect.get(values, name));
}

function defaultOf(given: unknown): JsonSchema {
  const value = called(given);
  return ["string", "number", "boolean"].includes(typeof value) ? { default: value } : {};
}

function isOptional(schema: unknown): boolean {
  const asks = field(schema, "isOptional");
  return typeof asks === "function" && Reflect.apply(asks, schema, []) === true;
}

function called(value: unknown): unknown {
  return typeof value === "function" ? Reflect.apply(value, undefined, []) : value;
}

function typeNameOf(schema: object): string {
  const name = definitionOf(schema)("typeName");
  return typeof name === "string" && name.startsWith("Zod") ? name : "";
}

function definitionOf(schema: object): Definition {
  const definition = field(schema, "_def");
  return (name) => field(definition, name);
}

function listOf(value: unknown): readonly unknown[] {
  if (value instanceof Map) return [...value.values()];
  return Array.isArray(value) ? value : [];
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
