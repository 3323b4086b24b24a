import type { SyntaxNode } from "@lezer/common";
import { childrenOf, commaSeparated, textOf } from "../syntax-nodes.ts";
import { PythonProblem } from "./python-problem.ts";

/** @throws PythonProblem if the arguments of a call are in an order that Python does not accept, or one comes twice. */
export function checkArguments(list: SyntaxNode, source: string): void {
  const keywords = new Set<string>();
  let unpacked = false;
  for (const [first, second] of commaSeparated(childrenOf(list))) {
    if (!first) continue;
    if (first.name === "**") {
      unpacked = true;
    } else if (second && textOf(second, source) === "=") {
      const name = textOf(first, source);
      if (keywords.has(name)) throw new PythonProblem(first.from, `the argument "${name}" is given twice`);
      keywords.add(name);
    } else if (unpacked || (keywords.size > 0 && first.name !== "*")) {
      throw new PythonProblem(first.from, "a positional argument follows a keyword argument");
    }
  }
}
