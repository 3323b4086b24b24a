import { maxJsonDepth } from "./json-value.ts";

/** The default limit on values in JSON from elsewhere. As objects, this many take about a hundred megabytes. */
export const maxJsonValues = 1_000_000;

/** What JSON from elsewhere may contain. */
export interface JsonLimits {
  /** Maximum number of values, of which each item and each field is one. Default: 1,000,000. */
  readonly maxValues?: number;
  /** Maximum nesting. Default: 500. */
  readonly maxDepth?: number;
}

const decoder = new TextDecoder();

/** JSON has more values, or is nested deeper, than its reader accepts. It was not parsed. */
export class JsonLimitError extends Error {
  override readonly name = "JsonLimitError";
}

/**
 * Parses JSON that somebody else wrote. `JSON.parse` turns each `{},` into 40 bytes or more, so a few megabytes of text
 * can take a gigabyte: this counts values and nesting first, and parses only what is within the limits.
 *
 * @param text - as bytes, it is UTF-8. The caller limits its length.
 * @throws JsonLimitError if it is beyond a limit, SyntaxError if it is not JSON.
 */
export function parseJson(text: string | Uint8Array, limits: JsonLimits = {}): unknown {
  const json = typeof text === "string" ? text : decoder.decode(text);
  measureJson(json, limits);
  return JSON.parse(json);
}

const [quote, comma, backslash, openArray, closeArray, openObject, closeObject] = [34, 44, 92, 91, 93, 123, 125];

/**
 * Counts the values of a JSON text without parsing it. For a text that is not JSON, the count is at least that of any
 * value that a parser creates before it notices.
 *
 * @throws JsonLimitError if it is beyond a limit.
 */
export function measureJson(
  json: string,
  { maxValues = maxJsonValues, maxDepth = maxJsonDepth }: JsonLimits = {},
): number {
  let [values, depth] = [1, 0];
  for (let at = 0; at < json.length; at += 1) {
    const character = json.charCodeAt(at);
    // All others are parts of numbers and words, or white space.
    if (character < quote) continue;
    if (character === quote) {
      at = endOfString(json, at);
    } else if (character === comma) {
      values += 1;
    } else if (character === openArray || character === openObject) {
      values += 1;
      depth += 1;
      if (depth > maxDepth) throw new JsonLimitError(`JSON that is nested more than ${maxDepth} levels deep`);
    } else if (character === closeArray || character === closeObject) {
      depth -= 1;
    }
    if (values > maxValues) throw new JsonLimitError(`JSON of more than ${maxValues} values`);
  }
  return values;
}

/** The index of the quote that ends a string. */
function endOfString(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); end >= 0; end = json.indexOf('"', end + 1)) {
    let slashes = 0;
    while (json.charCodeAt(end - slashes - 1) === backslash) slashes += 1;
    if (slashes % 2 === 0) return end;
  }
  return json.length;
}
