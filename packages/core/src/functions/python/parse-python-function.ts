import type { SyntaxNode } from "@lezer/common";
import { InvalidInputError } from "../../errors/invalid-input-error.ts";
import type { FunctionDefinition } from "../function-definition.ts";
import { textOf } from "../syntax-nodes.ts";
import { cleanDocstring } from "./clean-docstring.ts";
import { dedentPython } from "./dedent-python.ts";
import type { PythonLine } from "./python-lines.ts";
import { PythonProblem } from "./python-problem.ts";
import { PythonScanner } from "./python-scanner.ts";
import { pythonSignature } from "./python-signature.ts";
import { pythonStringValue } from "./python-string-value.ts";
import { pythonSyntax, type PythonSyntax } from "./python-syntax.ts";

/**
 * Reads the source of one Python function.
 *
 * @throws InvalidInputError if the source is broken or is not exactly one function definition.
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
    const syntax = pythonSyntax(source);
    assertOneFunction(syntax.lines);
    return definitionOf(source, syntax);
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

/** Decorators, then one `def` or `async def`, and nothing else at the margin. */
function assertOneFunction(lines: readonly PythonLine[]): void {
  let found = false;
  for (const { tokens, level } of lines) {
    const [first, second] = tokens;
    if (level > 0 || (first.text === "@" && !found)) continue;
    const isFunction = first.text === "def" || (first.text === "async" && second?.text === "def");
    if (found || !isFunction) throw new PythonProblem(first.from, reasonAgainst(first.text, isFunction));
    found = true;
  }
  if (!found) throw new PythonProblem(0, "there is no function");
}

function reasonAgainst(keyword: string, isFunction: boolean): string {
  if (keyword === "import" || keyword === "from") return "an import stands outside of the function";
  if (keyword === "class") return "a class stands outside of the function";
  return isFunction ? "there is a second function" : "a statement stands outside of the function";
}

function definitionOf(source: string, { tokens, tree }: PythonSyntax): FunctionDefinition {
  const definition = tree.topNode.getChild("FunctionDefinition");
  const [name, body] = [definition?.getChild("VariableName"), definition?.getChild("Body")];
  if (!definition || !name || !body) throw new PythonProblem(0, "there is no function");
  const head = tokens.filter(({ from }) => from >= definition.from && from <= body.from);
  return {
    name: textOf(name, source),
    source,
    signature: pythonSignature(head),
    docstring: docstringOf(body, tokens),
  };
}

function docstringOf(body: SyntaxNode, tokens: PythonSyntax["tokens"]): string | undefined {
  let node = body.firstChild?.nextSibling;
  // Statements on one line are grouped; brackets around the string do not matter.
  if (node?.name === "StatementGroup") node = node.firstChild;
  node = node?.name === "ExpressionStatement" ? node.firstChild : undefined;
  // "a", "b" is a tuple.
  if (node?.nextSibling) return undefined;
  while (node?.name === "ParenthesizedExpression") node = node.firstChild?.nextSibling;
  if (!node || (node.name !== "String" && node.name !== "ContinuedString")) return undefined;
  const { from, to } = node;
  const values = tokens
    .filter((token) => token.kind === "string" && token.from >= from && token.to <= to)
    .map(pythonStringValue);
  if (values.includes(undefined)) return undefined;
  return cleanDocstring(values.join("")) || undefined;
}
