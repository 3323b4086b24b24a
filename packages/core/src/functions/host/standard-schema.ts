import { joinIssues, pathName } from "../../describe-issues.ts";

/**
 * The part that Fenced uses of a schema of any Standard Schema library (zod, valibot, ArkType and others). See
 * https://standardschema.dev.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** The property that all such schemas share. */
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    /** Exists only for the compiler. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** The result of validating a value. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** The result of a check: the value to use, or what is wrong with it. */
export type CheckedValue = { readonly value: unknown } | { readonly problem: string };

/** A problem with a value, and where it is. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A JSON schema, as a plain object: `{ type: "object", properties: { city: { type: "string" } } }`. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** True if a value is a library's schema. Some of them are functions with properties. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard: unknown = Reflect.get(value, "~standard");
  return typeof standard === "object" && standard !== null && "validate" in standard;
}

/** The issues on one line, each with the field it concerns: `"city": expected string`. */
export function describeSchemaIssues(issues: readonly SchemaIssue[]): string {
  return joinIssues(issues, ({ message, path = [] }) => `${fieldName(path)}${message}`);
}

function fieldName(path: NonNullable<SchemaIssue["path"]>): string {
  const keys = path.map((part) => (typeof part === "object" ? part.key : part));
  return keys.length === 0 ? "" : `"${pathName(keys)}": `;
}
