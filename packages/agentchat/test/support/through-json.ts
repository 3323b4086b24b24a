import type { JsonObject } from "@fenced/core";

/** A copy of a value after a round trip through JSON. */
export function throughJson(value: object): JsonObject {
  const text = JSON.stringify(value);
  return JSON.parse(text) as JsonObject;
}
