import type { SyntaxNode } from "@lezer/common";
import { childrenOf } from "../syntax-nodes.ts";
import type { JavaScriptStructure } from "./javascript-structure.ts";

/** The comment at the start of a function's body, without its delimiters; `undefined` if there is none. */
export function javaScriptDocumentation({ text, body }: JavaScriptStructure): string | undefined {
  const textOf = ({ from, to }: SyntaxNode): string => text.slice(from + body.shift, to + body.shift);
  const comments = leadingComments(body.node);
  const [first] = comments;
  if (!first) return undefined;
  const lines = first.name === "BlockComment" ? blockLines(textOf(first)) : comments.map(textOf).map(withoutSlashes);
  return lines.join("\n").trim() || undefined;
}

/** One block comment, or consecutive line comments. */
function leadingComments(definition: SyntaxNode): SyntaxNode[] {
  const block = definition.getChild("Block");
  const children = block ? childrenOf(block) : childrenOf(definition);
  const start = children.findIndex(({ name }) => name === (block ? "{" : "Arrow")) + 1;
  if (children[start]?.name === "BlockComment") return children.slice(start, start + 1);
  const end = children.findIndex(({ name }, index) => index >= start && name !== "LineComment");
  return children.slice(start, Math.max(start, end));
}

function blockLines(comment: string): string[] {
  return comment
    .replace(/^\/\*\*?/, "")
    .replace(/\*\/$/, "")
    .split("\n")
    .map((line, index) => (index === 0 ? line : line.replace(/^\s*\* ?/, "")).trimEnd());
}

function withoutSlashes(comment: string): string {
  return comment.replace(/^\/\/ ?/, "").trimEnd();
}
