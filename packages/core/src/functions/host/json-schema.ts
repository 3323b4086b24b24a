import { dereference, type Schema, validate } from "@cfworker/json-schema";
import { InvalidInputError } from "../../errors/invalid-input-error.ts";
import { isJsonValue } from "../../json-value.ts";
import { finishWithin } from "./finish-within.ts";
import { type CheckedValue, describeSchemaIssues, type JsonSchema } from "./standard-schema.ts";

/** The schema's owner, for messages, and what happens if a part of a JSON schema cannot be checked. */
export interface SchemaUse {
  /** `get_weather's arguments` */
  readonly owner: string;
  /** `exact`: such a schema is an error. `lenient`: that part is not checked. */
  readonly checks: "exact" | "lenient";
}

/** Milliseconds that a check may take, and what it may still take after others have used up the time. */
const [mostMs, leastMs] = [500, 50];
/** The share of time that checks which take too long may use up. */
const share = 0.05;
/** Maximum characters of one message: it may quote the value. */
const longestMessage = 500;

/**
 * Compiles a JSON schema, of any draft from 4 to 2020-12, to a function that checks values by all its keywords. Keywords
 * beside `$ref` count in every draft. Formats are checked if they are known. A check that takes too long, because a
 * pattern backtracks or a list has to be free of repetitions, fails; for a while, the next ones may then take less time.
 *
 * @throws InvalidInputError if `checks` is `exact` and a part of the schema cannot be checked: the message names it.
 */
export function compileJsonSchema(schema: JsonSchema, use: SchemaUse): (value: unknown) => CheckedValue {
  const checkable = new CheckableSchema(schema, use);
  // Sessions share the schema: what one of them uses up must come back for the others.
  let [leftMs, at] = [mostMs, performance.now()];
  return (value) => {
    const json = asJson(value);
    if (json === undefined) return { problem: "not JSON, or nested too deeply" };
    const started = performance.now();
    leftMs = Math.min(mostMs, leftMs + (started - at) * share);
    at = started;
    const checked = finishWithin(Math.max(leastMs, leftMs), () => checkable.check(json.value));
    if (checked !== undefined) return checked.problem === undefined ? json : { problem: checked.problem };
    leftMs = Math.max(0, leftMs - (performance.now() - started));
    return { problem: "checking it against the schema takes too long" };
  };
}

/** A value as a receiver of its JSON sees it: without `undefined` fields, and with dates as text. */
function asJson(value: unknown): { readonly value: unknown } | undefined {
  if (isJsonValue(value)) return { value };
  try {
    const text: unknown = JSON.stringify(value);
    const copy: unknown = typeof text === "string" ? JSON.parse(text) : null;
    return isJsonValue(copy) ? { value: copy } : undefined;
  } catch {
    return undefined;
  }
}

/** Keywords whose value is a schema, a list of schemas, or schemas by name. */
const single = new Set(
  "additionalItems additionalProperties contains else if items not propertyNames then unevaluatedItems unevaluatedProperties".split(
    " ",
  ),
);
const lists = new Set(["allOf", "anyOf", "items", "oneOf", "prefixItems"]);
const maps = new Set(["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"]);
const types = new Set(["array", "boolean", "integer", "null", "number", "object", "string"]);
/** Errors that only say that an inner schema has some. */
const outer = new Set(
  "$recursiveRef $ref additionalItems additionalProperties allOf dependencies dependentSchemas if items patternProperties prefixItems properties propertyNames unevaluatedItems unevaluatedProperties".split(
    " ",
  ),
);

const isCount = (value: unknown): boolean => typeof value === "number" && value >= 0;
const isNumber = (value: unknown): boolean => typeof value === "number";
const isNames = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((name) => typeof name === "string");

/** What the values of other keywords must be. */
const forms: Readonly<Record<string, (value: unknown) => boolean>> = {
  $recursiveRef: (value) => value === "#",
  $schema: (value) => typeof value === "string" && /^https?:\/\/json-schema\.org\//.test(value),
  // References that depend on the way to them.
  $dynamicRef: () => false,
  dependentRequired: (value) => isObject(value) && Object.values(value).every(isNames),
  enum: Array.isArray,
  exclusiveMaximum: isNumber,
  exclusiveMinimum: isNumber,
  format: (value) => typeof value === "string",
  maxContains: isCount,
  maxItems: isCount,
  maxLength: isCount,
  maxProperties: isCount,
  maximum: isNumber,
  minContains: isCount,
  minItems: isCount,
  minLength: isCount,
  minProperties: isCount,
  minimum: isNumber,
  multipleOf: (value) => typeof value === "number" && value > 0,
  pattern: isPattern,
  required: isNames,
  type: (value) => (isNames(value) ? value : [value]).every((each) => typeof each === "string" && types.has(each)),
  uniqueItems: (value) => typeof value === "boolean",
};

/** A copy of a schema of which each part can be checked. */
class CheckableSchema {
  readonly #use: SchemaUse;
  readonly #schema: Schema;
  readonly #known: Record<string, Schema | boolean>;

  constructor(schema: JsonSchema, use: SchemaUse) {
    this.#use = use;
    const copy: unknown = isJsonValue(schema) ? structuredClone(schema) : {};
    this.#schema = isObject(copy) ? copy : {};
    if (!isJsonValue(schema)) this.#refuse("it is not JSON, or nested too deeply");
    this.#prepare(this.#schema, "#");
    this.#known = this.#resolve();
  }

  /** What is wrong with a value, if anything is. */
  check(value: unknown): { readonly problem?: string } {
    try {
      // With 2020-12, keywords beside `$ref` count; the validator makes no other difference between newer drafts.
      const { valid, errors } = validate(value, this.#schema, "2020-12", this.#known);
      if (valid) return {};
      const inner = errors.filter(({ keyword }) => !outer.has(keyword));
      const issues = (inner.length > 0 ? inner : errors).map(({ instanceLocation, error }) => ({
        path: pathOf(instanceLocation),
        message: error.length > longestMessage ? `${error.slice(0, longestMessage)}…` : error,
      }));
      return { problem: describeSchemaIssues(issues) };
    } catch {
      // A reference that leads to itself, or as many errors as do not fit on the stack.
      return { problem: "it cannot be checked against the schema" };
    }
  }

  /** Checks the keywords of a schema and of those in it; drops what cannot be checked. */
  #prepare(schema: Record<string, unknown>, place: string): void {
    asNumber(schema, "minimum", "exclusiveMinimum");
    asNumber(schema, "maximum", "exclusiveMaximum");
    for (const [keyword, value] of Object.entries(schema)) {
      const at = `${place}/${keyword}`;
      const form = Object.hasOwn(forms, keyword) ? forms[keyword] : undefined;
      if (form && !form(value)) this.#drop(schema, keyword, at);
      else if (maps.has(keyword)) this.#prepareMap(schema, keyword, at);
      else if (lists.has(keyword) && Array.isArray(value)) {
        for (const index of value.keys()) this.#prepareInner(value, index, `${at}/${index}`);
      } else if (single.has(keyword)) this.#prepareInner(schema, keyword, at);
      else if (lists.has(keyword)) this.#drop(schema, keyword, at);
    }
  }

  #prepareMap(schema: Record<string, unknown>, keyword: string, at: string): void {
    const map = schema[keyword];
    if (!isObject(map)) {
      this.#drop(schema, keyword, at);
      return;
    }
    for (const name of Object.keys(map)) {
      if (keyword === "dependencies" && isNames(map[name])) continue;
      if (keyword === "patternProperties" && !isPattern(name)) this.#drop(map, name, `${at}/${name}`);
      else this.#prepareInner(map, name, `${at}/${name}`);
    }
  }

  #prepareInner(parent: object, key: string | number, at: string): void {
    const schema: unknown = Reflect.get(parent, key);
    if (isObject(schema)) this.#prepare(schema, at);
    else if (typeof schema !== "boolean") {
      this.#refuse(`${at} is not a schema`);
      Reflect.set(parent, key, true);
    }
  }

  #resolve(): Record<string, Schema | boolean> {
    try {
      const known = dereference(this.#schema);
      for (const schema of Object.values(known)) {
        if (typeof schema === "boolean" || schema.$ref === undefined) continue;
        const target: unknown = Reflect.get(schema, "__absolute_ref__");
        if (typeof target === "string" && Object.hasOwn(known, target)) continue;
        this.#refuse(`"$ref": ${JSON.stringify(schema.$ref)} leads to nothing in the schema`);
        delete schema.$ref;
      }
      return known;
    } catch (cause) {
      this.#refuse(cause instanceof Error ? cause.message : String(cause));
      for (const keyword of Object.keys(this.#schema)) {
        if (keyword !== "type") Reflect.deleteProperty(this.#schema, keyword);
      }
      return dereference(this.#schema);
    }
  }

  #drop(parent: Record<string, unknown>, key: string, at: string): void {
    this.#refuse(`${at} is ${JSON.stringify(parent[key]).slice(0, 200)}`);
    Reflect.deleteProperty(parent, key);
  }

  #refuse(problem: string): void {
    if (this.#use.checks === "lenient") return;
    throw new InvalidInputError(`The JSON schema of ${this.#use.owner} cannot be checked: ${problem}`, {
      remedy: "Use other keywords, or a schema of zod, valibot or another Standard Schema library.",
    });
  }
}

/** Converts what draft 4 has for an exclusive limit: `{ "minimum": 1, "exclusiveMinimum": true }`. */
function asNumber(schema: Record<string, unknown>, limit: string, exclusive: string): void {
  if (typeof schema[exclusive] !== "boolean") return;
  if (schema[exclusive] && schema[limit] !== undefined) schema[exclusive] = schema[limit];
  else Reflect.deleteProperty(schema, exclusive);
}

function isPattern(value: unknown): boolean {
  try {
    return typeof value === "string" && new RegExp(value, "u").unicode;
  } catch {
    return false;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `#/a~1b/0` as `["a/b", 0]`. */
function pathOf(location: string): (string | number)[] {
  const parts = location.split("/").slice(1);
  return parts.map((part) => (/^\d+$/.test(part) ? Number(part) : part.replaceAll("~1", "/").replaceAll("~0", "~")));
}
