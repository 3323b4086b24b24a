import type * as z from "zod";
import { nearestName } from "./nearest-name.ts";

/** What a value must be, as the end of a sentence about it: "must be a number". Schemas can override it. */
export function requirement(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      // `new Team([a, b])`: the caller does not know that there is an options object.
      if (issue.expected === "object" && Array.isArray(issue.input)) return objectWith(knownNames(issue.inst));
      return `must be ${kinds[issue.expected] ?? `a value of the type ${issue.expected}`}`;
    case "invalid_value":
      return `must be ${oneOf(issue.values.map(literal))}`;
    case "invalid_union":
      return `must be ${oneOf(Array.isArray(issue.options) ? issue.options.map(literal) : membersOf(issue.errors))}`;
    case "too_small":
      return bound(issue.origin, issue.minimum, issue.inclusive === false ? "more than" : "at least");
    case "too_big":
      return bound(issue.origin, issue.maximum, issue.inclusive === false ? "less than" : "at most");
    case "unrecognized_keys":
      return [...new Set(issue.keys.map((key) => suggestion(key, knownNames(issue.inst))))].join(" ");
    default:
      return "must have a different value";
  }
}

/** The same for a field of JSON, after its path: "must be a number, but is missing". */
export function fieldRequirement(issue: z.core.$ZodRawIssue): string {
  const required = requirement(issue);
  if (issue.code === "unrecognized_keys") return `unknown ${issue.keys.map(literal).join(", ")}. ${required}`;
  return issue.input === undefined ? `${required}, but is missing` : required;
}

function objectWith([first]: readonly string[]): string {
  return `must be an object${first === undefined ? "" : `, such as { ${first}: … }`}`;
}

/** What the members of a union require. */
function membersOf(errors: readonly (readonly z.core.$ZodIssue[])[]): readonly string[] {
  return [...new Set(errors.flatMap(([first]) => (first ? [first.message.replace(/^must be /, "")] : [])))];
}

function literal(value: unknown): string {
  return JSON.stringify(value);
}

const kinds: Readonly<Record<string, string>> = {
  array: "an array",
  boolean: "true or false",
  function: "a function",
  int: "a whole number",
  number: "a finite number",
  object: "an object",
  record: "an object",
  string: "a string",
  tuple: "an array",
};

/** `a`, `a or b`, `a, b or c`. */
function oneOf(choices: readonly string[]): string {
  return choices.join(", ").replace(/, ([^,]*)$/, " or $1");
}

function bound(origin: string, limit: number | bigint, relation: string): string {
  if (origin === "string" && limit === 1) return "must not be empty";
  if (origin === "string") return `must have ${relation} ${limit} characters`;
  if (origin === "array") return limit === 1 ? "must not be empty" : `must have ${relation} ${limit} entries`;
  return `must be ${relation} ${limit}`;
}

function suggestion(key: string, known: readonly string[]): string {
  const near = nearestName(key, known);
  if (near !== undefined) return `Did you mean "${near}"${unitOf(near)}?`;
  return known.length === 0 ? "There are no options." : `The options are ${known.join(", ")}.`;
}

function unitOf(name: string): string {
  if (name.endsWith("Ms")) return ", in milliseconds";
  return name.endsWith("Bytes") ? ", in bytes" : "";
}

function knownNames(schema: object | undefined): readonly string[] {
  const shape: unknown = schema && "shape" in schema ? schema.shape : undefined;
  return typeof shape === "object" && shape !== null ? Object.keys(shape) : [];
}
