import * as z from "zod";
import { InvalidInputError } from "../errors/invalid-input-error.ts";
import { canonicalLanguage } from "./canonical-language.ts";
import type { CodeBlock } from "./code-block.ts";

/**
 * A code block as the arguments of a tool call: what a model is told about them, and what checks them.
 *
 * @param languages - canonical names of those that are offered; aliases and capital letters are understood, too.
 * Default: any text, so that an executor answers for itself which languages it runs.
 * @throws InvalidInputError if `languages` is empty.
 */
export function codeBlockSchema(languages?: readonly string[]): z.ZodType<CodeBlock> {
  return z.object({
    language: languageSchema(languages).describe("The language of the code, e.g. python."),
    code: z.string().describe("The complete source code. It must print what you want to know."),
  });
}

function languageSchema(languages: readonly string[] | undefined): z.ZodType<string> {
  if (languages === undefined) return z.string();
  if (languages.length === 0) {
    throw new InvalidInputError("There is no language to offer", {
      remedy: "Use an executor that runs a language, and offer one of those that it runs.",
    });
  }
  return z.preprocess(
    (value) => (typeof value === "string" ? canonicalLanguage(value) : value),
    z.enum([...languages]),
  );
}
