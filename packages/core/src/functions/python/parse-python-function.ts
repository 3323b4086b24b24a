import { InvalidInputError } from "../../errors/invalid-input-error.ts";
import type { FunctionDefinition } from "../function-definition.ts";
import { isPythonIdentifier } from "../names.ts";
import { cleanDocstring } from "./clean-docstring.ts";

/** Allows a source to stay indented if a line, such as one of a string, is indented less than the function. */
const wrapper = "if True:\n";
const functionStart = /^(?:async[ \t]+)?def[ \t]+([\p{XID_Start}_]\p{XID_Continue}*)/u;
/** Brackets and colons, and what may hide them. */
const headPart = /"""|'''|["'#([{}\]):]/g;
const stringStart = /^(?:\s|#[^\n]*\n)*([rRuU]?)("""|'''|["'])/;
const statementEnd = /[ \t]*(?:[;#\n]|$)/y;
const escapes: ReadonlyMap<string, string> = new Map([
  ["\n", ""],
  ["n", "\n"],
  ["t", "\t"],
  ...["\\", "'", '"'].map((each) => [each, each] as const),
]);

/**
 * Reads what code and models need to know of a Python function's source: its name, head and docstring. Python judges
 * the source when the functions are set up.
 *
 * @throws InvalidInputError if there is no function at the margin, or its head has no end.
 */
export function parsePythonFunction(text: string): FunctionDefinition {
  const source = dedent(text.replace(/^\uFEFF/, "").replaceAll(/\r\n?/g, "\n"));
  const margin = source.startsWith(wrapper) ? marginOf(source.slice(wrapper.length)) : "";
  const lines = source.split("\n");
  const first = lines.findIndex((line) => line.startsWith(margin) && functionStart.test(line.slice(margin.length)));
  const name = functionStart.exec(lines[first]?.slice(margin.length) ?? "")?.[1] ?? "";
  if (!isPythonIdentifier(name)) throw invalidSource('no line at its margin begins with "def" and a name');
  const rest = lines.slice(first).join("\n").slice(margin.length);
  const end = headEnd(rest);
  if (end === undefined) throw invalidSource(`the head of ${name} has no ":" at its end`);
  return { name, source, signature: rest.slice(0, end), docstring: docstringOf(rest.slice(end)) };
}

function invalidSource(problem: string): InvalidInputError {
  return new InvalidInputError(`This is not the source of a Python function: ${problem}`, {
    remedy: "Pass one complete function definition; what it imports goes into globalImports.",
  });
}

/** Removes blank lines around a source, and the indentation of its first line from all lines. */
function dedent(text: string): string {
  const trimmed = text.replace(/^(?:[ \t\f]*\n)+/, "").trimEnd();
  const margin = marginOf(trimmed);
  const lines = trimmed.split("\n");
  if (margin === "") return trimmed;
  if (!lines.every((line) => line.startsWith(margin) || line.trim() === "")) return wrapper + trimmed;
  return lines.map((line) => line.slice(margin.length)).join("\n");
}

/** The indentation of the first line that is more than a comment. */
function marginOf(text: string): string {
  return /^([ \t]*)[^\s#]/m.exec(text)?.[1] ?? "";
}

/** The offset after the colon that ends the head. */
function headEnd(source: string): number | undefined {
  let depth = 0;
  headPart.lastIndex = 0;
  for (let found = headPart.exec(source); found; found = headPart.exec(source)) {
    const [part] = found;
    if (part === ":" && depth === 0) return headPart.lastIndex;
    if ("([{".includes(part)) depth += 1;
    else if (")]}".includes(part)) depth -= 1;
    else if (part !== ":") headPart.lastIndex = endOf(part === "#" ? "\n" : part, source, headPart.lastIndex);
  }
  return undefined;
}

/** The offset after the mark that ends a string or a comment; the text's length if there is none. */
function endOf(mark: string, text: string, from: number): number {
  const marks = new RegExp(String.raw`\\[^]|${mark}`, "g");
  marks.lastIndex = from;
  for (let found = marks.exec(text); found; found = marks.exec(text)) if (found[0] === mark) return marks.lastIndex;
  return text.length;
}

/** The first statement, if it is a single string; strings that Python would join are not read. */
function docstringOf(body: string): string | undefined {
  const [start, prefix = "", mark] = stringStart.exec(body) ?? [""];
  if (mark === undefined) return undefined;
  const end = endOf(mark, body, start.length);
  statementEnd.lastIndex = end;
  if (!statementEnd.test(body)) return undefined;
  const content = body.slice(start.length, end - mark.length);
  if (/r/i.test(prefix)) return cleanDocstring(content) || undefined;
  const text = content.replaceAll(/\\([^])/g, (whole, escaped: string) => escapes.get(escaped) ?? whole);
  return cleanDocstring(text) || undefined;
}
