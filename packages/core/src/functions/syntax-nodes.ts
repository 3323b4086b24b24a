import type { SyntaxNode } from "@lezer/common";

/** All children of a node, punctuation and keywords included. */
export function childrenOf(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child);
  return children;
}

/** The children between commas, without the brackets around them all; empty parts are left out. */
export function commaSeparated(nodes: readonly SyntaxNode[]): SyntaxNode[][] {
  const parts: SyntaxNode[][] = [[]];
  for (const node of nodes) {
    if (node.name === ",") parts.push([]);
    else if (!isBracket(node)) parts.at(-1)?.push(node);
  }
  return parts.filter((part) => part.length > 0);
}

/** The nodes that enclose this one, from the inside out. */
export function ancestorsOf(node: SyntaxNode): SyntaxNode[] {
  const ancestors: SyntaxNode[] = [];
  for (let parent = node.parent; parent; parent = parent.parent) ancestors.push(parent);
  return ancestors;
}

/** The part of the source that a node covers. */
export function textOf(node: SyntaxNode, source: string): string {
  return source.slice(node.from, node.to);
}

function isBracket({ name }: SyntaxNode): boolean {
  return name.length === 1 && "()[]{}".includes(name);
}
