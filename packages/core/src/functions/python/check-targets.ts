import type { SyntaxNode } from "@lezer/common";
import { childrenOf, textOf } from "../syntax-nodes.ts";
import { PythonProblem } from "./python-problem.ts";

const punctuation: ReadonlySet<string> = new Set([",", "*", "(", ")", "[", "]"]);

/** `a, *b = c.d = e`: @throws PythonProblem if something other than a variable is assigned to. */
export function checkAssignment(statement: SyntaxNode, source: string): void {
  const children = childrenOf(statement);
  const annotation = children.findIndex(({ name }) => name === "TypeDef");
  const lastAssign = children.findLastIndex(({ name }) => name === "AssignOp");
  const targets = children.slice(0, annotation < 0 ? lastAssign : annotation);
  for (const target of targets.filter(({ name }) => name !== "AssignOp")) {
    if (annotation < 0) assertTarget(target, source);
    else assertSingleTarget(target, source);
  }
  checkStars(children);
}

/** `a += b` */
export function checkUpdate(statement: SyntaxNode, source: string): void {
  for (const child of childrenOf(statement)) {
    if (child.name === "UpdateOp") return;
    assertSingleTarget(child, source);
  }
}

/** `del a, b[c]` */
export function checkDeletion(statement: SyntaxNode, source: string): void {
  for (const child of childrenOf(statement).slice(1)) assertTarget(child, source);
}

/** `for a, (b, *c) in d`, as a statement and in comprehensions. */
export function checkLoopTargets(node: SyntaxNode, source: string): void {
  let inTargets = false;
  for (const child of childrenOf(node)) {
    if (child.name === "in") inTargets = false;
    else if (inTargets) assertTarget(child, source);
    else if (child.name === "for") inTargets = true;
  }
}

/** `a := b` */
export function checkNamedExpression(node: SyntaxNode, source: string): void {
  const target = node.firstChild;
  if (target && target.name !== "VariableName") throw notATarget(target, source);
}

function assertTarget(node: SyntaxNode, source: string): void {
  if (punctuation.has(node.name) || isVariable(node, source)) return;
  if (!isNested(node) && node.name !== "TupleExpression" && node.name !== "ArrayExpression") {
    throw notATarget(node, source);
  }
  for (const child of childrenOf(node)) assertTarget(child, source);
}

function assertSingleTarget(node: SyntaxNode, source: string): void {
  const inner = isNested(node) ? node.firstChild?.nextSibling : undefined;
  if (inner) assertSingleTarget(inner, source);
  else if (!isVariable(node, source)) throw notATarget(node, source);
}

function isNested(node: SyntaxNode): boolean {
  return node.name === "ParenthesizedExpression";
}

function isVariable(node: SyntaxNode, source: string): boolean {
  const isName = node.name === "VariableName" && textOf(node, source) !== "yield";
  return isName || node.name === "MemberExpression";
}

function notATarget(node: SyntaxNode, source: string): PythonProblem {
  const [line = ""] = textOf(node, source).split("\n");
  return new PythonProblem(node.from, `nothing can be assigned to "${line}"`);
}

function checkStars(children: readonly SyntaxNode[]): void {
  let [star, commas]: [SyntaxNode | undefined, boolean] = [undefined, false];
  for (const child of children) {
    if (child.name === "*") star = child;
    if (child.name === ",") commas = true;
    if (child.name !== "AssignOp") continue;
    if (star && !commas) break;
    [star, commas] = [undefined, false];
  }
  if (star && !commas) throw new PythonProblem(star.from, "a starred expression cannot stand alone");
}
