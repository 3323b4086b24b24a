import type { SyntaxNode } from "@lezer/common";
import { ancestorsOf, childrenOf } from "../syntax-nodes.ts";
import { PythonProblem } from "./python-problem.ts";

/** `break` and `continue`. @throws PythonProblem outside of a loop. */
export function checkLoopControl(node: SyntaxNode): void {
  for (const { name } of ancestorsOf(node)) {
    if (name === "ForStatement" || name === "WhileStatement") return;
    if (name === "FunctionDefinition" || name === "ClassDefinition") break;
  }
  throw new PythonProblem(node.from, `"${node.firstChild?.name ?? ""}" outside of a loop`);
}

/** `await`, `async for` and `async with`. @throws PythonProblem in a function that is not async. */
export function checkAsync(node: SyntaxNode): void {
  const isAsync = node.name === "AwaitExpression" || childrenOf(node).some(({ name }) => name === "async");
  if (!isAsync) return;
  let inner = node;
  let inFunction = false;
  for (const ancestor of ancestorsOf(node)) {
    // Generators may be async anywhere.
    if (ancestor.name === "ComprehensionExpression" || isGeneratorArgument(ancestor)) return;
    const isLambda = ancestor.name === "LambdaExpression";
    if (isLambda || ancestor.name === "FunctionDefinition") {
      inFunction = true;
      // Defaults and annotations belong to the function around this one.
      const inBody = isLambda ? inner.name !== "ParamList" : inner.name === "Body";
      if (inBody && ancestor.getChild("async")) return;
      if (inBody) break;
    }
    inner = ancestor;
  }
  if (inFunction) throw new PythonProblem(node.from, "await and async need an async function around them");
}

/** `nonlocal`. @throws PythonProblem where there is no function around the function. */
export function checkScope(node: SyntaxNode): void {
  const scopes = ancestorsOf(node).filter(({ name }) => name === "FunctionDefinition" || name === "ClassDefinition");
  if (node.firstChild?.name === "nonlocal" && scopes.length === 1) {
    throw new PythonProblem(node.from, "nonlocal needs a function around this one");
  }
}

function isGeneratorArgument(node: SyntaxNode): boolean {
  return node.name === "ArgList" && node.getChild("for") !== null;
}
