import { maxJsonDepth } from "./json-value.ts";

/** The default limit on values in JSON from elsewhere. As objects, this many take about a hundred megabytes. */
export const maxJsonValues = 1_000_000;
/**
 * The default limit on different field names. Each one costs a parser, and everything that looks at the object later, ten
 * times as much time as a value.
 */
const maxJsonNames = 100_000;
/** Longer names are not compared: each counts as one more. */
const longestName = 64;

/** What JSON from elsewhere may contain. */
export interface JsonLimits {
  /** Maximum number of values, of which each item and each field is one. Default: 1,000,000. */
  readonly maxValues?: number;
  /** Maximum number of different field names. Default: 100,000. */
  readonly maxNames?: number;
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
 * can take a gigabyte: this counts values, names and nesting first, and parses only what is within the limits.
 *
 * @param text - as bytes, it is UTF-8. The caller limits its length.
 * @throws JsonLimitError if it is beyond a limit, SyntaxError if it is not JSON.
 */
export function parseJson(text: string | Uint8Array, limits: JsonLimits = {}): unknown {
  const json = typeof text === "string" ? text : decoder.decode(text);
  measureJson(json, limits);
  return JSON.parse(json);
}

const [quote, comma, colon, backslash, openArray, closeArray, openObject, closeObject] = [
  34, 44, 58, 92, 91, 93, 123, 125,
];

/**
 * Counts the values of a JSON text without parsing it. For a text that is not JSON, the count is at least that of any
 * value that a parser creates before it notices.
 *
 * @throws JsonLimitError if it is beyond a limit.
 */
export function measureJson(
  json: string,
  { maxValues = maxJsonValues, maxNames = maxJsonNames, maxDepth = maxJsonDepth }: JsonLimits = {},
): number {
  const names = new NameCount();
  let [values, depth, stringStart, stringEnd] = [1, 0, 0, 0];
  for (let at = 0; at < json.length; at += 1) {
    const character = json.charCodeAt(at);
    // All others are parts of numbers and words, or white space.
    if (character < quote) continue;
    if (character === quote) {
      stringStart = at + 1;
      stringEnd = endOfString(json, stringStart);
      at = stringEnd;
    } else if (character === comma) {
      values += 1;
    } else if (character === colon) {
      names.add(json, stringStart, stringEnd);
    } else if (character === openArray || character === openObject) {
      values += 1;
      depth += 1;
      if (depth > maxDepth) throw new JsonLimitError(`JSON that is nested more than ${maxDepth} levels deep`);
    } else if (character === closeArray || character === closeObject) {
      depth -= 1;
    }
    if (values > maxValues) throw new JsonLimitError(`JSON of more than ${maxValues} values`);
    if (names.count > maxNames) throw new JsonLimitError(`JSON of more than ${maxNames} different names`);
  }
  return values;
}

/** Characters of a string to look at one by one: a search for each quote would take longer where many are escaped. */
const nearby = 16;

/** The index of the quote that ends a string, whose first character is at `start`. */
function endOfString(json: string, start: number): number {
  for (let [at, plain] = [start, 0]; at < json.length; at += 1) {
    const character = json.charCodeAt(at);
    if (character === quote) return at;
    plain += 1;
    if (character === backslash) [at, plain] = [at + 1, 0];
    if (plain < nearby) continue;
    const end = json.indexOf('"', at + 1);
    if (end === -1) return json.length;
    let slashes = 0;
    while (json.charCodeAt(end - slashes - 1) === backslash) slashes += 1;
    if (slashes % 2 === 0) return end;
    [at, plain] = [end, 0];
  }
  return json.length;
}

/** Counts different names by a hash of each, since a set of the names would take as long as parsing. */
class NameCount {
  count = 0;
  readonly #seen = new Set<number>();
  /** Without it, code could choose names that all have the same hash. */
  readonly #seed = Math.trunc(Math.random() * 0x7fff_ffff);

  /** Adds the name between two indices. */
  add(json: string, start: number, end: number): void {
    if (end - start > longestName) {
      this.count += 1;
      return;
    }
    let hash = this.#seed;
    for (let at = start; at < end; at += 1) hash = Math.imul(hash ^ json.charCodeAt(at), 0x0100_0193);
    const before = this.#seen.size;
    this.#seen.add(hash);
    this.count += this.#seen.size - before;
  }
}
