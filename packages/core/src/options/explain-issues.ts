import type * as z from "zod";
import { pathName } from "../describe-issues.ts";

/** A problem with the options, and what to do about it. */
interface Finding {
  /** Where: `docker.host`, `functions[0]`; empty for the options as a whole. */
  readonly name: string;
  readonly problem: string;
  readonly remedy: string;
}

/** Turns issues into the two parts of an error message. */
export function explainIssues(
  issues: readonly z.core.$ZodIssue[],
  owner: string,
): { readonly problem: string; readonly remedy: string; readonly option?: string } {
  const findings = issues.flatMap((issue) => innermost(issue)).map(explain);
  const remedies = findings.map(({ name, remedy }) =>
    /^[A-Z]/.test(remedy) ? remedy : `${subject(name, findings.length)} ${remedy.replace(/[^.?]$/, "$&.")}`,
  );
  const problem = `${owner}: ${findings.map((finding) => finding.problem).join("; ")}`;
  const [option] = findings[0]?.name.split(/[.[]/) ?? [];
  return { problem, remedy: remedies.join(" "), ...(option === undefined || option === "" ? {} : { option }) };
}

function subject(name: string, count: number): string {
  if (count > 1 && name !== "") return `"${name}"`;
  return name === "" ? "They" : "It";
}

function explain(issue: z.core.$ZodIssue): Finding {
  const { path, message: remedy } = issue;
  const name = pathName(path);
  if (issue.code === "unrecognized_keys") {
    const names = issue.keys.map((key) => `"${pathName([...path, key])}"`);
    return { name, problem: `unknown option${names.length > 1 ? "s" : ""} ${names.join(", ")}`, remedy };
  }
  if (name !== "") return { name, problem: `"${name}" is ${state(issue)}`, remedy };
  return { name, problem: `the options are ${issue.code === "custom" ? "not valid" : state(issue)}`, remedy };
}

/** The issues of the union member that the caller most likely meant, or the union's own if there is no such member. */
function innermost(issue: z.core.$ZodIssue, above: readonly PropertyKey[] = []): z.core.$ZodIssue[] {
  const path = [...above, ...issue.path];
  if (issue.code !== "invalid_union") return [{ ...issue, path }];
  if ("options" in issue && issue.discriminator !== undefined) {
    const input: unknown = Reflect.get(Object(issue.input), issue.discriminator);
    return [{ code: "invalid_value", values: [], path, input, message: issue.message }];
  }
  const branches = issue.errors.filter((errors) => !errors.some(isOfAnotherKind));
  const [meant] = branches;
  if (meant && branches.length === 1) return meant.flatMap((each) => innermost(each, path));
  return [{ ...issue, path }];
}

/** The value is not of this member's type, or its tag says another kind (`type: "docker"`). */
function isOfAnotherKind(issue: z.core.$ZodIssue): boolean {
  if (issue.code === "invalid_value" && issue.values.length === 1) return true;
  return issue.path.length === 0 && ["invalid_type", "invalid_value", "custom"].includes(issue.code);
}

/** One of the union's members is a few words, so a string is probably a misspelled one. */
function isWord(issue: z.core.$ZodIssue): boolean {
  if (issue.code !== "invalid_union" || !("errors" in issue)) return false;
  return issue.errors.some((errors) => errors.some((each) => each.code === "invalid_value" && each.values.length > 1));
}

/** Describes a value. Shows a string only if it had to be one of a few words, since it may be a secret. */
function state(issue: z.core.$ZodIssue): string {
  const { code, input } = issue;
  if (input === undefined) return "missing";
  if (typeof input === "string") {
    if (input === "") return "empty";
    if (code === "invalid_value" || isWord(issue)) return JSON.stringify(input.slice(0, 100));
    return code === "invalid_type" || code === "invalid_union" ? "a string" : "not valid";
  }
  if (input === null) return "null";
  if (typeof input === "number" || typeof input === "boolean") return String(input);
  if (Array.isArray(input) && input.length === 0) return "empty";
  if (code !== "invalid_type" && code !== "custom" && code !== "invalid_union") return "not valid";
  if (typeof input !== "object") return `a ${typeof input}`;
  return Array.isArray(input) ? "an array" : "an object";
}
