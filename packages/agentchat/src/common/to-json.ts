import { InvalidInputError, type JsonObject, type JsonValue } from "@fenced/core";

/**
 * A deep copy of plain data as JSON; `undefined` fields are left out.
 *
 * @throws InvalidInputError for what JSON cannot hold: functions, bytes, infinite numbers, class instances.
 */
export function toJson(value: unknown): JsonValue {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value === "object" && isPlain(value)) return toJsonObject(value);
  throw new InvalidInputError(`A value of type ${typeof value} is not JSON`, {
    remedy: "Use strings, finite numbers, booleans, null, arrays and plain objects.",
  });
}

/** The same for an object. */
export function toJsonObject(value: object): JsonObject {
  const result: JsonObject = {};
  for (const [key, field] of Object.entries(value)) {
    if (field !== undefined) Object.defineProperty(result, key, ownField(toJson(field)));
  }
  return result;
}

// Defined, not assigned: a key named "__proto__" must stay data.
function ownField(value: JsonValue): PropertyDescriptor {
  return { value, enumerable: true, writable: true, configurable: true };
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
