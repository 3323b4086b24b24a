import type { JsonObject } from "@fenced/core";

/** What is left of a value after it was written down and read again. */
export function throughJson(value: object): JsonObject {
  const text = JSON.stringify(value);
  return JSON.parse(text) as JsonObject;
}
