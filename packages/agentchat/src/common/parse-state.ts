import { InvalidInputError, type JsonObject } from "@fenced/core";
import * as z from "zod";

/**
 * Validates a saved state.
 *
 * @param owner - whose state it should be, for the error message.
 * @throws InvalidInputError if it has another shape.
 */
export function parseState<T>(schema: z.ZodType<T>, state: JsonObject, owner: string): T {
  const parsed = schema.safeParse(state);
  if (parsed.success) return parsed.data;
  throw new InvalidInputError(`This is not the state of ${owner}: ${z.prettifyError(parsed.error)}`, {
    remedy: "Pass the value that saveState() of the same class returned.",
    cause: parsed.error,
  });
}
