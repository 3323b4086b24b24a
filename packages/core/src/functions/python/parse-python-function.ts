import { InvalidInputError } from "../../errors/invalid-input-error.ts";
import type { FunctionDefinition } from "../function-definition.ts";
import { isPythonIdentifier } from "../names.ts";
import { cleanDocstring } from "./clean-docstring.ts";
import { dedentPython } from "./dedent-python.ts";
import { type PythonLine, pythonLines } from "./python-lines.ts";
import { PythonProblem } from "./python-problem.ts";
import { PythonScanner } from "./python-scanner.ts";
import { pythonSignature } from "./python-signature.ts";
import { pythonStringValue } from "./python-string-value.ts";
import type { PythonToken } from "./python-token.ts";

/**
 * Parses one Python function's source: its name, head and docstring. Python reports mistakes in the body when the
 * functions are set up.
 *
 * @throws InvalidInputError if it is not exactly one function definition, or a string, bracket or block in it is not
 * closed.
 */
export function parsePythonFunction(text: string): FunctionDefinition {
  const lines = text.replace(/^\uFEFF/, "").replaceAll(/\r\n?/g, "\n");
  try {
    return parseLines(lines);
  } catch (error) {
    throw error instanceof PythonProblem ? invalidSource(lines, error) : error;
  }
}

function parseLines(text: string): FunctionDefinition {
  const { source, originalOffset } = dedentPython(text, new PythonScanner(text).scan());
  try {
    const lines = pythonLines(source, new PythonScanner(source).scan());
    return definitionOf(source, lines, oneFunction(lines));
  } catch (error) {
    throw error instanceof PythonProblem ? new PythonProblem(originalOffset(error.offset), error.message) : error;
  }
}

function invalidSource(text: string, { offset, message }: PythonProblem): InvalidInputError {
  const before = text.slice(0, offset).split("\n");
  const [line, column] = [before.length, (before.at(-1) ?? "").length + 1];
  const content = text.split("\n")[line - 1]?.trim().slice(0, 120) ?? "";
  return new InvalidInputError(
    `This is not the source of a Python function: ${message}, at line ${line}, column ${column}: ${JSON.stringify(content)}`,
    { remedy: "Pass exactly one complete function definition; what it imports goes into globalImports." },
  );
}

/**
 * Expects decorators, then one `def` or `async def`, and nothing else at the margin. Returns the index of the line with
 * the `def`.
 */
function oneFunction(lines: readonly PythonLine[]): number {
  let found = -1;
  for (const [index, { tokens, level }] of lines.entries()) {
    const [first, second] = tokens;
    if (level > 0 || (first.text === "@" && found === -1)) continue;
    const isFunction = first.text === "def" || (first.text === "async" && second?.text === "def");
    if (found !== -1 || !isFunction) throw new PythonProblem(first.from, reasonAgainst(first.text, isFunction));
    found = index;
  }
  if (found === -1) throw new PythonProblem(0, "there is no function");
  return found;
}

function reasonAgainst(keyword: string, isFunction: boolean): string {
  if (keyword === "import" || keyword === "from") return "there is an import outside of the function";
  if (keyword === "class") return "there is a class outside of the function";
  return isFunction ? "there is a second function" : "there is a statement outside of the function";
}

function definitionOf(source: string, lines: readonly PythonLine[], index: number): FunctionDefinition {
  const tokens = lines[index]?.tokens ?? [];
  const [name, opening] = tokens.slice(tokens[0]?.text === "async" ? 2 : 1);
  const head = tokens.slice(0, headLength(tokens));
  const body = tokens.length > head.length ? tokens.slice(head.length) : (lines[index + 1]?.tokens ?? []);
  if (name === undefined || !isPythonIdentifier(name.text)) {
    throw new PythonProblem(name?.from ?? source.length, "the function has no name");
  }
  if (opening?.text !== "(" && opening?.text !== "[") {
    throw new PythonProblem(opening?.from ?? source.length, "the function has no parameter list in parentheses");
  }
  return { name: name.text, source, signature: pythonSignature(head), docstring: docstringOf(body) };
}

/** The number of tokens up to the colon before the body: the first colon that does not belong to a lambda. */
function headLength(tokens: readonly PythonToken[]): number {
  let lambdas = 0;
  for (const [index, { text, depth }] of tokens.entries()) {
    if (depth > 0) continue;
    if (text === "lambda") lambdas += 1;
    if (text === ":" && lambdas === 0) return index + 1;
    if (text === ":") lambdas -= 1;
  }
  throw new PythonProblem(tokens.at(-1)?.to ?? 0, 'there is no ":" at the end of the signature');
}

/** The first statement, if it is only a string; parentheses around it do not matter. */
function docstringOf(body: readonly PythonToken[]): string | undefined {
  const end = body.findIndex(({ text, depth }) => text === ";" && depth === 0);
  let statement = end === -1 ? body : body.slice(0, end);
  while (statement[0]?.text === "(" && statement.at(-1)?.text === ")") statement = statement.slice(1, -1);
  if (statement.some(({ kind }) => kind !== "string")) return undefined;
  const values = statement.map(pythonStringValue);
  if (values.includes(undefined)) return undefined;
  return cleanDocstring(values.join("")) || undefined;
}
