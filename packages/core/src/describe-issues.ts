import type * as z from "zod";

/** All issues of a failed validation on one line, each with the value's path: `a.b[0]: expected string; ...`. */
export function describeIssues(error: z.core.$ZodError): string {
  return error.issues
    .map(({ path, message }) => (path.length === 0 ? message : `${pathName(path)}: ${message}`))
    .join("; ");
}

/** A value's path in one word: `a.b[0]`. */
export function pathName(path: readonly PropertyKey[]): string {
  return path
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`))
    .join("")
    .replace(/^\./, "");
}
