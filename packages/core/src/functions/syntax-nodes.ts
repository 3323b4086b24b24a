import type { SyntaxNode } from "@lezer/common";

/** All children of a node, including punctuation and keywords. */
export function childrenOf(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child);
  return children;
}
