import * as z from "zod";
import { InvalidInputError } from "../errors/invalid-input-error.ts";
import { languageAmong } from "./canonical-language.ts";
import type { CodeBlock } from "./code-block.ts";

/**
 * The schema of a code block as a tool call's arguments: it validates them, and describes them to the model.
 *
 * @param languages - canonical names of the languages to offer; aliases and upper case are accepted, too. Default: any
 * text, so that the executor itself rejects languages it does not run.
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
    throw new InvalidInputError("The list of languages is empty", {
      remedy: "Pass at least one language that the executor runs; `capabilities.languages` lists them.",
    });
  }
  return z.preprocess(
    (value) => (typeof value === "string" ? languageAmong(value, languages) : value),
    z.enum([...languages]),
  );
}
