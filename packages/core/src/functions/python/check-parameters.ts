import type { SyntaxNode } from "@lezer/common";
import { childrenOf, commaSeparated, textOf } from "../syntax-nodes.ts";
import { PythonProblem } from "./python-problem.ts";

/** What stood before a parameter. */
interface Seen {
  readonly names: Set<string>;
  slash: boolean;
  star: boolean;
  doubleStar: boolean;
  default: boolean;
}

/** @throws PythonProblem if the parameters of a function are in an order that Python does not accept, or one comes twice. */
export function checkParameters(list: SyntaxNode, source: string): void {
  const seen: Seen = { names: new Set(), slash: false, star: false, doubleStar: false, default: false };
  const parameters = commaSeparated(childrenOf(list));
  for (const [index, parameter] of parameters.entries()) {
    const [first, second] = parameter;
    if (!first) continue;
    if (seen.doubleStar) throw new PythonProblem(first.from, "no parameter can follow **");
    const mark = textOf(first, source);
    if (mark === "/") checkSlash(first, index, seen);
    else if (mark === "*") checkStar(first, second ?? parameters[index + 1]?.[0], seen);
    else if (mark === "**") seen.doubleStar = true;
    else checkDefault(first, parameter, source, seen);
    const name = mark === "*" || mark === "**" ? second : first;
    if (name && mark !== "/") checkName(name, source, seen);
  }
}

function checkSlash(slash: SyntaxNode, index: number, seen: Seen): void {
  if (index === 0) throw new PythonProblem(slash.from, "a parameter must come before /");
  if (seen.slash || seen.star) throw new PythonProblem(slash.from, "/ must come before *, and once");
  seen.slash = true;
}

function checkStar(star: SyntaxNode, next: SyntaxNode | undefined, seen: Seen): void {
  if (seen.star) throw new PythonProblem(star.from, "* can come only once");
  if (next?.name !== "VariableName") throw new PythonProblem(star.from, "a named parameter must follow *");
  seen.star = true;
}

function checkDefault(first: SyntaxNode, parameter: readonly SyntaxNode[], source: string, seen: Seen): void {
  const hasDefault = parameter.some((node) => textOf(node, source) === "=");
  if (seen.default && !hasDefault && !seen.star) {
    throw new PythonProblem(first.from, "a parameter without a default follows one with a default");
  }
  seen.default ||= hasDefault;
}

function checkName(node: SyntaxNode, source: string, seen: Seen): void {
  const name = textOf(node, source);
  if (name === "yield") throw new PythonProblem(node.from, "invalid syntax");
  if (seen.names.has(name)) throw new PythonProblem(node.from, `there are two parameters "${name}"`);
  seen.names.add(name);
}
