import type * as z from "zod";
import { describeIssues } from "../describe-issues.ts";
import { ComponentError } from "../errors/component-error.ts";
import type { JsonObject } from "../json-value.ts";

/**
 * A component's config, checked against its schema. Write the schema with `z.strictObject`, so that a misspelt key is
 * an error.
 *
 * @param provider - `ComponentContext.provider`, for the message.
 * @throws ComponentError that names every issue with the path of the value.
 */
export function parseComponentConfig<T>(schema: z.ZodType<T>, config: JsonObject, provider: string): T {
  const parsed = schema.safeParse(config);
  if (parsed.success) return parsed.data;
  throw new ComponentError(`The config of ${provider} is not valid: ${describeIssues(parsed.error)}`, {
    remedy: "Correct the config; its shape is what dumpComponent of the same component returns.",
    cause: parsed.error,
  });
}
