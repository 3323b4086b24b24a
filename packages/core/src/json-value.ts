/** Any value that survives `JSON.parse(JSON.stringify(value))`. */
export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  [key: string]: JsonValue;
}

/** The default limit on nesting in JSON from models and programs; deeper values overflow the stack of many parsers. */
export const maxJsonDepth = 500;

/**
 * True if a value is JSON and nested no deeper than `maxDepth`. Never overflows the stack, however deep the value is.
 */
export function isJsonValue(value: unknown, maxDepth: number = maxJsonDepth): value is JsonValue {
  if (isScalar(value)) return true;
  const left: { readonly value: unknown; readonly depth: number }[] = [{ value, depth: 0 }];
  // Visit shared and circular values again only where they are nested deeper.
  const seen = new Map<object, number>();
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value: part, depth } = next;
    if (depth >= maxDepth || !(Array.isArray(part) || isPlainObject(part))) return false;
    if ((seen.get(part) ?? -1) >= depth) continue;
    seen.set(part, depth);
    for (const inner of Array.isArray(part) ? part : valuesOf(part)) {
      // Most values are scalars, and listing each of them takes much longer than checking it.
      if (!isScalar(inner)) left.push({ value: inner, depth: depth + 1 });
    }
  }
  return true;
}

/** `Object.values` takes twice as long for an object with thousands of keys. */
function valuesOf(part: object): unknown[] {
  return Object.keys(part).map((key): unknown => Reflect.get(part, key));
}

function isScalar(value: unknown): value is string | number | boolean | null {
  if (typeof value === "number") return Number.isFinite(value);
  return value === null || typeof value === "string" || typeof value === "boolean";
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
