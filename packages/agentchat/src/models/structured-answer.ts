import {
  compileJsonSchema,
  type CreateOptions,
  type JsonObject,
  type JsonValue,
  maxJsonDepth,
  ModelClientError,
  type ModelInfo,
  type ModelMessage,
} from "@fenced/core";
import * as z from "zod";
import { parseJson } from "../common/json.ts";
import { withoutThoughts } from "../common/without-thoughts.ts";
import { isZodType } from "../tools/tool.ts";

/** A request for an answer that matches a schema. */
export interface StructuredRequest {
  readonly messages: readonly ModelMessage[];
  readonly request: Omit<CreateOptions, "signal">;
}

/** Asks for JSON that matches a schema: through the service's structured output or, without it, in words. */
export function structuredRequest(
  messages: readonly ModelMessage[],
  { jsonSchema, modelInfo }: { readonly jsonSchema: JsonObject; readonly modelInfo: ModelInfo },
): StructuredRequest {
  if (modelInfo.structuredOutput) return { messages, request: { jsonSchema } };
  const content = `Answer with one JSON value and nothing else. It must follow this JSON Schema:\n${JSON.stringify(jsonSchema)}`;
  const system = messages.findLastIndex((message) => message.role === "system");
  return { messages: messages.toSpliced(system + 1, 0, { role: "system", content }), request: {} };
}

/**
 * Parses the data in a model's answer; ignores text around the JSON.
 *
 * @throws ModelClientError if there is no JSON, or it does not match the schema. Parts of
 * a JSON Schema that cannot be checked, such as an invalid pattern, are not.
 */
export function parseStructuredAnswer(text: string, schema: z.ZodType | JsonObject): JsonValue {
  const checker = isZodType(schema) ? schema : fromJsonSchema(schema);
  const value = findJson(text, checker);
  if (value === undefined) {
    throw new ModelClientError(
      `The model's answer is not JSON, or nested more than ${maxJsonDepth} levels deep: ${JSON.stringify(text.slice(0, 200))}`,
      {
        remedy: "Use a model with structured output, or ask for JSON in the system message.",
      },
    );
  }
  const checked = checker.safeParse(value);
  if (checked.success) return value;
  throw new ModelClientError(`The model's answer does not match the schema: ${z.prettifyError(checked.error)}`, {
    remedy: "Use a model with structured output, or make the schema simpler.",
    cause: checked.error,
  });
}

/** Maximum number of brackets at which to look for JSON. */
const mostBrackets = 200;
/** Maximum number of characters to read in total: a hostile answer must not take seconds. */
const mostCharacters = 2_000_000;

/**
 * Finds JSON in a text, but not in thoughts at its beginning: the whole text, or the part from an opening bracket to the last closing one of its kind.
 * Returns the first match for the schema, otherwise the first JSON.
 */
export function findJson(text: string, schema: z.ZodType): JsonValue | undefined {
  let first: JsonValue | undefined;
  for (const piece of candidates(withoutThoughts(text))) {
    const value = parseJson(piece);
    if (value === undefined) continue;
    if (schema.safeParse(value).success) return value;
    first ??= value;
  }
  return first;
}

function* candidates(text: string): Generator<string, void, void> {
  yield text;
  const ends = { "{": text.lastIndexOf("}") + 1, "[": text.lastIndexOf("]") + 1 };
  let [brackets, characters] = [0, 0];
  for (const { 0: open, index } of text.matchAll(/[{[]/g)) {
    const piece = text.slice(index, ends[open === "{" ? "{" : "["]);
    brackets += 1;
    characters += piece.length;
    if (brackets > mostBrackets || characters > mostCharacters) return;
    yield piece;
  }
}

function fromJsonSchema(schema: JsonObject): z.ZodType {
  const check = compileJsonSchema(schema, { owner: "the answer", checks: "lenient" });
  return z.unknown().check(({ value, issues }) => {
    const checked = check(value);
    if ("problem" in checked) issues.push({ code: "custom", input: value, message: checked.problem });
  });
}
