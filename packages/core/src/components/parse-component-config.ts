import type * as z from "zod";
import { describeIssues } from "../describe-issues.ts";
import { ComponentError } from "../errors/component-error.ts";
import type { JsonObject } from "../json-value.ts";
import { fieldRequirement } from "../options/requirement.ts";

/**
 * Validates a component's config against its schema. Use `z.strictObject` for the schema, so that a misspelled key is
 * an error.
 *
 * @param provider - `ComponentContext.provider`, for the message.
 * @throws ComponentError that names every issue with the path of the value.
 */
export function parseComponentConfig<T>(schema: z.ZodType<T>, config: JsonObject, provider: string): T {
  const parsed = schema.safeParse(config, { error: fieldRequirement });
  if (parsed.success) return parsed.data;
  throw new ComponentError(`The config of ${provider} is not valid: ${describeIssues(parsed.error)}`, {
    remedy: "Fix the config: it must have the shape that dumpComponent() of the same component returns.",
    cause: parsed.error,
  });
}
