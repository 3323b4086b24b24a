import type * as z from "zod";

/** Maximum number of issues to describe: a list of a hundred thousand wrong items has as many. */
const mostIssues = 20;

/** The issues of a failed validation on one line, each with the value's path: `a.b[0]: expected string; ...`. */
export function describeIssues(error: z.core.$ZodError): string {
  return joinIssues(error.issues, ({ path, message }) =>
    path.length === 0 ? message : `${pathName(path)}: ${message}`,
  );
}

/** Describes the first issues, and counts the others. */
export function joinIssues<Issue>(issues: readonly Issue[], describe: (issue: Issue) => string): string {
  const described = issues.slice(0, mostIssues).map(describe).join("; ");
  return issues.length > mostIssues ? `${described}; and ${issues.length - mostIssues} more` : described;
}

/** A value's path in one word: `a.b[0]`. */
export function pathName(path: readonly PropertyKey[]): string {
  return path
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`))
    .join("")
    .replace(/^\./, "");
}
