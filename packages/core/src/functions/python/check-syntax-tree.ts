import type { SyntaxNode, Tree } from "@lezer/common";
import { childrenOf } from "../syntax-nodes.ts";
import { checkArguments } from "./check-arguments.ts";
import { checkAsync, checkLoopControl, checkScope } from "./check-context.ts";
import { checkParameters } from "./check-parameters.ts";
import {
  checkAssignment,
  checkDeletion,
  checkLoopTargets,
  checkNamedExpression,
  checkUpdate,
} from "./check-targets.ts";
import { PythonProblem } from "./python-problem.ts";

/** @param source - the text whose shadow was parsed: names and operators are read from it. */
type Check = (node: SyntaxNode, source: string) => void;

const checks: ReadonlyMap<string, readonly Check[]> = new Map([
  ["ArgList", [checkArguments, checkLoopTargets]],
  ["ArrayComprehensionExpression", [checkLoopTargets, checkAsync]],
  ["AssignStatement", [checkAssignment]],
  ["AwaitExpression", [checkAsync]],
  ["BinaryExpression", [checkNot]],
  ["BreakStatement", [checkLoopControl]],
  ["ComprehensionExpression", [checkLoopTargets]],
  ["ContinueStatement", [checkLoopControl]],
  ["DeleteStatement", [checkDeletion]],
  ["DictionaryComprehensionExpression", [checkLoopTargets, checkAsync]],
  ["ExpressionStatement", [checkStar]],
  ["ForStatement", [checkLoopTargets, checkAsync]],
  ["IfStatement", [checkElif]],
  ["ImportStatement", [checkImport]],
  ["NamedExpression", [checkNamedExpression]],
  ["ParamList", [checkParameters]],
  ["ParenthesizedExpression", [checkStar]],
  ["RaiseStatement", [checkRaise]],
  ["ReturnStatement", [checkStar]],
  ["ScopeStatement", [checkScope]],
  ["SetComprehensionExpression", [checkLoopTargets, checkAsync]],
  ["TryStatement", [checkTry]],
  ["UpdateStatement", [checkUpdate]],
  ["WithStatement", [checkAsync]],
  ["YieldExpression", [checkStar]],
  ["YieldStatement", [checkStar]],
]);

/**
 * Finds what lezer could not read, and what it reads although Python would not: its grammar is made for editors, which
 * show unfinished code.
 *
 * @throws PythonProblem at the first such place.
 */
export function checkSyntaxTree(tree: Tree, source: string): void {
  tree.iterate({
    enter: (reference) => {
      if (reference.type.isError) throw new PythonProblem(reference.from, "invalid syntax");
      for (const check of checks.get(reference.name) ?? []) check(reference.node, source);
    },
  });
}

function checkStar(node: SyntaxNode): void {
  const children = childrenOf(node);
  const star = children.find(({ name }) => name === "*");
  const inTuple = node.name !== "ParenthesizedExpression" && children.some(({ name }) => name === ",");
  if (star && !inTuple) throw new PythonProblem(star.from, "a starred expression cannot stand alone");
}

function checkNot(node: SyntaxNode): void {
  const [operator, right] = childrenOf(node).slice(-2);
  const negated = right?.name === "UnaryExpression" && right.firstChild?.name === "not";
  const joins = operator?.name === "and" || operator?.name === "or";
  if (negated && !joins) throw new PythonProblem(right.from, '"not" needs parentheses here');
}

function checkElif(node: SyntaxNode): void {
  for (const elif of node.getChildren("elif")) {
    if (elif.nextSibling?.name === "Body") throw new PythonProblem(elif.to, "invalid syntax");
  }
}

function checkTry(node: SyntaxNode): void {
  const excepts = node.getChildren("except");
  if (excepts.length === 0 && (!node.getChild("finally") || node.getChild("else"))) {
    throw new PythonProblem(node.from, 'a "try" needs an "except" or a "finally"');
  }
  for (const except of excepts.slice(0, -1)) {
    if (except.nextSibling?.name === "Body") {
      throw new PythonProblem(except.from, 'an "except" for everything must be the last one');
    }
  }
}

function checkRaise(node: SyntaxNode): void {
  const comma = node.getChild(",");
  if (comma) throw new PythonProblem(comma.from, "invalid syntax");
}

function checkImport(node: SyntaxNode): void {
  const star = node.getChild("*");
  if (star) throw new PythonProblem(star.from, "import * is not allowed in a function");
}
