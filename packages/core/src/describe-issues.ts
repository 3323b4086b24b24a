import type * as z from "zod";

/** All issues of a failed validation on one line, each with the value's path: `a.b[0]: expected string; ...`. */
export function describeIssues(error: z.core.$ZodError): string {
  return error.issues.map((issue) => `${describePath(issue.path)}${issue.message}`).join("; ");
}

function describePath(path: readonly PropertyKey[]): string {
  const text = path.reduce<string>(
    (whole, key) => `${whole}${typeof key === "number" ? `[${key}]` : `.${String(key)}`}`,
    "",
  );
  return text === "" ? "" : `${text.replace(/^\./, "")}: `;
}
