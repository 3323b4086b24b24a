import { ToolError } from "@anthropic-ai/sdk/lib/tools/ToolError";
import * as z from "zod";

/** A text that may be missing or `null`, which then is empty. */
export const text: z.ZodType<string> = z
  .string()
  .nullish()
  .transform((value) => value ?? "");

/**
 * What a model has given to a tool. Nobody else checks it.
 *
 * @param required - texts that must not be empty.
 * @throws ToolError if it is wrong.
 */
export function given<T extends Readonly<Record<string, unknown>>>(
  schema: z.ZodType<T>,
  input: unknown,
  tool: string,
  required: readonly (keyof T & string)[] = [],
): T {
  const { data, error } = schema.safeParse(input);
  if (error) {
    const [issue] = error.issues;
    throw new ToolError(`${tool}: ${[...(issue?.path ?? []), issue?.message ?? "wrong input"].map(String).join(": ")}`);
  }
  for (const name of required) if (data[name] === "") throw new ToolError(`${tool}: ${name} is required`);
  return data;
}
