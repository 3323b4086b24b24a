import type { Tree } from "@lezer/common";
import { parser } from "@lezer/python";
import { checkSyntaxTree } from "./check-syntax-tree.ts";
import { checkTokens } from "./check-tokens.ts";
import { pythonLines, type PythonLine } from "./python-lines.ts";
import { PythonProblem } from "./python-problem.ts";
import { PythonScanner } from "./python-scanner.ts";
import type { PythonToken } from "./python-token.ts";
import { shadowPython, shadowPythonExpression } from "./shadow-python.ts";

/** A source that Python would accept, as far as can be told without Python. */
export interface PythonSyntax {
  readonly tokens: readonly PythonToken[];
  readonly lines: readonly PythonLine[];
  /** What lezer made of the source. Its offsets are the source's. */
  readonly tree: Tree;
}

/**
 * Reads source that stands on the left margin.
 *
 * @throws PythonProblem if Python would not accept it.
 */
export function pythonSyntax(source: string): PythonSyntax {
  const tokens = new PythonScanner(source).scan();
  const lines = pythonLines(source, tokens);
  checkTokens(tokens);
  const tree = parser.parse(shadowPython(source, lines));
  checkSyntaxTree(tree, source);
  for (const line of lines) {
    if (line.tokens[0].text === "@") checkExpression(line.tokens.slice(1), source);
  }
  checkFields(tokens, source);
  return { tokens, lines, tree };
}

function checkFields(tokens: readonly PythonToken[], source: string): void {
  for (const field of tokens.flatMap((token) => token.fields ?? [])) {
    checkTokens(field);
    checkExpression(field, source);
    checkFields(field, source);
  }
}

function checkExpression(tokens: readonly PythonToken[], source: string): void {
  const [first, last] = [tokens[0], tokens.at(-1)];
  if (!first || !last) return;
  try {
    const tree = parser.parse(`(${shadowPythonExpression(tokens)})`);
    checkSyntaxTree(tree, `(${source.slice(first.from, last.to)})`);
  } catch (error) {
    throw error instanceof PythonProblem ? new PythonProblem(error.offset - 1 + first.from, error.message) : error;
  }
}
