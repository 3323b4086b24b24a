import {
  InvalidInputError,
  isJsonValue,
  type JsonObject,
  type JsonValue,
  maxJsonDepth,
  parseJson as parseJsonText,
} from "@fenced/core";
import * as z from "zod";

// States wrap JSON from models and programs, so they are nested deeper.
const maxStateDepth = 2 * maxJsonDepth;

/** Any JSON value. Unlike zod's own, it neither overflows the stack nor loses a key named `__proto__`. */
export const jsonValueSchema: z.ZodType<JsonValue> = z.custom<JsonValue>(
  (value) => isJsonValue(value, maxStateDepth),
  `Expected JSON, nested at most ${maxStateDepth} levels deep`,
);

/** A JSON object. */
export const jsonObjectSchema: z.ZodType<JsonObject> = z.custom<JsonObject>(
  (value) => isObject(value) && isJsonValue(value, maxStateDepth),
  `Expected a JSON object, nested at most ${maxStateDepth} levels deep`,
);

/** An object whose fields follow a schema, parsed as a map, where any key is safe, even `__proto__`. */
export function mapSchema<T>(schema: z.ZodType<T>): z.ZodType<Map<string, T>> {
  return z.preprocess(
    (value) => (isObject(value) ? Object.entries(value) : value),
    z.array(z.tuple([z.string(), schema])).transform((entries) => new Map(entries)),
  );
}

/** Parses JSON text; `undefined` if it is not JSON, too large, or nested too deep for many parsers. */
export function parseJson(text: string): JsonValue | undefined {
  try {
    const value = parseJsonText(text);
    return isJsonValue(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * A deep copy of plain data as JSON; `undefined` fields are left out.
 *
 * @throws InvalidInputError for values that JSON cannot represent (functions, bytes, infinite numbers, class
 * instances), and for data nested so deep that it could not be loaded again.
 */
export function toJson(value: unknown, depth = 0): JsonValue {
  if (isScalar(value)) return value;
  if (depth >= maxStateDepth) {
    throw new InvalidInputError(`The data is nested more than ${maxStateDepth} levels deep`, {
      remedy: "Flatten the data, for example by storing the inner part as JSON text.",
    });
  }
  if (Array.isArray(value)) return value.map((item) => toJson(item, depth + 1));
  if (isObject(value)) return toJsonObject(value, depth);
  throw new InvalidInputError(`A value of type ${typeof value} is not JSON`, {
    remedy: "Use strings, finite numbers, booleans, null, arrays and plain objects.",
  });
}

/** Does the same for an object. */
export function toJsonObject(value: object, depth = 0): JsonObject {
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  // Creates own fields for all keys, even for "__proto__".
  return Object.fromEntries(fields.map(([key, field]) => [key, toJson(field, depth + 1)]));
}

function isScalar(value: unknown): value is string | number | boolean | null {
  if (typeof value === "number") return Number.isFinite(value);
  return value === null || typeof value === "string" || typeof value === "boolean";
}

function isObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
